"""BADGE, k-center and their like over a pool that lies in the memories of several machines.

Each actor reads its share of the shards and keeps it: the embedding, the bounds, the front. The driver
races the fronts (`picking.sharded`), so the pool never travels. The picks are those of one machine that
holds it all. An actor that is lost reads its share again and is told of every pick so far.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from askance.embedding import Embedding, concatenated
from askance.integrations.ray_cluster import joined, places, raised, ray_module
from askance.picking import TopRows
from askance.picking.points import Floats, Rows
from askance.picking.shard import PackedVectors, PickUpdate, ShardPicker
from askance.picking.sharded import Answer, Updates
from askance.pools.cache import EmbeddedRows
from askance.pools.reader import ShardResult
from askance.pools.source import Shard, rows_in
from askance.seeding import Draws
from askance.selection.excluded import Excluded
from askance.strategies import ShardedBatch

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class HeldPoolQuery:
    """What is query of a pool that has been read; `unpickable` positions are not to be picked."""

    rule: ShardedBatch
    n: int
    reference: Any
    draws: Draws
    unpickable: Rows


class RayHeldPool:
    """A pool kept by actors: an engine for the pass that reads it, then who picks from it.

    Args:
        ray: connected.
        workers: how many actors; as many as there is room for when None.
        gpus: the share of a GPU each has, for the forward pass.
    """

    def __init__(self, ray: Any, workers: int | None, cpus: float, gpus: float) -> None:
        self.ray, self.workers, self.cpus, self.gpus = ray, workers, cpus, gpus
        self.name = "ray"
        self.actors: list[Any] = []

    def map(self, task: Any, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Any]]:
        """Every shard as it is read, without its rows: those stay where they are."""
        if not shards:
            return
        most = min(self.workers or places(self.ray, self.cpus, self.gpus), len(shards))
        # To be placed an actor needs a core, to live none: where a machine is lost the others take its
        # actors in, and memory is what decides.
        holder = self.ray.remote(
            num_gpus=self.gpus, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD"
        )(_ShareActor)
        held = [self.ray.put(task)]
        shares = shared_out(shards, most)
        self.actors = [holder.remote(held, share) for share in shares]
        pending = {
            actor.read.remote(place): shard
            for actor, share in zip(self.actors, shares, strict=True)
            for place, shard in enumerate(share)
        }
        while pending:
            done, _ = self.ray.wait(list(pending), num_returns=1, timeout=1.0)
            for ref in done:
                (result,) = _got(self.ray, [ref])
                yield pending.pop(ref), result

    def write(self, embedded: EmbeddedRows) -> None:
        """Nothing: the rows are kept by whoever read them."""

    def pick(
        self, rule: ShardedBatch, n: int, reference: Any, draws: Draws, unpickable: Rows
    ) -> TopRows:
        """The rows the rule picks, without identifiers."""
        query = [self.ray.put(HeldPoolQuery(rule, n, reference, draws, unpickable))]
        every = RayShards(self.ray, self.actors, query)
        free = every.each("free")
        cluster = RayShards(
            self.ray, [a for a, rows in zip(self.actors, free, strict=True) if rows], query
        )
        outcome = rule.pick_from_shards(cluster, n)
        log.info("%s over %d shares: %s", rule.name, len(cluster), outcome.traffic)
        return TopRows(_rows(outcome.picks.rows, cluster), outcome.picks.scores)

    def dismiss(self) -> None:
        """Stop the actors; what they hold is lost."""
        for actor in self.actors:
            self.ray.kill(actor)
        self.actors = []


@contextmanager
def holding(
    address: str | None, workers: int | None, cpus: float, gpus: float
) -> Iterator[RayHeldPool]:
    """A pool that is held for the time of the context."""
    with joined(address) as ray:
        pool = RayHeldPool(ray, workers, cpus, gpus)
        try:
            yield pool
        finally:
            pool.dismiss()


def _rows(positions: Rows, cluster: RayShards) -> Embedding:
    """Rows of the pool, in the order of `positions`, from whoever holds them."""
    whole = concatenated(cluster.each("rows", positions))
    ascending = whole[np.argsort(whole.positions)]
    return ascending[np.searchsorted(ascending.positions, positions)]


def _without_rows(result: ShardResult[EmbeddedRows]) -> ShardResult[EmbeddedRows]:
    value = result.value
    return result if value is None else replace(result, value=value.without_rows())


def shared_out(shards: Sequence[Shard], count: int) -> list[list[Shard]]:
    """Runs of shards, of about as many rows each (as many shards, where rows are not known)."""
    total = rows_in(shards)
    sizes = np.array([1 if total is None else shard.rows or 0 for shard in shards])
    middles = np.cumsum(sizes) - sizes / 2
    owner = np.minimum(middles * count // max(int(sizes.sum()), 1), count - 1)
    shares = [[s for s, o in zip(shards, owner, strict=True) if o == own] for own in range(count)]
    return [share for share in shares if share]


def _got(ray: Any, refs: list[Any]) -> list[Any]:
    try:
        return ray.get(refs)
    except ray.exceptions.RayTaskError as error:
        raise raised(error) from None


class RayShards:
    """Shards in actors; see `picking.sharded.Shards`. Every call brings the question with it: an actor
    that is made again knows nothing."""

    def __init__(self, ray: Any, actors: Sequence[Any], query: list[Any]) -> None:
        self.ray, self.actors, self.query = ray, actors, query

    def __len__(self) -> int:
        return len(self.actors)

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """One call of every actor, at the same time."""
        calls = [getattr(actor, method).remote(self.query, *arguments) for actor in self.actors]
        return _got(self.ray, calls)

    def longest(self) -> Sequence[tuple[float, int, PackedVectors]]:
        return self.each("longest")

    def fronts(self, updates: Updates, width: int) -> Mapping[int, Answer]:
        calls = [
            self.actors[w].front.remote(self.query, update, width) for w, update in updates.items()
        ]
        return dict(zip(updates, _got(self.ray, calls), strict=True))

    def rest(self, update: PickUpdate, n: int) -> Sequence[tuple[Rows, Floats]]:
        return self.each("rest", update, n)


class _ShareActor:
    """An actor with its share of the pool. What it was query before it was lost, it does again."""

    def __init__(self, held: list[Any], share: Sequence[Shard]) -> None:
        self._job, self._share = held, share
        self._open = ExitStack()
        self._work: Callable[[Shard], ShardResult[EmbeddedRows]] | None = None
        self._kept: dict[int, ShardResult[EmbeddedRows]] = {}
        self._part: ShardPicker | None = None
        self._block: Embedding | None = None

    def read(self, place: int) -> ShardResult[EmbeddedRows]:
        """Read a shard of the share and keep its rows; the result is given without them."""
        if self._work is None:
            torch.set_num_threads(1)  # the number of threads decides the last digits of sums
            self._work = self._open.enter_context(ray_module().get(self._job[0]).opened())
        if place in self._kept:
            return _without_rows(self._kept[place])
        result = self._work(self._share[place])
        self._kept[place] = replace(result, hashes=None)
        return _without_rows(result)

    def free(self, query: list[Any]) -> int:
        return len(self._held(query))

    def longest(self, query: list[Any]) -> tuple[float, int, PackedVectors]:
        return self._shard(query).longest()

    def front(self, query: list[Any], update: PickUpdate, width: int) -> Answer:
        return self._shard(query).front(update, width)

    def rest(self, query: list[Any], update: PickUpdate, n: int) -> tuple[Rows, Floats]:
        return self._shard(query).rest(update, n)

    def rows(self, query: list[Any], positions: Rows) -> Embedding:
        """Those of the positions that are here, ascending."""
        block = self._held(query)
        return block[np.flatnonzero(np.isin(block.positions, positions))]

    def _held(self, query: list[Any]) -> Embedding:
        """The rows of the share that may be picked."""
        if self._block is None:
            for place in range(len(self._share)):
                self.read(place)
            values = [self._kept[place].value for place in range(len(self._share))]
            blocks = [value.rows for value in values if value is not None and len(value.rows)]
            excluded = Excluded(ray_module().get(query[0]).unpickable)
            whole = concatenated(blocks or [Embedding.empty()])
            self._block = excluded.free_rows(whole)
            self._kept = {place: _without_rows(result) for place, result in self._kept.items()}
        return self._block

    def _shard(self, query: list[Any]) -> ShardPicker:
        if self._part is None:
            asked = ray_module().get(query[0])
            self._part = asked.rule.shard(self._held(query), asked.n, asked.reference, asked.draws)
        return self._part
