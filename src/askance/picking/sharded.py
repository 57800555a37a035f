"""D² sampling and farthest-first over shards on several machines, with the same picks as on one.

Both rules pick the row with the smallest *key* again and again, and keys only rise (see `lazy`). So a
shard can be treated like a pool and its front. It sends the rows with the smallest keys, and a limit
that no other of its rows comes before. The driver picks from these fronts and keeps them current. When
a limit may come before the next pick, the driver sends the new picks to the shards with near limits,
and they send new fronts. Most picks need no round trip, and O(C + D) numbers travel for each row of a
front and each pick, however large the pool.

The picks do not depend on the division into shards: see `shard` for why, and for the one exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from askance.errors import InputError
from askance.picking.lazy import FrontState
from askance.picking.points import Floats, Rows, Vectors
from askance.picking.shard import PackedVectors, PickUpdate, ShardFront, ShardPicker, Stale
from askance.picking.topk import Picks

Updates = Mapping[int, PickUpdate]
"""What each shard is sent, by the shard's number."""

Answer = ShardFront | Stale

# Rows the driver holds, all shards together, and the fewest of each.
_HELD_ROWS = 640
_FEWEST = 12


class Shards(Protocol):
    """Access to the shards. Each call is one round trip to the shards it names, all at the same time.

    A shard may be lost between calls, if it is then built again from its points.
    """

    def __len__(self) -> int: ...

    def longest(self) -> Sequence[tuple[float, int, PackedVectors]]:
        """Of every shard, see `ShardPicker.longest`."""

    def fronts(self, updates: Updates, width: int) -> Mapping[int, Answer]:
        """Of the shards that get an update, see `ShardPicker.front`."""

    def rest(self, update: PickUpdate, n: int) -> Sequence[tuple[Rows, Floats]]:
        """Of every shard, see `ShardPicker.rest`."""


class LocalShards:
    """Shards in this process."""

    def __init__(self, shards: Sequence[ShardPicker]) -> None:
        self.shards = shards

    def __len__(self) -> int:
        return len(self.shards)

    def longest(self) -> Sequence[tuple[float, int, PackedVectors]]:
        return [shard.longest() for shard in self.shards]

    def fronts(self, updates: Updates, width: int) -> Mapping[int, Answer]:
        return {which: self.shards[which].front(update, width) for which, update in updates.items()}

    def rest(self, update: PickUpdate, n: int) -> Sequence[tuple[Rows, Floats]]:
        return [shard.rest(update, n) for shard in self.shards]


@dataclass
class Traffic:
    """What a sharded pick cost: round trips, fronts asked for, bytes each way."""

    trips: int = 0
    fronts: int = 0
    sent: int = 0
    received: int = 0


@dataclass(frozen=True, eq=False)
class Outcome:
    """Picks, in rows of the whole pool, and what they cost."""

    picks: Picks
    traffic: Traffic = field(default_factory=Traffic)


def sharded_kmeanspp(shards: Shards, n: int) -> Outcome:
    """`kmeanspp` over shards made by `kmeanspp_shard`: the same rows, in the same order."""
    driver = _Driver(shards, n, clocks=True)
    return Outcome(driver.run(), driver.traffic)


def sharded_kcenter(shards: Shards, n: int) -> Outcome:
    """`kcenter` over shards made by `kcenter_shard`: the same rows, in the same order."""
    driver = _Driver(shards, n, clocks=False)
    picks = driver.run()
    return Outcome(Picks(picks.rows, np.sqrt(picks.scores)), driver.traffic)


class _MergedFronts:
    """The fronts of all shards as one, in the order of the pool, current after every pick."""

    def __init__(self, fronts: Mapping[int, ShardFront], now: float) -> None:
        parts = list(fronts.values())
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows)
        self.rows: Rows = rows[order]
        self.packed = PackedVectors.joined([part.vectors for part in parts])[order]
        self.vectors: Vectors = self.packed.exact()
        residuals = [part.residual for part in parts if part.residual is not None]
        self.state = FrontState(
            np.concatenate([part.sq for part in parts])[order],
            np.concatenate(residuals)[order] if residuals else None,
            now,
        )
        owners = np.repeat(list(fronts), [len(part.rows) for part in parts])
        self.owner: Rows = owners[order].astype(np.int64)
        self.gone = np.zeros(len(rows), dtype=bool)
        # Twice what a float64 product of that many terms can be off by, of the norms' sum.
        classes = 0 if self.vectors.a is None else self.vectors.a.shape[1]
        self._slack = (self.vectors.h.shape[1] + classes + 16) * 2.0**-51

    def keys(self) -> Floats:
        key = self.state.keys()
        key[self.gone] = np.inf
        return key

    def pick(self, j: int, key: float) -> None:
        """Row j is picked: advance every clock to that moment, then let distances fall."""
        self.state.advance_clocks(key)
        self.gone[j] = True
        nearer = self._may_be_nearer(j)
        pick = self.vectors[np.full(len(nearer), j)]
        sq = self.vectors[nearer].paired_sq_dists(pick)
        self.state.sq[nearer] = np.minimum(self.state.sq[nearer], sq)

    def _may_be_nearer(self, j: int) -> Rows:
        """Rows that row j may be nearer to than every centre before; exact distances decide."""
        inner = self.vectors.inner(self.vectors[j : j + 1])[:, 0]
        scale = self.vectors.sq_norms + self.vectors.sq_norms[j]
        lowest = (1 - self._slack) * scale - 2.0 * inner
        return np.flatnonzero((lowest < self.state.sq) & ~self.gone)


