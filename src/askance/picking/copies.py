"""Rows of a pool that are equal to the bit, identified without computing distances."""

from __future__ import annotations

import numpy as np

from askance.picking.points import Floats, Points, Rows, portions


class Copies:
    """The sets of equal rows of a pool. A missed copy costs time and changes no pick.

    Copies have the same norm. Each row that shares its norm with another gets a *mark*, a weighted sum
    of its numbers. Sorted by marks, copies are neighbours; each row is compared with the one before it.
    """

    def __init__(self, points: Points) -> None:
        rows = _of_shared_norm(points)
        marks = _marks(points, rows)
        order = np.argsort(marks, kind="stable")
        rows, marks = rows[order], marks[order]
        is_copy = np.zeros(len(rows), dtype=bool)
        is_copy[1:] = marks[1:] == marks[:-1]
        for part in portions(np.flatnonzero(is_copy), points.h.shape[1]):
            is_copy[part] = points.equal(rows[part], rows[part - 1])
        self.repeats: Rows = rows[is_copy]
        """The rows that are copies of an earlier one."""
        self._rows = rows
        self._edges = np.append(np.flatnonzero(~is_copy), len(rows))
        self._set = np.full(len(points), -1)
        self._set[rows] = np.cumsum(~is_copy) - 1

    def of(self, rows: Rows) -> Rows:
        """Every row of the sets that these rows are in; rows without a copy are in none."""
        sets = self._set[rows]
        equal = [self._rows[self._edges[k] : self._edges[k + 1]] for k in sets[sets >= 0].tolist()]
        return np.concatenate([rows[:0], *equal])


def _of_shared_norm(points: Points) -> Rows:
    """The rows that share their norm with another row, ascending."""
    order = np.argsort(points.sq_norms)
    norms = points.sq_norms[order]
    alike = norms[1:] == norms[:-1]
    shared = np.zeros(len(order), dtype=bool)
    shared[order[1:][alike]] = shared[order[:-1][alike]] = True
    return np.flatnonzero(shared)


def _marks(points: Points, rows: Rows) -> Floats:
    """A weighted sum of each row's numbers, in float64 so that rows of float32 differ in it too."""
    weights = np.sin(np.arange(1, points.h.shape[1] + 1))
    sums = [
        np.einsum("md,d->m", points.h_exact[part], weights) for part in portions(rows, len(weights))
    ]
    return np.concatenate(sums) + points.sq_norms[rows]
