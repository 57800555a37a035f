"""`askance run` is killed at any moment; the same command again ends as if it had not been."""

import fcntl
import os
import random
import signal
import time
from contextlib import suppress

import pytest

from askance.experiments import export, formats
from askance.experiments.packing import LOCK
from tests.experiments.tiny import Nursery, contents, left_behind, pictures, rounds_in, written


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spec")
    return written(folder, rounds=3, epochs=12, dataset=pictures(folder))


@pytest.fixture(scope="module")
def nursery(spec):
    with Nursery(spec.parent) as made:
        yield made
    # Workers whose parent is killed end without a word; multiprocessing's janitor says what it swept.
    assert "Traceback" not in made.said


@pytest.fixture(scope="module")
def unbroken(nursery, spec):
    """What an unbroken run leaves, and how long it takes."""
    start = time.monotonic()
    finish(nursery, spec, spec.parent / "whole", 1)
    return spec.parent / "whole", time.monotonic() - start


def finish(nursery, spec, out, workers):
    leader = nursery.start("run", spec, "--out", out, "--workers", workers)
    assert nursery.wait() == 0
    assert left_behind(leader) == []
    assert not (out / LOCK).exists()


def is_locked(folder):
    path = folder / LOCK
    if not path.exists():
        return False
    with path.open("r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def kill(nursery, spec, out, workers, delay):
    """Run for so long, kill, and see that nobody is left and no lock; the exit code."""
    leader = nursery.start("run", spec, "--out", out, "--workers", workers)
    until = time.monotonic() + delay
    with suppress(ProcessLookupError):  # it has ended by itself
        while time.monotonic() < until:
            os.kill(leader, 0)
            time.sleep(0.005)
        os.kill(leader, signal.SIGKILL)
    code = nursery.wait()
    assert left_behind(leader) == []
    assert not is_locked(out)
    return code


def kill_and_compare(nursery, spec, unbroken, folder, schedule, moments):
    """Kill runs with the workers of `schedule`, a few to a store; each must end like the unbroken.

    A worker imports for seconds before it plays: a run with two of them is given those as well.
    """
    whole, seconds = unbroken
    stores, kills = 0, 0
    while kills < len(schedule):
        out = folder / str(stores)
        stores += 1
        before = 0
        for workers in schedule[kills : kills + moments.randint(3, 6)]:
            delay = 0.8 * moments.random() * (seconds if workers == 1 else seconds + 5)
            code = kill(nursery, spec, out, workers, delay)
            stored = rounds_in(out)
            assert stored >= before
            before = stored
            if code == 0:  # it was faster than the killer
                break
            assert code == -signal.SIGKILL
            kills += 1
        finish(nursery, spec, out, 1)
        assert contents(out) == contents(whole)
        assert table(out) == table(whole)


def table(store):
    return formats.render(export.table(store), "csv")


def test_three_kills_change_nothing(nursery, spec, unbroken, tmp_path):
    kill_and_compare(nursery, spec, unbroken, tmp_path, [1, 2, 1], random.Random(0))


@pytest.mark.slow
def test_a_hundred_kills_change_nothing(nursery, spec, unbroken, tmp_path):
    schedule = [1, 1, 1, 1, 2] * 20
    kill_and_compare(nursery, spec, unbroken, tmp_path, schedule, random.Random(1))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.1, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6])
def test_a_kill_while_workers_start_and_sweep(nursery, spec, unbroken, tmp_path, seconds):
    kill(nursery, spec, tmp_path, 2, seconds)
    finish(nursery, spec, tmp_path, 2)
    assert contents(tmp_path) == contents(unbroken[0])
