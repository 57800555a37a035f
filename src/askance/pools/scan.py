"""One pass over a pool's shards: read by an engine, resumed where it was stopped, ids compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askance.embedding import Embedding
from askance.errors import ShardError
from askance.picking import TopRows
from askance.pools.cache import EmbeddedRows, EmbeddingCache, every_position
from askance.pools.duplicates import IdHashes, duplicates
from askance.pools.engine import Engine, HeldPool
from askance.pools.reader import ShardJob, ShardResult, ShardRows
from askance.pools.resume import PassLog
from askance.pools.source import Shard, Source
from askance.seeding import Draws
from askance.selection.clock import Clock
from askance.selection.constraints import ConstrainedTop, Constraints
from askance.selection.excluded import Excluded
from askance.selection.inputs import checked
from askance.selection.scan import StagedRows, scored, staged_rows
from askance.selection.selection import ReadCounts, Skipped
from askance.strategies import Pointwise

Watch = Callable[[Shard, ReadCounts], None]

_NAMED = 5


@dataclass(frozen=True, eq=False)
class ScoreRows:
    """The n best rows of a shard by a pointwise rule, and rows for a sample: a job's work.

    Args:
        rule: what scores.
        n: how many rows at most.
        reference: what `rule.prepare` made of the labelled set.
        draws: the randomness; a row's draws depend on its position in the pool.
        excluded: what is not to be picked.
        labeled: some rows of the labelled set, whose widths a block must have.
        constraints: limits on the n picks; every row that they may reach is given then.
        times: how many times as many, for a shortlist.
        sampled: how many rows for a sample at most.
    """

    rule: Pointwise
    n: int
    reference: Any
    draws: Draws
    excluded: Excluded
    labeled: Embedding | None = None
    constraints: Constraints | None = None
    times: int = 1
    sampled: int = 0

    def __call__(self, rows: ShardRows, clock: Clock) -> StagedRows:
        needs = self.rule.needs | (self.constraints.needs if self.constraints else frozenset())
        blocks = checked(clock.timing("forward", iter(rows)), self.rule, self.labeled, needs)
        pairs = scored(self.rule, blocks, self.reference, self.draws, clock)
        staged, scan = staged_rows(
            pairs,
            self.n,
            self.sampled,
            self.draws,
            self.excluded,
            clock,
            self.constraints,
            self.times,
        )
        rows.excluded = scan.excluded
        tops = (staged.shortlist, staged.sample)
        return StagedRows(*(TopRows(top.rows.to("cpu"), top.scores) for top in tops))

    def merged(self, parts: Sequence[StagedRows]) -> StagedRows:
        """What this keeps of the rows of several shards."""
        best = StagedRows.best_of(parts, self.n, self.sampled)
        if self.constraints is None:
            return best
        every = ConstrainedTop(self.constraints, self.n, self.times)
        for part in parts:
            if len(part.shortlist):
                every.push(part.shortlist.rows, torch.from_numpy(part.shortlist.scores))
        return replace(best, shortlist=every.result())


@dataclass(frozen=True, eq=False)
class PoolScan:
    """How shards are gone through, whatever is done to them.

    Args:
        source: the pool.
        engine: who works.
        clock: is given the seconds of all workers.
        log: what is done already, and where more is written down.
        id_hashes: where identifiers' hashes go; None where they need not be compared.
        watch: called with every shard that is done, now or before, and its counts.
    """

    source: Source
    engine: Engine
    clock: Clock
    log: PassLog | None = None
    id_hashes: IdHashes | None = None
    watch: Watch | None = None

    def staged_rows(self, job: ShardJob[StagedRows]) -> tuple[StagedRows, ReadCounts]:
        """The best rows and the sample of all shards; the job's work is a `ScoreRows`."""
        work = job.work
        assert isinstance(work, ScoreRows)
        best = StagedRows.empty()

        def add(shard: Shard, result: ShardResult[StagedRows]) -> ShardResult[StagedRows]:
            nonlocal best
            if result.value is None:
                return result
            best = work.merged([best, result.value])
            # The others can never be picked.
            return replace(result, value=result.value.among(best))

        read, repeated = self._run(job, add)
        if best.holds(repeated):
            # What was pushed out by a row that is not to be picked has to be found again.
            out = np.union1d(work.excluded.positions, repeated)
            excluded = replace(work.excluded, positions=out)
            second = replace(job, work=replace(work, excluded=excluded), hash_ids=False)
            best, _ = replace(self, log=None, id_hashes=None, watch=None).staged_rows(second)
        return best, read

    def fill(
        self, job: ShardJob[EmbeddedRows], cache: EmbeddingCache | HeldPool
    ) -> tuple[NDArray[np.int64], ReadCounts]:
        """All shards into the cache; which rows may not be picked, ascending."""
        unpickable = [np.empty(0, dtype=np.int64)]

        def add(shard: Shard, result: ShardResult[EmbeddedRows]) -> ShardResult[EmbeddedRows]:
            if result.value is None:
                unpickable.append(every_position(shard))
                return result
            cache.write(result.value)
            unpickable.append(result.value.unpickable)
            return replace(result, value=result.value.without_rows())

        read, repeated = self._run(job, add)
        return np.unique(np.concatenate([*unpickable, repeated])), read

    def _run(
        self, job: ShardJob[Any], add: Callable[[Shard, ShardResult[Any]], ShardResult[Any]]
    ) -> tuple[ReadCounts, NDArray[np.int64]]:
        """Each shard's result to `add`, which gives what to store of it; repeated rows at the end."""
        done = {} if self.log is None else self.log.done
        left = [shard for shard in self.source.shards if shard.index not in done]
        counts, unread = list[ReadCounts](), set[int]()

        def count(shard: Shard, read: ReadCounts) -> None:
            counts.append(read)
            if any(skip.shard for skip in read.skipped):
                unread.add(shard.index)
            if self.watch is not None:
                self.watch(shard, read)

        for index, stored in done.items():
            add(self.source.shards[index], stored)
            count(self.source.shards[index], stored.read)
        for shard, result in self.engine.map(job, left):
            kept = add(shard, result)
            if self.id_hashes is not None and result.hashes is not None:
                self.id_hashes.add(result.hashes)
            if self.log is not None:
                self.log.add(shard, kept)
            self.clock.add(result.seconds)
            count(shard, result.read)
        repeated = self._repeated(frozenset(unread), job.reader.on_error == "skip")
        read = ReadCounts.total(counts)
        if len(repeated):
            lost = Skipped("rows whose identifier an earlier row has", len(repeated), False)
            read = replace(read, skipped=(*read.skipped, lost))
        return read, repeated

    def _repeated(self, unread: frozenset[int], skip: bool) -> NDArray[np.int64]:
        """Positions of rows whose identifier an earlier row has, ascending; none, or an error."""
        if self.id_hashes is None:
            return np.empty(0, dtype=np.int64)
        repeats = duplicates(
            self.source, self.id_hashes.repeated(), unread, "skip" if skip else "raise"
        )
        if skip:
            return np.array(sorted(again.position for again in repeats), dtype=np.int64)
        some = [again for again, _ in zip(repeats, range(_NAMED), strict=False)]
        if some:
            named = "; ".join(f"{a.id!r} in {a.first} and again in {a.again}" for a in some)
            raise ShardError(
                f"identifiers must differ, and these occur twice: {named}. Make them differ, name "
                f"another column, or skip every row but the first of each"
            )
        return np.empty(0, dtype=np.int64)
