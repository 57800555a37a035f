"""Ctrl-C and SIGTERM: a clean end, a word on how to go on, nobody left behind; no two at one store."""

import os
import re
import signal
import time
from contextlib import contextmanager

import pytest

from askance.cli import main
from askance.experiments.packing import LOCK
from tests.experiments.tiny import Askance, contents, left_behind, pictures, rounds_in, written

LONG = {"rounds": 4, "epochs": 30, "learning_rates": "[0.05]"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an unbroken run leaves."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        spec = str(written(folder, dataset=pictures(folder), **LONG))
        assert main(["run", spec, "--out", str(folder / "out"), "--workers", "1"]) == 0
    return contents(folder / "out")


@contextmanager
def held(process):
    """It stands still, and lives."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ("workers", "number", "group"),
    [
        (1, signal.SIGINT, False),
        (2, signal.SIGINT, True),
        pytest.param(1, signal.SIGTERM, False, marks=pytest.mark.slow),
        pytest.param(2, signal.SIGINT, False, marks=pytest.mark.slow),
        pytest.param(2, signal.SIGTERM, True, marks=pytest.mark.slow),
        (1, signal.SIGHUP, False),
    ],
)
def test_a_signal_stops_cleanly_and_the_same_command_goes_on(
    tmp_path, monkeypatch, capsys, whole, workers, number, group
):
    monkeypatch.syspath_prepend(tmp_path)
    spec, out = written(tmp_path, dataset=pictures(tmp_path), **LONG), tmp_path / "out"
    arguments = ["run", str(spec), "--out", str(out), "--workers", str(workers)]
    process = Askance(*arguments, path=tmp_path)
    process.wait_for_rounds(out, 2)
    with held(process):  # a second process on a store is told who writes it
        assert main(arguments) == 3
    told = f"is being written by another process (pid {process.pid})"
    assert told in capsys.readouterr().err
    (os.killpg if group else os.kill)(process.pid, number)
    start = time.monotonic()
    stdout, stderr = process.communicate(timeout=60)
    assert time.monotonic() - start < 15
    assert process.returncode == 130, stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert f"What is done is in {out}/; to go on:\n  askance {' '.join(arguments)}\n" in stderr
    assert left_behind(process.pid) == []
    assert not (out / LOCK).exists()
    assert 2 <= rounds_in(out) <= 30  # workers go on while the first process is held
    assert main([*arguments[:-1], "1"]) == 0
    assert contents(out) == whole


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_while_the_workers_start_leaves_no_traceback(tmp_path, number):
    """They import for seconds, and a terminal sends its Ctrl-C to them as well."""
    spec, out = written(tmp_path, dataset=pictures(tmp_path)), tmp_path / "out"
    process = Askance("run", spec, "--out", out, "--workers", 2, path=tmp_path)
    process.wait_for_workers(2)
    time.sleep(0.5)
    os.killpg(process.pid, number)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert "Traceback" not in stderr
    assert re.search(r"Stopped\. What is done is in .*; to go on:\n  askance run", stderr)
    assert left_behind(process.pid) == []
    assert not (out / LOCK).exists()


def test_sigterm_means_what_it_meant_before():
    before = signal.getsignal(signal.SIGTERM)
    assert main(["list", "models"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
