"""Play rounds here, or in processes beside this one.

A small network keeps one core busy and no more, so on a CPU several are trained at a time, each in a
process with one thread. A worker never touches the store; it dies with the process that started it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any, Protocol

import torch

from askance.bench.records import RoundRecord, SweepResult
from askance.bench.rounds import Bench, State, Trial
from askance.errors import AskanceError

Tell = Callable[[int, int], None]
"""(epoch, points that went through training)."""


class Workers(Protocol):
    """Who plays rounds. Results come in any order, each as soon as it is there."""

    def play(
        self, groups: Sequence[Sequence[State]], rate: float
    ) -> Iterator[list[RoundRecord]]: ...

    def try_rates(self, groups: Sequence[Sequence[Trial]]) -> Iterator[list[SweepResult]]: ...


class Here:
    """This process, one group after the other."""

    def __init__(self, bench: Bench, tell: Tell) -> None:
        self.bench, self.tell = bench, tell

    def play(self, groups: Sequence[Sequence[State]], rate: float) -> Iterator[list[RoundRecord]]:
        for states in groups:
            yield self.bench.play(states, rate, _teller(self.bench, states, self.tell))

    def try_rates(self, groups: Sequence[Sequence[Trial]]) -> Iterator[list[SweepResult]]:
        for trials in groups:
            yield self.bench.try_rates(trials, _teller(self.bench, trials, self.tell))


class Beside:
    """Processes beside this one, each with the data and one thread."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self.pool = pool

    def play(self, groups: Sequence[Sequence[State]], rate: float) -> Iterator[list[RoundRecord]]:
        return _as_they_come([self.pool.submit(_play, states, rate) for states in groups])

    def try_rates(self, groups: Sequence[Sequence[Trial]]) -> Iterator[list[SweepResult]]:
        return _as_they_come([self.pool.submit(_try_rates, trials) for trials in groups])


@contextmanager
def workers(bench: Bench, count: int, data_dir: Any, tell: Tell) -> Iterator[Workers]:
    """`count` workers for the time of the context: processes where there are several."""
    threads = torch.get_num_threads()
    if bench.device.type == "cpu":
        # The number of threads decides how sums are split, hence their last digits: always one.
        torch.set_num_threads(1)
    try:
        if count <= 1:
            yield Here(bench, tell)
            return
        context = multiprocessing.get_context("spawn")
        told = context.SimpleQueue()
        listener = threading.Thread(target=_listen, args=(told, tell), daemon=True)
        listener.start()
        arguments = (bench.spec, bench.spec.folder, bench.engine, data_dir, told)
        pool = ProcessPoolExecutor(count, context, _start, arguments)
        try:
            yield Beside(pool)
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            told.put(None)
            listener.join()
            told.close()
    finally:
        torch.set_num_threads(threads)


def count_for(bench: Bench, asked: int | None, runs: int) -> int:
    """How many workers: one a core on a CPU that trains one by one, never more than runs."""
    if bench.device.type != "cpu" or bench.engine != "one":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(asked or cores or 1, max(runs, 1))


def _as_they_come(futures: list[Future[Any]]) -> Iterator[Any]:
    try:
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool as error:
        raise AskanceError(
            "a worker process died, perhaps for want of memory; what is stored is safe: run the same "
            "command again, with --workers 1 if it happens again"
        ) from error


def _teller(bench: Bench, items: Sequence[State | Trial], tell: Tell) -> Callable[[int, int], None]:
    """Turns (epoch, networks) into (epoch, points): in round 0 one network stands for several runs."""
    schedule = bench.spec.schedule
    first = items[0]
    rounds = first.round if isinstance(first, State) else schedule.rounds
    points = schedule.batch * (rounds + 1)
    share = len(items) / len({_job_key(item) for item in items})
    return lambda epoch, networks: tell(epoch, round(points * networks * share))


def _job_key(item: State | Trial) -> object:
    if isinstance(item, Trial):
        return item
    return item.seed if item.round == 0 else (item.label, item.seed)


# In a worker process

_here: Bench | None = None
_told: Any = None


def _start(spec: Any, folder: Any, engine: Any, data_dir: Any, told: Any) -> None:
    global _here, _told
    # Ctrl-C goes to every process of a terminal; the one that holds the store decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_die_with, args=(parent.sentinel,), daemon=True).start()
    torch.set_num_threads(1)
    _told = told
    _here = Bench.of(spec, torch.device("cpu"), engine, data_dir)


def _die_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def _play(states: Sequence[State], rate: float) -> list[RoundRecord]:
    assert _here is not None
    return _here.play(states, rate, _teller(_here, states, lambda *what: _told.put(what)))


def _try_rates(trials: Sequence[Trial]) -> list[SweepResult]:
    assert _here is not None
    return _here.try_rates(trials, _teller(_here, trials, lambda *what: _told.put(what)))


def _listen(told: Any, tell: Tell) -> None:
    for what in iter(told.get, None):
        tell(*what)
