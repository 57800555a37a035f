"""Rows of a pool that are copies of each other, number for number, found before any distance is."""

from __future__ import annotations

import numpy as np

from askance.picking.points import Points, Rows, portions


class Copies:
    """The sets of equal rows of a pool. To miss a copy would cost time alone.

    Copies have the same norm. Rows that share theirs with another row are put in the order of a second
    number, a weighted sum, where copies lie side by side; each is compared with the one before it.
    """

    def __init__(self, points: Points) -> None:
        self._rows = _side_by_side(points)
        again = np.zeros(len(self._rows), dtype=bool)
        for part in portions(np.arange(1, len(again)), points.h.shape[1]):
            again[part] = points.equal(self._rows[part], self._rows[part - 1])
        self.repeats: Rows = self._rows[again]
        """The rows that are copies of an earlier one."""
        self._edges = np.append(np.flatnonzero(~again), len(again))
        self._set = np.full(len(points), -1)
        self._set[self._rows] = np.cumsum(~again) - 1

    def of(self, rows: Rows) -> Rows:
        """The rows that equal one of these, these among them where they have copies."""
        sets = self._set[rows]
        found = [
            self._rows[self._edges[one] : self._edges[one + 1]] for one in sets[sets >= 0].tolist()
        ]
        return np.concatenate([rows[:0], *found])


def _side_by_side(points: Points) -> Rows:
    """Rows that have their norm in common with another, in an order where copies ascend in a run."""
    order = np.argsort(points.sq_norms)
    norms = points.sq_norms[order]
    alike = norms[1:] == norms[:-1]
    shared = np.append(alike, False) | np.append(False, alike)
    rows = order[shared[: len(order)]]
    weights = np.random.default_rng(0).normal(size=points.h.shape[1])
    marks = [
        # In float64, where rows that differ in a last digit of float32 have different sums.
        np.einsum("md,d->m", points.h_exact[part], weights)
        for part in portions(rows, len(weights))
    ]
    return rows[np.lexsort((rows, np.concatenate(marks), points.sq_norms[rows]))]
