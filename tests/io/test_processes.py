"""Cores, and workers that die with who started them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from askance._io.processes import cores, interrupts_blocked


def test_cores_are_those_this_process_may_use(monkeypatch):
    assert cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cores() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_a_process_started_meanwhile_hears_no_interrupt(monkeypatch):
    sleeping = [sys.executable, "-c", "import time; time.sleep(300)"]
    with interrupts_blocked():
        deaf = subprocess.Popen(sleeping)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
    deaf.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        deaf.wait(0.5)
    deaf.kill()
    deaf.wait()
    monkeypatch.delattr(signal, "pthread_sigmask")
    with interrupts_blocked():  # a system that cannot block signals
        pass


PARENT = """
import multiprocessing, time
from askance._io.processes import die_with_parent
def work():
    die_with_parent()
    print(multiprocessing.current_process().pid, flush=True)
    time.sleep(300)
if __name__ == "__main__":
    multiprocessing.get_context("spawn").Process(target=work).start()
    time.sleep(300)
"""


def test_a_worker_dies_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    command = [sys.executable, str(tmp_path / "parent.py")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    until = time.monotonic() + 20
    while os.path.exists(f"/proc/{worker}/exe"):  # noqa: PTH110 - a zombie's link is broken
        assert time.monotonic() < until
        time.sleep(0.01)
    parent.stdout.close()
