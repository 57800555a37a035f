"""Who does the work on the shards: this machine's cores, or (elsewhere) a cluster's."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from askance._io.processes import cores
from askance.picking import TopRows
from askance.pools.source import Shard
from askance.seeding import Draws
from askance.strategies import ShardedBatch

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

# Seconds a stopped worker is waited for; it stops at the end of its shard.
_PATIENCE = 10.0


class ShardTask(Protocol[R_co]):
    """Something to do to each of many shards. Picklable."""

    @property
    def device(self) -> str | None:
        """Where it computes; the CPU when None."""
        ...

    def opened(self) -> AbstractContextManager[Callable[[Shard], R_co]]:
        """Build what the task needs, once a worker; inside, a function from a shard to its result."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Does a task on shards, on as many workers as it has.

    Each shard's result is given exactly once, in any order, whatever happens to workers meanwhile. The
    result depends on the shard alone: a task computes on one CPU thread (or one GPU), so that the last
    digit of a sum is the same on every worker.
    """

    @property
    def name(self) -> str:
        """What the summary calls it."""
        ...

    def map(self, task: ShardTask[T], shards: Sequence[Shard]) -> Iterator[tuple[Shard, T]]:
        """(shard, result) as they are done; the first error of a worker is raised here."""
        ...


class HeldPool(Engine, Protocol):
    """An engine that keeps the rows it reads, and what a pass takes for its cache."""

    def write(self, embedded: Any) -> None:
        """Take a shard's rows, as a cache would."""
        ...

    def pick(
        self,
        rule: ShardedBatch,
        n: int,
        reference: Any,
        draws: Draws,
        unpickable: NDArray[np.int64],
    ) -> TopRows:
        """The rows the rule picks, without identifiers."""
        ...


@runtime_checkable
class HoldingEngine(Protocol):
    """An engine whose workers can keep between them a pool that no machine holds."""

    def holding(self) -> AbstractContextManager[HeldPool]:
        """A pool that is kept for the time of the context."""
        ...


class LocalEngine:
    """Threads of this process, one a core; torch and Arrow both let go of the interpreter's lock.

    Args:
        workers: how many shards at a time; the number of cores when None, one for a GPU.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers
        self.name = "local"

    def map(self, task: ShardTask[T], shards: Sequence[Shard]) -> Iterator[tuple[Shard, T]]:
        if not shards:
            return
        most = self.workers or (1 if task.device not in (None, "cpu") else cores())
        # Settings of the whole process: left to the workers, the last to end would decide them.
        threads, products = torch.get_num_threads(), torch.get_float32_matmul_precision()
        torch.set_num_threads(1)  # before the workers start: a new thread takes the number over
        try:
            yield from _Threads(task, min(most, len(shards)), shards).results()
        finally:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(products)


class _Threads:
    """Workers that take shards from one list and put results on one short shelf."""

    def __init__(self, task: ShardTask[Any], workers: int, shards: Sequence[Shard]) -> None:
        self.task = task
        self.waiting = iter(shards)
        self.lock = threading.Lock()
        self.shelf: queue.Queue[tuple[Shard | None, Any]] = queue.Queue(workers)
        self.stopped = threading.Event()
        names = [f"askance-shard-{number}" for number in range(workers)]
        self.threads = [threading.Thread(target=self._work, name=n, daemon=True) for n in names]

    def results(self) -> Iterator[tuple[Shard, Any]]:
        """(shard, result) as they are done; the first error of a worker is raised here."""
        for thread in self.threads:
            thread.start()
        try:
            left = len(self.threads)
            while left:
                shard, result = self.shelf.get()
                if isinstance(result, _Failure):
                    raise result.error
                if shard is None:
                    left -= 1
                else:
                    yield shard, result
        finally:
            self.stopped.set()
            for thread in self.threads:
                thread.join(_PATIENCE)

    def _work(self) -> None:
        try:
            with ExitStack() as stack:
                with self.lock:  # a user's factory need not be safe to call in two threads
                    work = stack.enter_context(self.task.opened())
                while (shard := self._next()) is not None:
                    self._put(shard, work(shard))
            self._put(None, None)
        except BaseException as error:
            self._put(None, _Failure(error))

    def _next(self) -> Shard | None:
        with self.lock:
            return None if self.stopped.is_set() else next(self.waiting, None)

    def _put(self, shard: Shard | None, result: Any) -> None:
        while not self.stopped.is_set():
            with suppress(queue.Full):
                self.shelf.put((shard, result), timeout=0.2)
                break


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
