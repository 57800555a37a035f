"""What other processes do to a store: write it, be killed, fill the disk."""

import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from askance.errors import StoreError
from askance.experiments.packing import FILE
from askance.experiments.store import ResultStore
from tests.experiments.worlds import record, spec

ROUNDS = 100_000

# A child that knows no models or datasets: the spec comes to it as it was checked here.
PROLOGUE = """
import pickle, sys
import numpy as np
from askance.experiments.store import ResultStore
from askance.experiments.records import RoundRecord
from askance.errors import StoreError
folder, spec = sys.argv[1], pickle.loads(bytes.fromhex(sys.argv[2]))
def record(round, width=4):
    picks = np.random.default_rng(round).integers(2**62, size=width)  # too random to be packed
    return RoundRecord("grad", 0, round, 4 * (round + 1), 0.5, 1.5, 0.01, picks=picks)
"""
# For every line it reads, another process that writes; one import of torch for all of them. Each line
# is said in one system call: `print` may take two (it does under PYTHONUNBUFFERED), and who is killed
# between them leaves half a line, on which the next speaker's words would follow.
WRITERS = """
import os
def say(word):
    os.write(1, f"{word}\\n".encode())
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        say(f"pid {os.getpid()}")
        store = ResultStore.open(line.strip(), spec)
        store.start_run("grad", 0, [1, 2])
        say("open")
        for round in range(store.progress()[("grad", 0)], 100_000):
            store.add_round(record(round, 400))
            say(round)
    os.waitpid(pid, 0)
    say("dead")
"""


def long_spec():
    return spec(schedule={"batch": 4, "rounds": ROUNDS})


def command(folder="none"):
    return [str(folder), pickle.dumps(long_spec()).hex()]


