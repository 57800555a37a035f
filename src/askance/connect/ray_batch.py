"""BADGE and k-center over a pool that lies in the memories of several machines.

Each actor reads its share of the shards and holds it: the embedding, the bounds, the front. The driver races
the fronts (`picking.sharded`), so the pool never travels. The picks are those of one machine that holds it
all. An actor that is lost reads its share again and is told of every pick so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from askance.connect.ray_cluster import joined, places, raised, ray_module
from askance.errors import InputError, ShardError
from askance.picking import (
    clock_shard,
    cover_shard,
    feature_points,
    gradient_points,
    sharded_kcenter,
    sharded_kmeanspp,
)
from askance.picking.points import Floats, Rows
from askance.picking.shard import Behind, Front, News, Packed
from askance.picking.shard import Shard as Part
from askance.picking.sharded import Outcome
from askance.pools.leaders import Leaders, Skipped
from askance.pools.scorer import Reader
from askance.pools.source import Shard, rows_in
from askance.query.checks import check_room
from askance.query.inputs import checked
from askance.seeding import Draws
from askance.strategies import Badge, KCenter


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of a pool, as each actor is told it."""

    reader: Reader
    rule: Badge | KCenter
    reference: Any
    n: int
    draws: Draws
    excluded: frozenset[str] = frozenset()


def pick_held(
    question: Question, address: str | None, workers: int | None, cpus: float, gpus: float
) -> tuple[Leaders, Outcome]:
    """The picks of a batch rule from a pool held by a cluster's actors, and what they cost."""
    with joined(address) as ray:
        shards = list(question.reader.source.shards)
        most = min(workers or places(ray, cpus, gpus), max(len(shards), 1))
        # To be placed an actor needs a core, to live none: where a machine is lost the others take its
        # actors in, and memory is what decides.
        holder = ray.remote(
            num_gpus=gpus, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD"
        )(_Holder)
        held = ray.put(question)
        actors = [holder.remote([held], share) for share in shared_out(shards, most)]
        try:
            return _picked(question, RayShards(ray, actors))
        finally:
            for actor in actors:
                ray.kill(actor)


def _picked(question: Question, cluster: RayShards) -> tuple[Leaders, Outcome]:
    counts = cluster.each("counts")
    check_room(
        question.n, sum(count.rows for count in counts), np.arange(sum(c.excluded for c in counts))
    )
    free = [a for a, c in zip(cluster.actors, counts, strict=True) if c.rows > c.excluded]
    cluster = RayShards(cluster.ray, free)
    pick = sharded_kmeanspp if isinstance(question.rule, Badge) else sharded_kcenter
    outcome = pick(cluster, question.n)
    rows = outcome.picks.rows
    found = cluster.each("found", rows)
    order = np.argsort(np.concatenate([part.positions for part in found]))
    place = order[np.searchsorted(np.sort(rows), rows)]
    ids = [name for part in found for name in part.ids]
    leaders = Leaders(
        scores=outcome.picks.scores,
        positions=rows,
        ids=tuple(ids[p] for p in place),
        logits=_joined([part.logits for part in found], place),
        features=_joined([part.features for part in found], place),
        rows=sum(count.rows for count in counts),
        excluded=sum(count.excluded for count in counts),
        skipped=tuple(skip for count in counts for skip in count.skipped),
    )
    return leaders, outcome


def _joined(parts: Sequence[Tensor | None], place: Rows) -> Tensor | None:
    held = [part for part in parts if part is not None]
    return torch.cat(held)[torch.from_numpy(place)] if held else None


def shared_out(shards: Sequence[Shard], count: int) -> list[list[Shard]]:
    """Runs of shards, of about as many rows each (as many shards, where rows are not known)."""
    known = rows_in(shards)
    sizes = np.array([1 if known is None else shard.rows or 0 for shard in shards], dtype=np.int64)
    ends = np.cumsum(sizes)
    part = np.minimum((ends - sizes / 2) * count // max(int(ends[-1]), 1), count - 1) if len(ends) else ends
    shares = [[s for s, p in zip(shards, part, strict=True) if p == own] for own in range(count)]
    return [share for share in shares if share]


class RayShards:
    """Shards in actors; see `picking.sharded.Shards`."""

    def __init__(self, ray: Any, actors: Sequence[Any]) -> None:
        self.ray, self.actors = ray, actors

    def __len__(self) -> int:
        return len(self.actors)

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """One call of every actor, at the same time."""
        return self._get([getattr(actor, method).remote(*arguments) for actor in self.actors])

    def longest(self) -> Sequence[tuple[float, int, Packed]]:
        return self.each("longest")

    def fronts(self, news: Mapping[int, News], width: int) -> Mapping[int, Front | Behind]:
        asked = [self.actors[which].front.remote(own, width) for which, own in news.items()]
        return dict(zip(news, self._get(asked), strict=True))

    def rest(self, news: News, n: int) -> Sequence[tuple[Rows, Floats]]:
        return self.each("rest", news, n)

    def _get(self, refs: list[Any]) -> list[Any]:
        try:
            return self.ray.get(refs)
        except self.ray.exceptions.RayTaskError as error:
            raise raised(error) from None


@dataclass(frozen=True)
class _Counts:
    rows: int
    excluded: int
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, eq=False)
class _Found:
    positions: Rows
    ids: list[str]
    logits: Tensor | None
    features: Tensor | None


