"""One shard of a pool that lies on several machines, with its own bounds and its own front.

A shard is sent the picks made since its last answer. It answers with a *front*: the rows with the
smallest keys, computed in float64. It adds a *limit*: no other row of the shard comes before it. A
row's key depends on the row and the picks alone, to the last bit: distances are computed pair by pair,
and clocks run down pick by pick. So a lost shard can be built again and sent every pick from the first,
and the division of a pool into shards does not change the picks.

There is one exception. A clock's key is computed again at each pick, and rounding may then put it one
last digit before the bound it had. Two clocks that fire within that digit of each other may swap. Draws
are continuous, so this has happened only in tests with equal draws and whole-number features.

This module does not know where the shards are, see `sharded`.
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
    """Vectors as they are sent: features in the pool's dtype, residuals in float64."""

    h: NDArray[np.floating]
    a: Floats | None
    bias: bool

    @classmethod
    def of(cls, points: Points, rows: Rows) -> PackedVectors:
        """Some rows of a pool."""
        a = None if points.a_exact is None else points.a_exact[rows]
        return cls(points.h_exact[rows], a, points.bias)

    def __len__(self) -> int:
        return len(self.h)

    def __getitem__(self, rows: slice | Rows) -> PackedVectors:
        return PackedVectors(self.h[rows], None if self.a is None else self.a[rows], self.bias)

    @property
    def nbytes(self) -> int:
        """Bytes that are sent."""
        return self.h.nbytes + (0 if self.a is None else self.a.nbytes)

    def exact(self) -> Vectors:
        """The same vectors in float64."""
        return Vectors.of(self.a, self.h.astype(np.float64), self.bias)

    @classmethod
    def joined(cls, parts: list[PackedVectors]) -> PackedVectors:
        """The vectors of all parts, one part after the other."""
        residuals = [part.a for part in parts if part.a is not None]
        a = np.concatenate(residuals) if residuals else None
        return cls(np.concatenate([part.h for part in parts]), a, parts[0].bias)


@dataclass(frozen=True, eq=False)
class PickUpdate:
    """Picks that are new to a shard: the first one's number, and all rows, vectors and times."""

    start: int
    rows: Rows
    vectors: PackedVectors | None
    times: Floats

    @property
    def nbytes(self) -> int:
        """Bytes that are sent."""
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return self.rows.nbytes + self.times.nbytes + vectors


@dataclass(frozen=True, eq=False)
class ShardFront:
    """A shard's rows with the smallest keys, current after the last pick.

    `limit` is the (key, row) before which no other row of the shard can come; `residual` is None for
    k-center, which has no clocks.
    """

    rows: Rows
    vectors: PackedVectors
    sq: Floats
    residual: Floats | None
    limit: tuple[float, int]

    @property
    def nbytes(self) -> int:
        """Bytes that are sent."""
        residual = 0 if self.residual is None else self.residual.nbytes
        return self.rows.nbytes + self.sq.nbytes + residual + self.vectors.nbytes + 16


@dataclass(frozen=True)
class Stale:
    """The answer of a shard that was lost and built again: it knows only the first `count` picks."""

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
            # A row that another one outside the front may precede cannot be picked yet.
            sure = (key < limit[0]) | ((key == limit[0]) & (front < limit[1]))
            if sure.any() or limit[0] == np.inf:
                break
            self._group, self._outside = smallest(self.greedy.bound, GROUP)
        return self._packed(front[sure], limit)

    def rest(self, update: PickUpdate, n: int) -> tuple[Rows, Floats]:
        """The n rows that come first when every key is infinite, and the numbers they are sorted by.

        The update begins with the first pick, so a shard that was lost can answer as well.
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
