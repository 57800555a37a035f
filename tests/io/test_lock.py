"""One writer at a time, and none that is gone."""

import os
import threading

import filelock
import pytest

from askance._io.lock import Lock
from askance.errors import StoreError
from tests.io.holding import Holder, ended, python


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.lock"


TAKE = """
import sys
from pathlib import Path
from askance._io.lock import Lock
from askance.errors import StoreError
try:
    Lock(Path(sys.argv[1])).release()
    print("taken")
except StoreError as error:
    print(error)
"""


def test_the_file_names_its_holder_and_goes_with_the_lock(path):
    lock = Lock(path)
    assert path.read_text() == str(os.getpid())
    lock.release()
    assert not path.exists()
    lock.release()  # again does nothing
    Lock(path).release()


def test_a_second_opener_is_told_who_holds_it(path):
    lock = Lock(path)
    with pytest.raises(StoreError, match=rf"^the store in {path.parent} is being written by this "):
        Lock(path)
    with pytest.raises(
        StoreError, match=rf"this process \(pid {os.getpid()}\); ask first, or write"
    ):
        Lock(path, "ask first")
    with pytest.raises(StoreError, match=r"^all of it is being written by this process"):
        Lock(path, what="all of it")
    lock.release()


@pytest.mark.parametrize("fcntl", [True, False])
def test_another_process_is_named_and_once_killed_holds_nothing(path, fcntl):
    with Holder(path, fcntl) as holder:
        said = ended(python(TAKE, path, fcntl=fcntl))
        assert f"is being written by another process (pid {holder.pid}); wait for it to end" in said
        assert (f"delete {path}" in said) is not fcntl
        holder.kill()
        assert path.exists()
        assert ended(python(TAKE, path, fcntl=fcntl)) == "taken\n"
        assert not path.exists()


def test_a_file_whose_holder_cannot_be_known_is_to_be_deleted(path):
    """On another machine, or before the number of a process was used again."""
    path.write_text("1234\nanother-host\n")
    said = ended(python(TAKE, path, fcntl=False))
    assert "is being written by another process (pid 1234)" in said
    assert said.endswith(f"Where no such process runs on any machine, delete {path}\n")
    path.unlink()
    assert ended(python(TAKE, path, fcntl=False)) == "taken\n"


def test_a_file_that_was_left_behind_holds_nobody_up(path):
    path.write_text("1234")
    Lock(path).release()


def test_another_thread_may_release_it(path):
    lock = Lock(path)
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    Lock(path).release()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_worker_neither_frees_nor_keeps_it(path):
    """A worker that outlives its parent by seconds, as one of a DataLoader does."""
    code = """
import os, sys, time
from pathlib import Path
from askance._io.lock import Lock
lock = Lock(Path(sys.argv[1]))
if os.fork() == 0:
    lock.release()
    print("released", flush=True)
    os.close(1), os.close(2)
    time.sleep(20)
    os._exit(0)
time.sleep(300)
"""
    process = python(code, path)
    assert process.stdout.readline() == "released\n"
    with pytest.raises(StoreError, match=rf"another process \(pid {process.pid}\)"):
        Lock(path)
    process.kill()
    process.wait()
    Lock(path).release()
    process.communicate()


def test_who_opens_a_file_that_vanishes_gets_the_next_one(path):
    """The holder has removed the file and not let go yet: whoever opened it before tries again."""
    lock = Lock(path)
    with path.open("rb+") as file:
        path.unlink()
        other = Lock(path)
        assert not os.path.samestat(os.fstat(file.fileno()), path.stat())
    lock._lock.release()
    other.release()


def test_filelock_is_as_new_as_the_lock_needs():
    assert tuple(map(int, filelock.__version__.split(".")[:2])) >= (4, 2)
