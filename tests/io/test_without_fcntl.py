"""Where Python has no `fcntl`, as on Windows: the library imports, locks, and goes on after a kill."""

import signal
import sys
import time

import pytest

from askance.label.store import LOCK as LABEL_LOCK
from askance.label.store import ProjectStore
from askance.pools.resume import resume_path
from tests.experiments.tiny import contents, environment, pictures, rounds_in, written
from tests.io.holding import python
from tests.label.worlds import images_folder
from tests.pools import worlds

COMMAND = """
from askance.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def askance(tmp_path):
    """Starts a command in a process without `fcntl` and, as there, without `resource`."""
    running = []

    def start(*arguments, code=COMMAND, **more):
        variables = environment(tmp_path) | more
        code = "sys.modules['resource'] = None\n" + code
        running.append(python(code, *arguments, fcntl=False, env=variables))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def said(process):
    """(exit code, its errors on one line)."""
    _, err = process.communicate(timeout=240)
    assert "Traceback" not in err, err
    return process.returncode, " ".join(err.split())


def stop_when(happened, process):
    until = time.monotonic() + 120
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)
    process.send_signal(signal.SIGSTOP)  # it holds its lock as long as it is wanted


def refused(process, holder):
    code, err = said(process)
    assert code == 3
    assert f"is being written by another process (pid {holder.pid})" in err
    assert "Where no such process runs on any machine, delete" in err


IMPORTS = """
import askance, askance.cli, askance.label, askance.label.project, askance.pools
import askance.experiments.runner, askance.paper.claims, askance.paper.studies
import askance.integrations.label_studio
from askance._io.lock import FileLock, SoftFileLock
assert FileLock is SoftFileLock
assert not any(sys.modules.get(name) for name in ("fcntl", "resource"))
"""


def test_everything_imports(askance):
    assert said(askance(code=IMPORTS))[0] == 0


def test_a_run_locks_and_resumes(askance, tmp_path):
    spec = written(tmp_path, rounds=4, epochs=60, dataset=pictures(tmp_path))
    out = tmp_path / "out"
    command = ("run", spec, "--out", out, "--workers", 1)
    first = askance(*command)
    stop_when(lambda: rounds_in(out) >= 2, first)
    refused(askance(*command), first)
    first.kill()
    assert said(first)[0] < 0, "it was killed too late to tell"
    assert (out / "store.lock").exists()
    assert said(askance(*command))[0] == 0
    assert not (out / "store.lock").exists()
    assert said(askance("run", spec, "--out", tmp_path / "whole", "--workers", 1))[0] == 0
    assert contents(out) == contents(tmp_path / "whole")


def test_a_selection_locks_and_resumes(askance, tmp_path):
    worlds.write_slow_pool(tmp_path)
    out, log = tmp_path / "picks.jsonl", tmp_path / "log"
    command = (
        "select", "--pool", tmp_path / "pool", "--text", "t", "--model", "slow_pool:net",
        "--transform", "slow_pool:slowly", "--n", "9", "--strategy", "margin", "--workers", "1",
    )  # fmt: skip
    slowly = {"ASKANCE_TEST_LOG": str(log)}
    first = askance(*command, "-o", out, **slowly)
    stop_when(lambda: log.exists() and len(log.read_text().split()) >= 50, first)
    refused(askance(*command, "-o", out), first)
    first.kill()
    assert said(first)[0] < 0
    read = log.read_text().split()
    assert 50 <= len(read) < 200, "it was killed too late to tell"
    assert resume_path(out).exists()
    assert said(askance(*command, "-o", out, **slowly))[0] == 0
    again = log.read_text().split()[len(read) :]
    assert len(again) <= 200 - 40, "shards that were done are not read again"
    assert said(askance(*command, "-o", tmp_path / "whole.jsonl"))[0] == 0
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    left = {path.name for path in tmp_path.iterdir()}
    assert left - {"__pycache__"} == {"slow_pool.py", "pool", "log", "picks.jsonl", "whole.jsonl"}


HOLD = """
import time
from askance.label.records import Class
from askance.label.store import ProjectStore
store = ProjectStore.open(sys.argv[1])
store.add([Class(2, "green")])
print("open", flush=True)
time.sleep(300)
"""


def test_a_labelling_project_locks_and_reopens(askance, tmp_path):
    project = tmp_path / "project"
    command = (
        "label", project, "--data", images_folder(tmp_path), "--classes", "red,blue", "--no-server"
    )  # fmt: skip
    assert said(askance(*command))[0] == 0
    assert not (project / LABEL_LOCK).exists()
    holder = askance(project, code=HOLD)
    assert holder.stdout.readline() == "open\n"
    refused(askance(*command), holder)
    holder.kill()
    holder.wait()
    assert (project / LABEL_LOCK).exists()
    assert said(askance(*command))[0] == 0
    with ProjectStore.open(project) as store:
        assert [each.name for each in store.classes()] == ["red", "blue", "green"]
    assert sys.modules.get("fcntl"), "only the other processes are without it"
