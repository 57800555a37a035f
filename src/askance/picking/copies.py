"""Rows of a pool that are copies of each other, number for number, found before any distance is."""

from __future__ import annotations

import numpy as np

from askance.picking.points import Floats, Points, Rows, portions


class Copies:
    """The sets of equal rows of a pool. To miss a copy would cost time alone.

    Copies have the same norm. Rows that share theirs with another row get a *mark* each, a weighted sum
    of their numbers; in the order of these copies lie side by side, and each is compared with the last.
    """

    def __init__(self, points: Points) -> None:
        rows = _of_shared_norm(points)
        marks = _marks(points, rows)
        order = np.argsort(marks, kind="stable")
        rows, marks = rows[order], marks[order]
        again = np.zeros(len(rows), dtype=bool)
        again[1:] = marks[1:] == marks[:-1]
        for part in portions(np.flatnonzero(again), points.h.shape[1]):
            again[part] = points.equal(rows[part], rows[part - 1])
        self.repeats: Rows = rows[again]
        """The rows that are copies of an earlier one."""
        self._rows = rows
        self._edges = np.append(np.flatnonzero(~again), len(rows))
        self._set = np.full(len(points), -1)
        self._set[rows] = np.cumsum(~again) - 1

    def of(self, rows: Rows) -> Rows:
        """The rows that equal one of these, these among them where they have copies."""
        sets = self._set[rows]
        found = [
            self._rows[self._edges[one] : self._edges[one + 1]] for one in sets[sets >= 0].tolist()
        ]
        return np.concatenate([rows[:0], *found])


def _of_shared_norm(points: Points) -> Rows:
    """The rows that have their norm in common with another, ascending."""
    order = np.argsort(points.sq_norms)
    norms = points.sq_norms[order]
    alike = norms[1:] == norms[:-1]
    shared = np.zeros(len(order), dtype=bool)
    shared[order[1:][alike]] = shared[order[:-1][alike]] = True
    return np.flatnonzero(shared)


def _marks(points: Points, rows: Rows) -> Floats:
    """In float64, where rows that differ in a last digit of float32 differ too."""
    weights = np.sin(np.arange(1, points.h.shape[1] + 1))
    sums = [
        np.einsum("md,d->m", points.h_exact[part], weights) for part in portions(rows, len(weights))
    ]
    return np.concatenate(sums) + points.sq_norms[rows]
