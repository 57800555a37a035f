"""One pass over a pool's shards by an engine, resumed where it was stopped, identifiers compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from askance.errors import ShardError
from askance.pools.cache import Embedder, EmbeddingCache
from askance.pools.duplicates import SeenIds, duplicates
from askance.pools.engine import Engine, Held
from askance.pools.leaders import Leaders, Skipped, merge, nobody
from askance.pools.resume import Ledger
from askance.pools.scorer import ShardScorer
from askance.pools.source import Shard, Source

Watch = Callable[[Shard, Leaders], None]

_NAMED = 5


@dataclass(frozen=True, eq=False)
class Passage:
    """How shards are gone through, whatever is done to them.

    Args:
        source: the pool.
        engine: who works.
        ledger: what is done already, and where more is written down.
        seen: where identifiers' hashes go; None where they need not be compared.
        watch: told of every shard that is done, now or before.
    """

    source: Source
    engine: Engine
    ledger: Ledger | None = None
    seen: SeenIds | None = None
    watch: Watch | None = None

    def stream(self, scorer: ShardScorer) -> Leaders:
        """The n best rows of all shards."""
        before = {} if self.ledger is None else self.ledger.done
        best, unread = nobody(), set[int]()
        for shard in self.source.shards:
            if shard.index in before:
                best = merge([best, before[shard.index]], scorer.n)
                self._note(shard, before[shard.index], unread)
        for shard, leaders in self.engine.map(scorer, self._left()):
            best = merge([best, leaders], scorer.n)
            self._keep(shard, leaders.at(_among(leaders.positions, best.positions)))
            self._note(shard, leaders, unread)
        again = self._repeated(frozenset(unread), scorer.reader.on_error == "skip")
        if not len(again):
            return best
        told = (*best.skipped, _repeats(again))
        if not np.isin(best.positions, again).any():
            return replace(best, skipped=told)
        # What was pushed out by a row that is not to be picked has to be found again.
        second = replace(self, ledger=None, seen=None, watch=None)
        found = second.stream(replace(scorer, barred=again, hash_ids=False))
        return replace(found, skipped=told, excluded=best.excluded)

    def fill(self, embedder: Embedder, cache: EmbeddingCache | Held) -> Leaders:
        """All shards into the cache; the counts, and as `positions` the rows that may not be picked."""
        parts, unread = list[Leaders](), set[int]()
        for index, done in {} if self.ledger is None else self.ledger.done.items():
            parts.append(done)
            self._note(self.source.shards[index], done, unread)
        for shard, embedded in self.engine.map(embedder, self._left()):
            cache.write(embedded)
            self._keep(shard, embedded.done)
            self._note(shard, embedded.done, unread)
            parts.append(replace(embedded.done, hashes=None))
        again = self._repeated(frozenset(unread), embedder.reader.on_error == "skip")
        whole = merge(parts, sum(map(len, parts)))
        if not len(again):
            return whole
        barred = np.union1d(whole.positions, again)
        told = (*whole.skipped, _repeats(again))
        return replace(whole, positions=barred, skipped=told)

    def _left(self) -> list[Shard]:
        done = () if self.ledger is None else self.ledger.done
        return [shard for shard in self.source.shards if shard.index not in done]

    def _keep(self, shard: Shard, leaders: Leaders) -> None:
        if self.seen is not None and leaders.hashes is not None:
            self.seen.add(leaders.hashes)
        if self.ledger is not None:
            self.ledger.add(shard, leaders)

    def _note(self, shard: Shard, leaders: Leaders, unread: set[int]) -> None:
        if any(skip.shard for skip in leaders.skipped):
            unread.add(shard.index)
        if self.watch is not None:
            self.watch(shard, leaders)

    def _repeated(self, unread: frozenset[int], skip: bool) -> NDArray[np.int64]:
        """Positions of rows whose identifier an earlier row has, ascending; none, or an error."""
        if self.seen is None:
            return np.empty(0, dtype=np.int64)
        found = duplicates(self.source, self.seen.repeated(), unread, "skip" if skip else "raise")
        if skip:
            return np.array(sorted(again.position for again in found), dtype=np.int64)
        some = [again for again, _ in zip(found, range(_NAMED), strict=False)]
        if some:
            told = "; ".join(f"{a.id!r} in {a.first} and again in {a.again}" for a in some)
            raise ShardError(
                f"identifiers must differ, and these occur twice: {told}. Make them differ, name "
                f"another column, or skip every row but the first of each"
            )
        return np.empty(0, dtype=np.int64)


def _among(positions: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.flatnonzero(np.isin(positions, kept))


def _repeats(positions: NDArray[np.int64]) -> Skipped:
    return Skipped("rows whose identifier an earlier row has", len(positions), False)