class _Driver:
    """Picks from the fronts of shards, and asks for new fronts when it has to."""

    def __init__(self, shards: Shards, n: int, *, clocks: bool) -> None:
        if not len(shards):
            raise InputError("there is no shard to pick from")
        self.shards, self.n, self.clocks = shards, n, clocks
        self.traffic = Traffic()
        self.rows: list[int] = []
        self.scores: list[float] = []
        self.times: list[float] = []
        self.centres: list[PackedVectors] = []
        self.picks_sent = [0] * len(shards)
        self.fronts: dict[int, ShardFront] = {}
        self.width = max(_FEWEST, _HELD_ROWS // len(shards))

    def run(self) -> Picks:
        if self.clocks:
            self._first()
        merged = None
        while len(self.rows) < self.n:
            asked = self._asked(merged)
            if not asked:
                self._finish()
                break
            merged = self._ask(asked, merged)
            self._race(merged)
        return Picks(np.array(self.rows, dtype=np.int64), np.array(self.scores))

    def _first(self) -> None:
        """The row of largest norm of all, at the lowest position of several."""
        answers = self.shards.longest()
        self.traffic.trips += 1
        self.traffic.received += sum(packed.nbytes + 16 for _, _, packed in answers)
        norm, row, packed = min(answers, key=lambda answer: (-answer[0], answer[1]))
        self._pick(row, norm, 0.0, packed)

    def _pick(self, row: int, score: float, time: float, packed: PackedVectors) -> None:
        self.rows.append(row)
        self.scores.append(score)
        self.times.append(time)
        self.centres.append(packed)

    def _asked(self, merged: _MergedFronts | None) -> list[int]:
        """The shards to ask for new fronts; none where no finite key is left.

        They are those whose limit comes before the next pick. Those whose limit would soon do so are
        asked at the same time: a round trip takes as long for many shards as for one.
        """
        if merged is None:
            return list(range(len(self.shards)))
        open_ = [which for which in self.fronts if self.fronts[which].limit[0] < np.inf]
        keys = np.sort(merged.keys())
        ahead = keys[min(len(keys) - 1, len(keys) // 2)] if len(keys) else np.inf
        first = min((self.fronts[which].limit[0] for which in open_), default=np.inf)
        return [which for which in open_ if self.fronts[which].limit[0] <= max(ahead, first)]

    def _ask(self, asked: Sequence[int], merged: _MergedFronts | None) -> _MergedFronts:
        self.fronts = {} if merged is None else self._kept(merged, asked)
        starts = {which: self.picks_sent[which] for which in asked}
        while starts:
            since = {start: self._update_since(start) for start in set(starts.values())}
            updates = {which: since[start] for which, start in starts.items()}
            answers = self.shards.fronts(updates, self.width)
            self.traffic.trips += 1
            self.traffic.fronts += len(updates)
            self.traffic.sent += sum(update.nbytes for update in updates.values())
            self.traffic.received += sum(answer.nbytes for answer in answers.values())
            starts = {}
            for which, answer in answers.items():
                if isinstance(answer, Stale):
                    starts[which] = answer.count
                else:
                    self.fronts[which] = answer
        for which in asked:
            self.picks_sent[which] = len(self.rows)
        return _MergedFronts(self.fronts, self.times[-1] if self.times else 0.0)

    def _update_since(self, start: int) -> PickUpdate:
        rows, times = np.array(self.rows[start:], dtype=np.int64), np.array(self.times[start:])
        centres = self.centres[start:]
        return PickUpdate(start, rows, PackedVectors.joined(centres) if centres else None, times)

    def _kept(self, merged: _MergedFronts, asked: Sequence[int]) -> dict[int, ShardFront]:
        """The fronts of the shards that are not asked, as they stand now."""
        kept = {}
        for which in set(self.fronts) - set(asked):
            held_rows = np.flatnonzero((merged.owner == which) & ~merged.gone)
            state, limit = merged.state, self.fronts[which].limit
            residual = None if state.residual is None else state.residual[held_rows]
            kept[which] = ShardFront(
                merged.rows[held_rows],
                merged.packed[held_rows],
                state.sq[held_rows],
                residual,
                limit,
            )
        return kept

    def _race(self, merged: _MergedFronts) -> None:
        """Pick while no row outside the fronts can come first."""
        limit = min(front.limit for front in self.fronts.values())
        while len(self.rows) < self.n and len(merged.rows):
            key = merged.keys()
            j = int(key.argmin())
            if key[j] == np.inf or not (float(key[j]), int(merged.rows[j])) < limit:
                return
            score = float(merged.state.sq[j])
            merged.pick(j, float(key[j]))
            self._pick(int(merged.rows[j]), score, merged.state.now, merged.packed[j : j + 1])

    def _finish(self) -> None:
        """Every key is infinite: each row left is a copy of a pick."""
        update = self._update_since(0)
        answers = self.shards.rest(update, self.n - len(self.rows))
        self.traffic.trips += 1
        self.traffic.sent += len(self.shards) * update.nbytes
        rows = np.concatenate([rows for rows, _ in answers])
        order = np.concatenate([order for _, order in answers])
        self.traffic.received += rows.nbytes + order.nbytes
        for place in np.lexsort((rows, order))[: self.n - len(self.rows)]:
            self.rows.append(int(rows[place]))
            self.scores.append(0.0)