def child(code, folder="none"):
    """Not measured by `make coverage`: it is killed, or may write nothing, and so could not say."""
    unmeasured = {key: value for key, value in os.environ.items() if "COVERAGE" not in key}
    return subprocess.Popen(
        [sys.executable, "-c", PROLOGUE + code, *command(folder)],
        env=unmeasured,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Writers:
    """Processes that write a round after another until they are killed, one at a time."""

    def __init__(self):
        self.parent = child(WRITERS)

    def start(self, folder, until="open"):
        print(folder, file=self.parent.stdin, flush=True)
        self.pid = int(self.heard().removeprefix("pid "))
        if until == "open":
            assert self.heard() == "open"

    def heard(self):
        line = self.parent.stdout.readline()
        assert line.endswith("\n"), f"the writers' parent has ended, saying {line!r}"
        return line.rstrip()

    def kill(self):
        """The last round it said was committed, or −1."""
        os.kill(self.pid, signal.SIGKILL)
        said = list(iter(self.heard, "dead"))
        return max((int(line) for line in said if line.isdigit()), default=-1)


@pytest.fixture(scope="module")
def writers():
    group = Writers()
    yield group
    assert group.parent.communicate()[1] == ""


def kill_and_check(writers, folder, times, seed):
    moments = random.Random(seed)
    before = 0
    for _ in range(times):
        writers.start(folder)
        time.sleep(moments.uniform(0, 0.15))
        said = max(writers.kill(), before - 1)
        with ResultStore.read(folder) as store:
            rounds = [record.round for record in store.history("grad", 0)]
        # One more may have been committed than was said; none fewer.
        assert rounds == list(range(len(rounds)))
        assert said + 1 <= len(rounds) <= said + 2
        with ResultStore.open(folder, long_spec()) as store:
            assert store.progress()[("grad", 0)] == len(rounds)
        before = len(rounds)


def test_sigkill_loses_nothing_committed(writers, tmp_path):
    kill_and_check(writers, tmp_path / "out", 5, seed=0)


@pytest.mark.slow
def test_sigkill_loses_nothing_committed_long(writers, tmp_path):
    kill_and_check(writers, tmp_path / "out", 200, seed=1)


@pytest.mark.parametrize("times", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_sigkill_while_the_store_is_made(writers, tmp_path, times):
    moments = random.Random(times)
    for i in range(times):
        writers.start(tmp_path / str(i), until="pid")
        time.sleep(moments.uniform(0, 0.04))
        writers.kill()
        with ResultStore.open(tmp_path / str(i), long_spec()) as store:
            assert store.spec == long_spec().to_dict()
        shutil.rmtree(tmp_path / str(i))


def test_one_process_writes_and_others_read(writers, tmp_path):
    writers.start(tmp_path)
    with pytest.raises(
        StoreError, match=rf"written by another process \(pid {writers.pid}\); wait"
    ):
        ResultStore.open(tmp_path, long_spec())
    seen = []
    with ResultStore.read(tmp_path) as reader:
        while len(seen) < 5 or seen[-1] - seen[0] < 3:
            history = reader.history("grad", 0)
            assert [record.round for record in history] == list(range(len(history)))
            seen.append(len(history))
    assert seen == sorted(seen)
    writers.kill()
    ResultStore.open(tmp_path, long_spec()).close()


def test_a_commit_cut_in_half_is_undone(tmp_path):
    """A hot journal, as a writer killed within a commit leaves it, made without waiting for luck."""
    half = """
store = ResultStore.open(folder, spec)
store.start_run("grad", 0, [1, 2])
store.add_round(record(0))
store._db.execute("PRAGMA cache_size = 1")  # so that pages reach the file before the commit
store._db.execute("BEGIN IMMEDIATE")
for i in range(3000):
    store._db.execute("INSERT INTO run VALUES ('filler', ?, x'0000000000000000')", (i,))
print("half", flush=True)
import time; time.sleep(60)
"""
    process = child(half, tmp_path / "read")
    assert process.stdout.readline() == "half\n"
    process.kill()
    process.communicate()
    assert (tmp_path / "read" / f"{FILE}-journal").stat().st_size > 0
    shutil.copytree(tmp_path / "read", tmp_path / "open")
    with ResultStore.read(tmp_path / "read") as store:
        assert len(store.rounds()) == 1
    with ResultStore.open(tmp_path / "open", long_spec()) as store:
        assert store.progress()[("grad", 0)] == 1
        assert store._query("SELECT count(*) FROM run")[0][0] == 1
    for name in ("read", "open"):
        assert not (tmp_path / name / f"{FILE}-journal").exists()


READ_ONLY = """
import os
from pathlib import Path
if os.geteuid() == 0:  # root may write everything, so be nobody
    os.setgid(65534)
    os.setuid(65534)
with ResultStore.read(folder) as store:
    print(len(store.rounds()))
for other in (folder, str(Path(folder) / "new")):
    try:
        ResultStore.open(other, spec)
    except StoreError as error:
        print(error)
try:
    ResultStore.read(Path(folder).parent / "hot")
except StoreError as error:
    print(error)
"""


@pytest.fixture
def open_path():
    """A folder that every user may enter; pytest's own are for one, and it keeps them so."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_read_only_folder_is_read_and_not_written(open_path):
    with ResultStore.open(open_path / "out", long_spec()) as store:
        store.start_run("grad", 0, [1])
        store.add_round(record())
        shutil.copytree(open_path / "out", open_path / "hot")
        store._db.execute("PRAGMA cache_size = 1")
        store._db.execute("BEGIN IMMEDIATE")
        for i in range(3000):
            store._db.execute("INSERT INTO run VALUES ('filler', ?, x'0000000000000000')", (i,))
        shutil.copytree(open_path / "out", open_path / "hot", dirs_exist_ok=True)
        store._db.execute("ROLLBACK")
    before = (open_path / "out" / FILE).read_bytes()
    for name in ("out", "hot"):
        (open_path / name).chmod(0o555)
        (open_path / name / FILE).chmod(0o444)
    out, err = child(READ_ONLY, open_path / "out").communicate()
    for name in ("out", "hot"):
        (open_path / name).chmod(0o755)
    assert err == ""
    rounds, locked, new, hot = out.splitlines()
    assert rounds == "1"
    for message in (locked, new):
        assert "store.sqlite cannot be opened or written: Permission denied; check" in message
    assert "a commit was cut in half" in hot
    assert (open_path / "out" / FILE).read_bytes() == before


FILL = """
try:
    with ResultStore.open(folder, spec) as store:
        store.start_run("grad", 0, [1, 2])
        for round in range(1000):
            store.add_round(record(round, 1000))
except StoreError as error:
    print(error)
"""
CHECK = """
with ResultStore.read(folder) as store:
    print(len(store.rounds()))
"""


def test_a_file_that_may_not_grow(tmp_path):
    """A quota: writes past the limit fail, for the store and for its journal."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
    out, err = child(limit + FILL, tmp_path / "out").communicate()
    assert err == ""
    assert "is the disk full, over quota or gone?" in out or "is full" in out
    with ResultStore.open(tmp_path / "out", long_spec()) as store:
        done = store.progress()[("grad", 0)]
        assert 5 < done < 50
        assert [record.round for record in store.history("grad", 0)] == list(range(done))


def test_a_full_disk(tmp_path):
    """A real one: 256 kB of memory, in a mount that only the child sees."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare to mount a small disk")
    mount = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o size=256k none {tmp_path} && "]
    if subprocess.run([*mount[:-1], mount[-1] + "true"], capture_output=True).returncode:
        pytest.skip("may not mount")
    script = tmp_path.parent / "fill.py"
    read_back = "from pathlib import Path\nprint(*sorted(p.name for p in Path(folder).iterdir()))\n"
    script.write_text(PROLOGUE + FILL + CHECK + read_back)
    run = " ".join([sys.executable, str(script), *command(tmp_path)])
    done = subprocess.run([*mount[:-1], mount[-1] + run], capture_output=True, text=True)
    assert done.stderr == ""
    message, rounds, names = done.stdout.splitlines()
    assert message.startswith("the disk of ")
    assert message.endswith("make room, and the same command resumes")
    assert 5 < int(rounds) < 50
    assert names == FILE
    assert list(Path(tmp_path).iterdir()) == []
