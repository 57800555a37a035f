"""Rows of a pool that are copies of picks, number for number, found before any distance is."""

from __future__ import annotations

import numpy as np

from askance.picking.points import Points, Rows


class Copies:
    """Finds copies of given rows among rows of the same norm.

    To miss one costs time alone, so where rows are alike in norm and nothing else, the search ends
    after as many comparisons in vain as there are rows.
    """

    def __init__(self, points: Points) -> None:
        self._points = points
        self._order = np.argsort(points.sq_norms)
        self._norms = points.sq_norms[self._order]
        self._in_vain = 0

    @property
    def given_up(self) -> bool:
        return self._in_vain > len(self._points)

    def of(self, rows: Rows) -> Rows:
        """The rows that equal one of these, these among them where they have copies."""
        norms = self._points.sq_norms[rows]
        firsts = np.searchsorted(self._norms, norms, side="left")
        lasts = np.searchsorted(self._norms, norms, side="right")
        found = [rows[:0]]
        for place in np.flatnonzero(lasts - firsts > 1):
            if self.given_up:
                break
            alike = self._order[firsts[place] : lasts[place]]
            same = self._points.equal(int(rows[place]), alike)
            self._in_vain += int(np.count_nonzero(~same))
            found.append(alike[same])
        return np.concatenate(found)
