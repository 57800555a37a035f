"""Shards worked on by actors of a Ray cluster, over Ray Data: an engine for `select_from`.

Every result is a function of its shard alone, so it does not matter which actor it comes from, in what
order, or how often it was computed. Ray Data gives the shards of a lost actor or machine to another;
what it gives up on is handed out again here. A result that comes twice is dropped, one that does not
come is an error: the driver is given each shard exactly once.

The job travels once to each machine. What it names (files of the pool, modules, weights) must be found
there under the same names, and so must askance.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

import torch

from askance.errors import AskanceError, InputError
from askance.integrations.ray_batch import RayHeldPool, holding
from askance.integrations.ray_cluster import joined, places, ray_module
from askance.pools.engine import ShardTask
from askance.pools.source import Shard

T = TypeVar("T")

log = logging.getLogger(__name__)

# Passes without a single new result after which the cluster is held to be broken.
_FRUITLESS = 3


class RayEngine:
    """Actors on a Ray cluster.

    Args:
        address: the cluster's; see `ray_cluster.joined`.
        workers: how many actors; as many as there is room for when None.
        gpus: the share of a GPU each has; 0 for none.
        cpus: cores each reserves; on a CPU it computes with one thread, whatever this says.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        gpus: float = 0.0,
        cpus: float = 1.0,
    ) -> None:
        ray_module()
        if workers is not None and workers < 1:
            raise InputError(f"workers must be at least 1, got {workers}")
        if gpus < 0 or cpus <= 0:
            raise InputError(f"gpus must be 0 or more and cpus above 0, got {gpus} and {cpus}")
        self.address, self.workers, self.gpus, self.cpus = address, workers, gpus, cpus
        self.name = "ray"

    def map(self, task: ShardTask[T], shards: Sequence[Shard]) -> Iterator[tuple[Shard, T]]:
        if not shards:
            return
        with joined(self.address) as ray, _quiet():
            held = ray.put(task)
            left = {shard.index: shard for shard in shards}
            fruitless = 0
            while left:
                before = len(left)
                try:
                    for index, result in self._pass(ray, held, list(left.values())):
                        if index in left:
                            yield left.pop(index), result
                except ray.exceptions.RayError as error:
                    # A user's mistake comes back as a result; this is a machine or an actor gone.
                    log.warning(
                        "%d of %d shards are handed out again: %s", len(left), before, error
                    )
                fruitless = fruitless + 1 if len(left) == before else 0
                if fruitless == _FRUITLESS:
                    names = ", ".join(shard.name for shard in list(left.values())[:3])
                    raise AskanceError(
                        f"the Ray cluster lost {len(left)} shards {_FRUITLESS} times ({names}, …); "
                        f"look at its logs, or give its workers fewer rows or more memory"
                    )

    def holding(self) -> AbstractContextManager[RayHeldPool]:
        """A pool kept by the cluster's actors, for badge or kcenter to pick from where it lies."""
        return holding(self.address, self.workers, self.cpus, self.gpus)

    def _pass(self, ray: Any, held: Any, shards: list[Shard]) -> Iterator[tuple[int, Any]]:
        """One pass of Ray Data over the shards, a block each: (index, result) as they are done."""
        rows = [{"shard": pickle.dumps(shard)} for shard in shards]
        most = min(self.workers or places(ray, self.cpus, self.gpus), len(shards))
        pool = ray.data.ActorPoolStrategy(
            min_size=1, max_size=most, initial_size=most, max_tasks_in_flight_per_actor=2
        )
        done = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            _Worker,
            fn_constructor_args=([held],),
            batch_size=1,
            compute=pool,
            num_cpus=self.cpus,
            num_gpus=self.gpus or None,
        )
        for row in done.iter_rows():
            result = pickle.loads(row["result"])
            if isinstance(result, _Raised):
                raise result.error
            yield int(row["index"]), result


class _Raised:
    """An error of the job itself, on its way to the driver."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Worker:
    """An actor: opens the job at its first shard, and then has one result a shard."""

    def __init__(self, held: list[Any]) -> None:
        self._held = held
        self._open = ExitStack()
        self._work: Callable[[Shard], Any] | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        results = [self._result(pickle.loads(shard)) for shard in batch["shard"]]
        return {
            "index": [index for index, _ in results],
            "result": [result for _, result in results],
        }

    def _result(self, shard: Shard) -> tuple[int, bytes]:
        try:
            if self._work is None:
                self._work = self._opened()
            return shard.index, pickle.dumps(self._work(shard))
        except Exception as error:
            return shard.index, pickle.dumps(_Raised(_sendable(error)))

    def _opened(self) -> Callable[[Shard], Any]:
        # The number of threads decides the last digits of sums: one, as with every engine.
        torch.set_num_threads(1)
        task: ShardTask[Any] = ray_module().get(self._held[0])
        return self._open.enter_context(task.opened())


def _sendable(error: Exception) -> Exception:
    """The error itself where it survives the journey, else one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return AskanceError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray Data without its own progress bars and logs; askance shows progress itself."""
    import ray.data as ray_data

    context = ray_data.DataContext.get_current()
    loggers = [logging.getLogger(name) for name in ("ray.data", "ray.train", "ray.tune")]
    before = context.enable_progress_bars, [one.level for one in loggers]
    context.enable_progress_bars = False
    for one in loggers:
        one.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars = before[0]
        for one, level in zip(loggers, before[1], strict=True):
            one.setLevel(level)