class _Holder:
    """An actor with its share of the pool, read when it is first asked for anything."""

    def __init__(self, held: list[Any], shards: Sequence[Shard]) -> None:
        self._question, self._shards = held, shards
        self._share: _Share | None = None

    @property
    def _held(self) -> _Share:
        if self._share is None:
            torch.set_num_threads(1)
            self._share = _Share(ray_module().get(self._question[0]), self._shards)
        return self._share

    def counts(self) -> _Counts:
        return self._held.counts

    def longest(self) -> tuple[float, int, Packed]:
        return self._held.part.longest()

    def front(self, news: News, width: int) -> Front | Behind:
        return self._held.part.front(news, width)

    def rest(self, news: News, n: int) -> tuple[Rows, Floats]:
        return self._held.part.rest(news, n)

    def found(self, positions: Rows) -> _Found:
        return self._held.found(positions)


class _Share:
    """Rows of some shards that may be picked, with what is needed to pick and to explain them."""

    def __init__(self, question: Question, shards: Sequence[Shard]) -> None:
        self.question = question
        self.ids: list[tuple[Any, Rows]] = []
        self.positions: Rows = np.empty(0, dtype=np.int64)
        self.logits: Tensor | None = None
        self.features: Tensor | None = None
        rows, skipped = 0, []
        blocks: list[Any] = []
        needs = frozenset(question.rule.needs & {"logits", "features"})
        with question.reader.opened(needs) as read:
            for shard in shards:
                try:
                    new = list(read(shard))
                except ShardError as error:
                    if question.reader.on_error == "raise":
                        raise
                    skipped.append(Skipped(str(error), shard.rows, True))
                    continue
                for given, block in new:
                    skipped += [Skipped(what, 1, False) for what in given.bad]
                    rows += len(given)
                    if len(given):
                        blocks.append(self._free(given, block))
        self._join([block for block in blocks if len(block[0])])
        self.counts = _Counts(rows, rows - len(self.positions), tuple(skipped))
        self._part: Part | None = None

    def _free(self, given: Any, block: Any) -> tuple[Rows, Any, Any]:
        (block,) = checked(iter([block]), self.question.rule, None)
        excluded = self.question.excluded
        taken = given.ids.find(excluded) if excluded else np.empty(0, dtype=np.int64)
        free = np.setdiff1d(np.arange(len(given)), taken)
        if len(free):
            self.ids.append((given.ids, free))
        index = torch.from_numpy(free)
        logits = None if block.logits is None else block.logits.cpu()[index]
        features = None if block.features is None else block.features.cpu()[index]
        return np.asarray(given.positions, dtype=np.int64)[free], logits, features

    def _join(self, blocks: Sequence[tuple[Rows, Any, Any]]) -> None:
        if not blocks:
            return
        positions, logits, features = zip(*blocks, strict=True)
        self.positions = np.concatenate(positions)
        self.logits = None if logits[0] is None else torch.cat(logits)
        self.features = None if features[0] is None else torch.cat(features)

    @property
    def part(self) -> Part:
        if self._part is None:
            self._part = self._made()
        return self._part

    def _made(self) -> Part:
        rule, n = self.question.rule, self.question.n
        assert self.features is not None
        if isinstance(rule, KCenter):
            points = feature_points(self.features)
            seen = self.question.reference
            if seen.shape[1] != self.features.shape[1]:
                raise InputError(
                    f"the pool has {self.features.shape[1]} features a point, the labelled set "
                    f"{seen.shape[1]}; both must come from one model"
                )
            return cover_shard(points, self.positions, n, seen)
        assert self.logits is not None
        points = gradient_points(self.logits, self.features, bias=rule.bias, loss=rule.loss)
        clocks = self.question.draws.exponential(rule.name, self.positions)
        return clock_shard(points, self.positions, n, clocks)

    def found(self, positions: Rows) -> _Found:
        """The identifiers and embeddings of those of the positions that are here, ascending."""
        mine = np.flatnonzero(np.isin(self.positions, positions))
        ends = np.cumsum([len(free) for _, free in self.ids])
        ids = []
        for row in mine:
            which = int(np.searchsorted(ends, row, side="right"))
            names, free = self.ids[which]
            ids += list(names.take(free[[row - (ends[which] - len(free))]]))
        index = torch.from_numpy(mine)
        logits = None if self.logits is None else self.logits[index]
        features = None if self.features is None else self.features[index]
        return _Found(self.positions[mine], ids, logits, features)
