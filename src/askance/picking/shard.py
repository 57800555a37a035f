"""One shard of a pool that no machine holds: its own bounds, its own front.

A shard answers one question: given the picks made since it was last asked, which of its rows come next,
and how early could any of its others come? Its answer is a *front*, current in float64, and a *limit*.
What a row's key comes to is a function of the row and the picks, to the last bit: distances are decided
pair by pair, and clocks run down pick by pick. So a shard that is lost can be made again and told of
every pick from the first, and no division of a pool into shards changes what is picked.

But for one case: a clock's key is read off anew at each pick, and rounding may then put it a last digit
before the bound it had. Two clocks that fire within that digit of each other may change places. Draws
are continuous, so it has been seen only where equal draws were made up for whole-number features.

Nothing here knows where the shards are, see `sharded`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from askance.errors import InputError
from askance.picking.kcenter import FarthestFirst
from askance.picking.kmeanspp import Clocks
from askance.picking.lazy import GROUP, LazyGreedy
from askance.picking.points import Floats, Points, Rows, Vectors, feature_points
from askance.picking.topk import smallest


@dataclass(frozen=True, eq=False)
class PackedVectors:
    """Vectors as they travel: features in the dtype the pool has, residuals in float64."""

    h: NDArray[np.floating]
    a: Floats | None
    bias: bool

    @classmethod
    def of(cls, points: Points, rows: Rows) -> PackedVectors:
        a = None if points.a_exact is None else points.a_exact[rows]
        return cls(points.h_exact[rows], a, points.bias)

    def __len__(self) -> int:
        return len(self.h)

    def __getitem__(self, rows: slice | Rows) -> PackedVectors:
        return PackedVectors(self.h[rows], None if self.a is None else self.a[rows], self.bias)

    @property
    def nbytes(self) -> int:
        return self.h.nbytes + (0 if self.a is None else self.a.nbytes)

    def exact(self) -> Vectors:
        """In float64, the same as where they come from."""
        return Vectors.of(self.a, self.h.astype(np.float64), self.bias)

    @classmethod
    def joined(cls, parts: list[PackedVectors]) -> PackedVectors:
        residuals = [part.a for part in parts if part.a is not None]
        a = np.concatenate(residuals) if residuals else None
        return cls(np.concatenate([part.h for part in parts]), a, parts[0].bias)


@dataclass(frozen=True, eq=False)
class PickUpdate:
    """Picks a shard has not heard of: the first one's number, rows of the pool, vectors, times."""

    start: int
    rows: Rows
    vectors: PackedVectors | None
    times: Floats

    @property
    def nbytes(self) -> int:
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return self.rows.nbytes + self.times.nbytes + vectors


@dataclass(frozen=True, eq=False)
class ShardFront:
    """A shard's earliest rows as they stand after the last pick, and what could come after them.

    `limit` is the (key, row) before which no other row of the shard can come; `residual` is None where
    there are no clocks.
    """

    rows: Rows
    vectors: PackedVectors
    sq: Floats
    residual: Floats | None
    limit: tuple[float, int]

    @property
    def nbytes(self) -> int:
        residual = 0 if self.residual is None else self.residual.nbytes
        return self.rows.nbytes + self.sq.nbytes + residual + self.vectors.nbytes + 16


@dataclass(frozen=True)
class Stale:
    """The answer of a shard that was lost and made again: it knows of so many picks alone."""

    count: int
    nbytes: int = 8


class ShardPicker:
    """Some rows of a pool, at the `positions` they have in it, ascending."""

    def __init__(self, greedy: LazyGreedy, positions: range | Rows) -> None:
        self.greedy = greedy
        self.positions = np.asarray(positions, dtype=np.int64)
        if len(self.positions) != len(greedy.points) or (np.diff(self.positions) <= 0).any():
            raise InputError(
                f"a shard of {len(greedy.points)} points needs as many positions, ascending; got "
                f"{len(self.positions)}"
            )
        self._group: Rows = np.empty(0, dtype=np.int64)
        self._outside = (-np.inf, 0)

    def __len__(self) -> int:
        return len(self.positions)

    def longest(self) -> tuple[float, int, PackedVectors]:
        """(‖g‖², position, vector) of the row of largest norm."""
        assert isinstance(self.greedy, Clocks)
        row, vector = self.greedy.longest()
        packed = PackedVectors.of(self.greedy.points, np.array([row]))
        return float(vector.sq_norms[0]), int(self.positions[row]), packed

    def front(self, update: PickUpdate, width: int) -> ShardFront | Stale:
        """The shard's rows with the smallest keys, at most `width`, once the update is applied."""
        if update.start > self.greedy.centres.count:
            return Stale(self.greedy.centres.count)
        self._apply(update)
        while True:
            front, limit = self.greedy.current_front(self._group, width)
            limit = min(limit, self._outside)
            key = self.greedy.bound[front]
            # Rows that something outside the front may precede are of no use to anyone yet.
            sure = (key < limit[0]) | ((key == limit[0]) & (front < limit[1]))
            if sure.any() or limit[0] == np.inf:
                break
            self._group, self._outside = smallest(self.greedy.bound, GROUP)
        return self._packed(front[sure], limit)

    def rest(self, update: PickUpdate, n: int) -> tuple[Rows, Floats]:
        """The n rows that come first where every key is infinite, and what they are ordered by.

        The update begins with the first pick, so that it does not matter what the shard knew.
        """
        self.front(update, 1)
        rows = self.greedy.leftovers()[:n]
        residual = self.greedy.residual
        return self.positions[rows], np.zeros(len(rows)) if residual is None else residual[rows]

    def _packed(self, front: Rows, limit: tuple[float, int]) -> ShardFront:
        greedy = self.greedy
        key, row = limit
        place = int(self.positions[row]) if row < len(self) else int(np.iinfo(np.int64).max)
        residual = None if greedy.residual is None else greedy.residual[front]
        vectors = PackedVectors.of(greedy.points, front)
        return ShardFront(self.positions[front], vectors, greedy.sq[front], residual, (key, place))

    def _apply(self, update: PickUpdate) -> None:
        greedy = self.greedy
        fresh = slice(greedy.centres.count - update.start, None)
        if update.vectors is None or not len(update.rows[fresh]):
            return
        stop = update.start + len(update.rows)
        greedy.times[greedy.centres.count : stop] = update.times[fresh]
        greedy.centres.add(update.vectors[fresh].exact())
        places = np.searchsorted(self.positions, update.rows[fresh]).clip(max=len(self) - 1)
        picks_here = places[self.positions[places] == update.rows[fresh]]
        greedy.rows += picks_here.tolist()
        greedy.bound[picks_here] = np.inf
        greedy.tighten()


def kmeanspp_shard(
    points: Points, positions: range | Rows, n: int, residuals_N: Floats
) -> ShardPicker:
    """A shard for D² sampling of n rows, with the Exp(1) draws of its rows' positions."""
    return ShardPicker(Clocks(points, n, residuals_N), positions)


def kcenter_shard(
    points: Points, positions: range | Rows, n: int, labeled_LD: Tensor
) -> ShardPicker:
    """A shard for k-center: its distances begin with those to the labelled points."""
    labeled = feature_points(labeled_LD).exact(np.arange(len(labeled_LD)))
    return ShardPicker(FarthestFirst(points, labeled, n), positions)
