"""Farthest-first picking (k-center greedy) by lazy bounds.

A row's key is minus its squared distance to the nearest centre. Distances only fall and keys only rise,
so the loop of `lazy` applies. At distance zero the key is infinite, so that such rows come last. The
starting centres are never compared with the whole pool: each row starts from an upper bound, its
distance to the centres around its nearest landmark.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from torch import Tensor

from askance.picking.copies import Copies
from askance.picking.eligible import Eligible
from askance.picking.lazy import LazyGreedy, distance_keys
from askance.picking.points import Centres, Floats, Points, Rows, Vectors, feature_points, portions
from askance.picking.topk import Picks, smallest

_BLOCK = 4096
# Picks take their neighbours away, so the last one is nearer than the n-th farthest row was at first;
# rows within this share of its squared distance get the closer bound.
_LIKELY = 0.88


def kcenter(points: Points, labeled_LD: Tensor, n: int, eligible: Eligible | None = None) -> Picks:
    """n rows, each the farthest from every labelled and every earlier picked point.

    Args:
        points: the pool's features.
        labeled_LD: (L, D) features of the labelled set.
        n: how many.
        eligible: which rows may be picked; all of them when None.

    Returns:
        Picks with the distance to the nearest centre at the time of each.
    """
    labeled = feature_points(labeled_LD).exact(np.arange(len(labeled_LD)))
    picks = farthest_first(points, labeled, n, eligible)
    return Picks(picks.rows, np.sqrt(picks.scores))


def farthest_first(
    points: Points, start: Vectors, n: int, eligible: Eligible | None = None
) -> Picks:
    """n rows, each the farthest from all starting centres and earlier picks; ties to the lowest row.

    Returns:
        Picks with the *squared* distance to the nearest centre at the time of each.
    """
    return FarthestFirst(points, start, n, eligible).run()


class FarthestFirst(LazyGreedy):
    """A pool's distances to the nearest of some starting centres and the picks."""

    def __init__(
        self, points: Points, start: Vectors, n: int, eligible: Eligible | None = None
    ) -> None:
        super().__init__(points, n, eligible=eligible)
        self._start = Centres(points, len(start.h))
        self._start.add(start)
        self.settled[:] = False
        # A copy of an earlier row comes after it, and is then at distance zero.
        self._bound_by_landmarks(start, Copies(points).repeats)

    def _bound_by_landmarks(self, start: Vectors, last: Rows) -> None:
        """Upper bounds on every row's distance to the starting centres, from a few of them each.

        Each row is compared with √L landmarks among the centres. Rows that may still be picked are then
        compared with the 2√L centres nearest to their landmark. Both give a bound: a wrong guess here
        costs time and changes no pick. Rows that come last need none.
        """
        root = int(np.ceil(np.sqrt(len(start.h))))
        places = np.arange(0, len(start.h), root)
        landmarks = Centres(self.points, len(places))
        landmarks.add(start[places])
        sq_KL = start[places].sq_dists(start)
        width = min(2 * root, len(start.h))
        near_KW = np.argpartition(sq_KL, width - 1, axis=1)[:, :width]
        cell_N = np.empty(len(self.points), dtype=np.int64)
        for first in range(0, len(self.points), _BLOCK):
            view = slice(first, first + _BLOCK)
            cell_N[view], upper = self.points.nearest(view, landmarks)
            self.bound[view] = -upper
        self.bound[last] = np.inf
        cells = []
        for near_W in near_KW:
            cells.append(Centres(self.points, width))
            cells[-1].add(start[near_W])
        leaders, _ = smallest(self.bound, max(4 * self.n, len(self.points) // 10))
        leaders = leaders[self.bound[leaders] < np.inf]
        rough = self.bound.copy()
        self._bound_by_cells(leaders, cell_N, cells)
        chosen, _ = smallest(self.bound[leaders], self.n)
        bar = self.bound[leaders[chosen]].max()
        likely = rough < _LIKELY * bar
        likely[leaders] = False
        self._bound_by_cells(np.flatnonzero(likely), cell_N, cells)

    def _bound_by_cells(self, rows: Rows, cell_N: Rows, cells: list[Centres]) -> None:
        by_cell = rows[np.argsort(cell_N[rows], kind="stable")]
        edges = np.searchsorted(cell_N[by_cell], np.arange(len(cells) + 1))
        for cell, (first, last) in zip(cells, pairwise(edges), strict=True):
            for part in portions(by_cell[first:last], cell.count):
                if len(part):
                    self.bound[part] = -self.points.nearest(part, cell)[1]

    def catch_up(self, rows: Rows) -> None:
        # With the picks alone: a row near one of them need not be compared with the starting centres.
        # Some rows may have been compared with some picks already, which does not change a minimum.
        start = int(self.picks_applied[rows].min())
        self._closer(rows, self.points.min_sq_dists(rows, self.centres, start))

    def settle(self, rows: Rows) -> None:
        self._closer(rows, self.points.min_sq_dists(rows, self._start, 0))
        self.bound[rows] = distance_keys(self.sq[rows])

    def _closer(self, rows: Rows, sq: Floats) -> None:
        self.sq[rows] = np.minimum(self.sq[rows], sq)
        self.bound[rows] = np.maximum(self.bound[rows], distance_keys(self.sq[rows]))
