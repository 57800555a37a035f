"""Greedy picks that look at few points: bounds for the pool, float64 for a small front.

D² sampling and k-center greedy both pick, again and again, the row with the smallest *key*, and both
keys are functions of the squared distance to the nearest centre, which only falls as centres are added;
so keys only rise, and a key computed long ago is a lower bound on the present one. Hence:

- every row has a `bound`, a lower bound on its key;
- a *front* of the rows with the smallest bounds is kept current, in float64, pick after pick;
- a pick is final when its key comes before the smallest bound outside the front;
- when none does, the rows now earliest by bound are brought up to date and make the next front.

The rows' order decides between equal keys everywhere, so picks equal those of a dense float64 run.
Between pool and front stands a *group*, only so that fronts need not be looked for in the whole pool.
Where picks push their whole neighbourhood back (copies, tight clusters) a front is good for few picks,
and gets smaller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from askance.picking.points import Centres, Floats, Points, Rows
from askance.picking.topk import Picks, smallest

_FRONT = 160
_SMALLEST_FRONT = 10
GROUP = 2048


class LazyGreedy(ABC):
    """The lazy loop. A subclass says what a key is and how picks change it."""

    def __init__(self, points: Points, n: int) -> None:
        self.points = points
        self.n = n
        self.centres = Centres(points, n)
        count = len(points)
        self.bound: Floats = np.full(count, -np.inf)
        # How many picks a row's state reflects.
        self.seen: NDArray[np.int64] = np.zeros(count, dtype=np.int64)
        # Whether a row that has seen every pick has its key for a bound.
        self.settled: NDArray[np.bool_] = np.ones(count, dtype=bool)
        # Squared distance to the nearest centre; finite, to be multiplied by a time of zero.
        self.sq: Floats = np.full(count, np.finfo(np.float64).max)
        self.rows: list[int] = []
        self.scores: list[float] = []
        self._width = _FRONT

    @abstractmethod
    def catch_up(self, rows: Rows) -> None:
        """Bring rows up to date with the picks they have not seen, and their bounds with them."""

    def settle(self, rows: Rows) -> None:
        """Turn the bounds of rows that have seen every pick into keys."""
        raise AssertionError("every row is settled")

    @abstractmethod
    def enter(self, rows: Rows) -> Floats:
        """Make these rows the front; return its keys."""

    @abstractmethod
    def fire(self, j: int, sq_dists: Floats) -> Floats:
        """Record that row j of the front is picked; update the front by its distances; return keys."""

    @abstractmethod
    def leave(self, rows: Rows) -> None:
        """Write the front's state back."""

    def leftovers(self, rows: Rows) -> Rows:
        """The order of the remaining rows when every key is infinite."""
        return rows

    def run(self) -> Picks:
        while len(self.rows) < self.n:
            group, limit = smallest(self.bound, GROUP)
            if self.bound[group].min() == np.inf:
                self._finish()
                break
            while self._race(group, limit) and len(self.rows) < self.n:
                pass
        return Picks(np.array(self.rows, dtype=np.int64), np.array(self.scores))

    def _race(self, group: Rows, outside: tuple[float, int]) -> bool:
        """Pick from a front of the group while nothing outside can come first; False to regroup."""
        front, limit = self.current_front(group, self._width)
        limit = min(limit, outside)
        if not len(front):
            return False
        # Whatever is picked now is in the front, so its distances to the front are among these.
        vectors = self.points.exact(front)
        sq_dists = vectors.sq_dists(vectors)
        key = self.enter(front)
        picked = []
        while len(self.rows) < self.n:
            j = int(key.argmin())
            if key[j] == np.inf or not (float(key[j]), int(front[j])) < limit:
                break
            picked.append(j)
            self.rows.append(int(front[j]))
            key = self.fire(j, sq_dists[j])
        self.centres.add(vectors[np.array(picked, dtype=np.int64)])
        self.bound[front] = key
        self.seen[front] = self.centres.count
        if picked and 8 * len(picked) < self._width:
            self._width = max(_SMALLEST_FRONT, self._width // 2)
        elif 2 * len(picked) > self._width:
            self._width = min(_FRONT, self._width * 2)
        self.leave(front)
        return bool(picked)

    def current_front(self, group: Rows, width: int) -> tuple[Rows, tuple[float, int]]:
        """The group's earliest rows, all up to date, and the (bound, row) that comes after them."""
        # Looking further ahead each time keeps updates few where bounds are loose.
        ahead, further = 2 * _FRONT, width
        while True:
            chosen, (bar, place) = smallest(self.bound[group], width)
            # Rows that are picked, or can never be, have an infinite bound and nothing to update.
            front = group[chosen][self.bound[group[chosen]] < np.inf]
            if (self.seen[front] < self.centres.count).any():
                next_up = group[smallest(self.bound[group], ahead)[0]]
                behind = (self.seen[next_up] < self.centres.count) & (self.bound[next_up] < np.inf)
                rows = next_up[behind]
                self.catch_up(rows)
                self.seen[rows] = self.centres.count
                ahead *= 2
            elif not self.settled[front].all():
                next_up = group[smallest(self.bound[group], further)[0]]
                ready = (self.seen[next_up] == self.centres.count) & ~self.settled[next_up]
                rows = next_up[ready & (self.bound[next_up] < np.inf)]
                self.settle(rows)
                self.settled[rows] = True
                further *= 2
            else:
                return front, (bar, int(group[place]) if place < len(group) else len(self.bound))

    def _finish(self) -> None:
        taken = np.zeros(len(self.points), dtype=bool)
        taken[self.rows] = True
        rest = self.leftovers(np.flatnonzero(~taken))[: self.n - len(self.rows)]
        self.rows += rest.tolist()
        self.scores += [0.0] * len(rest)
