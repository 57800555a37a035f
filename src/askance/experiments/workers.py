"""Play rounds here, in processes beside this one, or wherever a crew that is passed in plays them.

A small network keeps one core busy and no more, so on a CPU several are trained at a time, each in a
process with one thread. A worker never touches the store; it dies with the process that started it.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, Protocol

import torch

from askance._io.processes import cores, die_with_parent, interrupts_blocked
from askance.errors import AskanceError
from askance.experiments.machine import Machine
from askance.experiments.records import RoundRecord, SweepResult
from askance.experiments.rounds import Bench, State, Trial
from askance.experiments.spec import Spec
from askance.training import Engine

Tell = Callable[[int, int], None]
"""(epoch, points that went through training)."""


class Workers(Protocol):
    """Who plays rounds. Results come in any order, each as soon as it is there."""

    def play(
        self, groups: Sequence[Sequence[State]], rate: float
    ) -> Iterator[list[RoundRecord]]: ...

    def try_rates(self, groups: Sequence[Sequence[Trial]]) -> Iterator[list[SweepResult]]: ...

    def machine(self) -> Machine: ...


class Crew(Protocol):
    """Workers of a kind this room knows nothing of, to be passed in: a cluster's."""

    @property
    def device(self) -> torch.device:
        """Where each of them trains."""
        ...

    @property
    def places(self) -> int:
        """How many groups they play at a time."""
        ...

    def hired(self, bench: Bench, tell: Tell) -> AbstractContextManager[Workers]:
        """Them, for the time of the context; `bench` is on their device."""
        ...


class InlineWorkers:
    """This process, one group after the other."""

    def __init__(self, bench: Bench, tell: Tell) -> None:
        self.bench, self.tell = bench, tell

    def play(self, groups: Sequence[Sequence[State]], rate: float) -> Iterator[list[RoundRecord]]:
        for states in groups:
            yield self.bench.play(states, rate, _teller(self.bench, states, self.tell))

    def try_rates(self, groups: Sequence[Sequence[Trial]]) -> Iterator[list[SweepResult]]:
        for trials in groups:
            yield self.bench.try_rates(trials, _teller(self.bench, trials, self.tell))

    def machine(self) -> Machine:
        return self.bench.machine()


class ProcessWorkers:
    """Processes beside this one, each with the data and one thread."""

    def __init__(self, bench: Bench, pool: ProcessPoolExecutor) -> None:
        self.bench, self.pool = bench, pool

    def machine(self) -> Machine:
        return self.bench.machine()

    def play(self, groups: Sequence[Sequence[State]], rate: float) -> Iterator[list[RoundRecord]]:
        return self._as_they_come(_play, [(states, rate) for states in groups])

    def try_rates(self, groups: Sequence[Sequence[Trial]]) -> Iterator[list[SweepResult]]:
        return self._as_they_come(_try_rates, [(trials,) for trials in groups])

    def _as_they_come(
        self, work: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        try:
            for future in as_completed([self._submit(work, *call) for call in calls]):
                yield future.result()
        except BrokenProcessPool as error:
            raise AskanceError(
                "a worker process died or could not start, perhaps for want of memory; what is stored "
                "is safe: run the same command again, with --workers 1 if it happens again. A script "
                'of your own that calls run must do so under `if __name__ == "__main__":`'
            ) from error

    def _submit(self, work: Callable[..., Any], *call: Any) -> Future[Any]:
        with interrupts_blocked():  # the pool may start a worker here; who holds the store decides
            return self.pool.submit(work, *call)


@contextmanager
def workers(bench: Bench, count: int, data_dir: Any, tell: Tell) -> Iterator[Workers]:
    """`count` workers for the time of the context: processes where there are several."""
    threads = torch.get_num_threads()
    if bench.device.type == "cpu":
        # The number of threads decides how sums are split, hence their last digits: always one.
        torch.set_num_threads(1)
    try:
        if count <= 1:
            yield InlineWorkers(bench, tell)
            return
        context = multiprocessing.get_context("spawn")
        heard, told = context.Pipe(duplex=False)
        listener = threading.Thread(target=_listen, args=(heard, tell), daemon=True)
        listener.start()
        arguments = (bench.spec, bench.engine, data_dir, told, context.Lock())
        pool = ProcessPoolExecutor(count, context, _start, arguments)
        try:
            yield ProcessWorkers(bench, pool)
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            # With the workers gone this is the pipe's last end, so the listener hears it close. To
            # tell it something would take the lock, which a worker may have held when it was killed.
            told.close()
            listener.join()
    finally:
        torch.set_num_threads(threads)


def count_for(bench: Bench, asked: int | None, runs: int) -> int:
    """How many workers: one a core on a CPU that trains one by one, never more than runs."""
    if bench.device.type != "cpu" or bench.engine != "one":
        return 1
    return min(asked or cores(), max(runs, 1))


def _teller(bench: Bench, items: Sequence[State | Trial], tell: Tell) -> Callable[[int, int], None]:
    """Turns (epoch, networks) into (epoch, points): in round 0 one network stands for several runs."""
    share = points_each(bench, items) / len({_job_key(item) for item in items})
    return lambda epoch, networks: tell(epoch, round(networks * share))


def points_each(bench: Bench, items: Sequence[State | Trial]) -> int:
    """How many points go through training in each epoch of all of them."""
    schedule = bench.spec.schedule
    first = items[0]
    rounds = first.round if isinstance(first, State) else schedule.rounds
    return schedule.batch * (rounds + 1) * len(items)


def _job_key(item: State | Trial) -> object:
    if isinstance(item, Trial):
        return item
    return item.seed if item.round == 0 else (item.label, item.seed)


# In a worker process

_here: Bench | None = None
_tell: Tell | None = None


def _start(spec: Spec, engine: Engine, data_dir: Any, told: Connection, turn: Any) -> None:
    global _here, _tell
    die_with_parent()
    torch.set_num_threads(1)

    def tell(epoch: int, points: int) -> None:
        with turn:
            told.send((epoch, points))

    _tell = tell
    _here = Bench.of(spec, torch.device("cpu"), engine, data_dir)


def _play(states: Sequence[State], rate: float) -> list[RoundRecord]:
    assert _here is not None
    assert _tell is not None
    return _here.play(states, rate, _teller(_here, states, _tell))


def _try_rates(trials: Sequence[Trial]) -> list[SweepResult]:
    assert _here is not None
    assert _tell is not None
    return _here.try_rates(trials, _teller(_here, trials, _tell))


def _listen(heard: Connection, tell: Tell) -> None:
    with heard, suppress(EOFError):
        while True:
            tell(*heard.recv())
