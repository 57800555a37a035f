"""Rounds played in processes beside this one: the same results, and nobody left behind."""

import multiprocessing
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from askance.errors import AskanceError, InputError
from askance.experiments import spec as specs
from askance.experiments.rounds import LoadedExperiment, RunState, Trial
from askance.experiments.runner import RunObserver, run
from askance.experiments.workers import count_for, workers
from tests.experiments.tiny import contents, pictures, written

CPU = torch.device("cpu")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    dataset = pictures(tmp_path)
    return lambda tail="", **changes: specs.load(
        written(tmp_path, tail, dataset=dataset, **changes)
    )


@pytest.fixture(autouse=True)
def nobody_left():
    threads, files = set(threading.enumerate()), open_files()
    yield
    assert multiprocessing.active_children() == []
    assert set(threading.enumerate()) <= threads
    # The one that stays is the pipe to multiprocessing's janitor, which outlives every pool.
    assert open_files() <= files + 1


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_number_of_workers_changes_nothing(tiny, tmp_path):
    spec = tiny()
    run(spec, tmp_path / "one", device="cpu", workers=1)
    with pytest.raises(KeyboardInterrupt):
        run(
            spec,
            tmp_path / "both",
            device="cpu",
            workers=2,
            observers=[Killing(9, KeyboardInterrupt)],
        )
    assert 0 < len(contents(tmp_path / "both")[0]) < 18
    run(spec, tmp_path / "both", device="cpu", workers=1)
    assert contents(tmp_path / "both") == contents(tmp_path / "one")


class Killing(RunObserver):
    """After so many commits: raises, or kills a worker."""

    def __init__(self, after, how=None):
        self.left, self.how, self.told = after, how, 0

    def epoch(self, epoch, points):
        self.told += points

    def swept(self, rate, seed, accuracy):
        self.stored(None)

    def stored(self, record):
        self.left -= 1
        if self.left:
            return
        if self.how is not None:
            raise self.how
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)


def test_a_worker_that_dies_is_said_to_have_and_what_is_stored_stays(tiny, tmp_path):
    spec = tiny(epochs=20)
    with pytest.raises(AskanceError, match=r"a worker process died .* run the same command again"):
        run(spec, tmp_path / "out", device="cpu", workers=2, observers=[Killing(after=6)])
    rounds, _, sweep, _ = contents(tmp_path / "out")
    assert len(sweep) == 4
    assert len(rounds) >= 2
    run(spec, tmp_path / "out", device="cpu", workers=1)
    run(spec, tmp_path / "whole", device="cpu", workers=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_an_error_in_a_worker_comes_back_as_itself(tiny, tmp_path):
    spec = tiny('[oracle]\nkind = "abstaining"\nrate = 1\n', learning_rates="[0.1]")
    with pytest.raises(InputError, match="at least one labelled row"):
        run(spec, tmp_path / "out", device="cpu", workers=2)


def hold_the_pipe(experiment, progress):
    """A task: take the lock under which workers tell their epochs, and keep it."""
    cells = [cell.cell_contents for cell in progress.__closure__]
    (lock,) = [held for held in cells if hasattr(held, "acquire")]
    lock.acquire()
    return True


def test_a_worker_killed_while_it_tells_its_epoch_holds_nobody_up(tiny):
    experiment = LoadedExperiment.of(tiny(), CPU, "one")
    start = time.monotonic()

    def stopped():
        with workers(experiment, 2, None, lambda epoch, points: None) as do_tasks:
            assert list(do_tasks([hold_the_pipe])) == [True]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert time.monotonic() - start < 60


class Watching(RunObserver):
    """Notes what it is called with, and from which thread."""

    def __init__(self):
        self.points, self.threads = 0, set()

    def began(self, spec, dataset, how, total, done):
        self.total = total

    def epoch(self, epoch, points):
        self.points += points
        self.threads.add(threading.current_thread())


@pytest.mark.parametrize("count", [1, 2])
def test_every_epoch_is_told_in_the_thread_that_runs(tiny, tmp_path, count):
    watch = Watching()
    run(tiny(), tmp_path / "out", device="cpu", workers=count, observers=[watch])
    assert watch.threads == {threading.current_thread()}
    assert watch.points == watch.total


@pytest.mark.parametrize("count", [1, 2])
def test_the_error_of_a_watch_stops_the_run_and_comes_back_as_itself(tiny, tmp_path, count):
    class Raising(RunObserver):
        def epoch(self, epoch, points):
            raise RuntimeError("of the watch")

    with pytest.raises(RuntimeError, match="of the watch"):
        run(tiny(), tmp_path / "out", device="cpu", workers=count, observers=[Raising()])


@pytest.mark.slow
def test_workers_that_cannot_start(tiny, tmp_path):
    """As from a script without a guard: the network is found here, and not in another process."""
    experiment = LoadedExperiment.of(tiny(), CPU, "one")
    (tmp_path / "tiny_net.py").write_text("raise SystemExit(3)")
    with (
        pytest.raises(AskanceError, match="could not start"),
        workers(experiment, 2, None, lambda epoch, points: None) as do_tasks,
    ):
        list(do_tasks([partial(LoadedExperiment.try_rates, trials=[Trial(0.1, 0)])]))


def test_threads_are_as_they_were(tiny):
    experiment = LoadedExperiment.of(tiny(), CPU, "one")
    torch.set_num_threads(2)
    try:
        with workers(experiment, 1, None, lambda epoch, points: None) as do_tasks:
            assert torch.get_num_threads() == 1
            assert multiprocessing.active_children() == []
            assert list(do_tasks([lambda experiment, progress: os.getpid()])) == [os.getpid()]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_how_many(tiny):
    experiment = LoadedExperiment.of(tiny(), CPU, "one")
    cores = len(os.sched_getaffinity(0))
    assert count_for(experiment, None, 100) == cores
    assert count_for(experiment, 5, 100) == 5
    assert count_for(experiment, 5, 2) == 2
    assert count_for(experiment, None, 0) == 1
    assert count_for(LoadedExperiment.of(tiny(), CPU, "stacked"), 5, 100) == 1


def test_in_round_0_one_network_stands_for_every_rule(tiny):
    """The points told add up to what every run would train, however they are shared out."""
    experiment = LoadedExperiment.of(tiny(), CPU, "one")
    told = []
    states = [RunState(rule, 0) for rule in experiment.spec.strategies]
    records = experiment.run_round(states, 0.1, lambda epoch, points: told.append(points))
    assert told == [30, 30]
    assert len({record.loss for record in records}) == 1
