"""Greedy picks that look at few points: bounds for the pool, float64 for a small front.

D² sampling and k-center greedy pick the row with the smallest *key* again and again. Both keys are
functions of the squared distance to the nearest centre. That distance only falls as centres are added.
So keys only rise, and a key computed long ago is a lower bound on the present one. Hence:

- every row has a `bound`, a lower bound on its key;
- a *front* of the rows with the smallest bounds is kept current, in float64, pick after pick;
- a pick is final when its key comes before the smallest bound outside the front;
- when none does, the rows with the smallest bounds are brought up to date and make the next front.

Equal keys are decided by the row's position, so the picks are the same as those of a float64 reference.
Between pool and front stands a *group*, so that a front need not be searched for in the whole pool.
Where a pick raises the keys of its whole neighbourhood (copies, tight clusters) a front yields few
picks, and the next one is smaller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from askance.picking.eligible import Eligible
from askance.picking.points import Centres, Floats, Points, Rows
from askance.picking.topk import Picks, smallest

_FRONT = 160
_SMALLEST_FRONT = 10
GROUP = 2048
# Squares of gradients under 1e-150: no number that a waiting time could be divided by.
ZERO = 1e-300


class FrontState:
    """What decides the keys of some rows, kept current pick after pick.

    Args:
        sq: (M,) squared distance to the nearest centre.
        residual: (M,) what is left of each row's clock; None for k-center, which has no clocks.
        now: when the last pick was made, by those clocks.
    """

    def __init__(self, sq: Floats, residual: Floats | None, now: float) -> None:
        self.sq, self.residual, self.now = sq, residual, now

    def keys(self) -> Floats:
        """(M,) the row with the smallest key is picked next; infinite keys come last."""
        if self.residual is None:
            return distance_keys(self.sq)
        return firing_times(self.now, self.residual, self.sq)

    def advance_clocks(self, key: float) -> None:
        """Run every clock down to the moment at which a row with this key is picked."""
        if self.residual is not None:
            # Rounding may have a clock fire a last digit before the one that fired last.
            then = max(key, self.now)
            self.residual -= self.sq * (then - self.now)
            self.now = then


def distance_keys(sq_dists: Floats) -> Floats:
    """Minus the squared distance, infinite where that is zero."""
    return np.where(sq_dists > 0, -sq_dists, np.inf)


def firing_times(now: float, residual: Floats, weight: Floats) -> Floats:
    """When each clock fires; infinity where its weight is zero."""
    wait = np.full(len(weight), np.inf)
    np.divide(residual, weight, out=wait, where=weight > ZERO)
    wait += now
    return wait


class LazyGreedy(ABC):
    """The lazy loop. A subclass says how a row's bound becomes its key.

    Args:
        points: the pool.
        n: how many rows will be picked at most.
        residual_N: (N,) clocks that have not run yet, for D² sampling; None for k-center.
        eligible: which rows may be picked; all of them when None.
    """

    def __init__(
        self,
        points: Points,
        n: int,
        residual_N: Floats | None = None,
        eligible: Eligible | None = None,
    ) -> None:
        self.points = points
        self.n = n
        self.eligible = eligible
        self.centres = Centres(points, n)
        count = len(points)
        self.bound: Floats = np.full(count, -np.inf)
        # How many picks a row's state reflects.
        self.picks_applied: NDArray[np.int64] = np.zeros(count, dtype=np.int64)
        # Whether a row that reflects every pick has its key for a bound.
        self.settled: NDArray[np.bool_] = np.ones(count, dtype=bool)
        # Squared distance to the nearest centre; finite, to be multiplied by a time of zero.
        self.sq: Floats = np.full(count, np.finfo(np.float64).max)
        self.residual = None if residual_N is None else residual_N.copy()
        self.times = np.zeros(n)  # when each pick became a centre
        self.rows: list[int] = []
        self.scores: list[float] = []
        self._width = _FRONT

    @abstractmethod
    def catch_up(self, rows: Rows) -> None:
        """Bring rows up to date with the picks they do not reflect yet, and their bounds with them."""

    def settle(self, rows: Rows) -> None:
        """Turn the bounds of rows that reflect every pick into keys."""
        raise AssertionError("every row is settled")

    def put_aside(self, picks: Rows) -> None:
        """See to it that these rows are never picked again."""
        self.bound[picks] = np.inf

    def tighten(self) -> None:  # noqa: B027
        """Raise the bounds of the whole pool after new picks, where that pays."""

    def leftovers(self) -> Rows:
        """The rows that are not picked, in the order they are picked in when every key is infinite."""
        left = np.ones(len(self.points), dtype=bool)
        left[self.rows] = False
        return np.flatnonzero(left)

    def run(self) -> Picks:
        """The n picks, with the squared distance to the nearest centre at the time of each.

        Fewer where no eligible row is left.
        """
        if self.eligible is not None:
            self.bound[~self.eligible.mask] = np.inf
        while len(self.rows) < self.n:
            group, limit = smallest(self.bound, GROUP)
            if self.bound[group].min() == np.inf:
                for row in self.leftovers().tolist():
                    if len(self.rows) < self.n and self._may_take(row):
                        self.rows.append(row)
                        self.scores.append(0.0)
                        self.take(row)
                break
            while self._race(group, limit) and len(self.rows) < self.n:
                pass
        return Picks(np.array(self.rows, dtype=np.int64), np.array(self.scores))

    def take(self, row: int) -> Rows:
        """Tell the limits, if there are any, that a row is picked; the rows that leave with it."""
        if self.eligible is None:
            return np.empty(0, dtype=np.int64)
        gone = self.eligible.take(row)
        self.bound[gone] = np.inf
        return gone

    def _may_take(self, row: int) -> bool:
        return self.eligible is None or bool(self.eligible.mask[row])

    def _race(self, group: Rows, outside: tuple[float, int]) -> bool:
        """Pick from a front of the group while nothing outside can come first; False to regroup."""
        front, limit = self.current_front(group, self._width)
        limit = min(limit, outside)
        if not len(front):
            return False
        # Whatever is picked now is in the front, so its distances to the front are among these.
        vectors = self.points.exact(front)
        sq_dists = vectors.sq_dists(vectors)
        residual = None if self.residual is None else self.residual[front]
        state = FrontState(self.sq[front], residual, self.times[len(self.rows) - 1])
        key = state.keys()
        gone = np.zeros(len(front), dtype=bool)
        picked = []
        while len(self.rows) < self.n:
            j = int(key.argmin())
            if key[j] == np.inf or not (float(key[j]), int(front[j])) < limit:
                break
            picked.append(j)
            self.rows.append(int(front[j]))
            self.scores.append(float(state.sq[j]))
            state.advance_clocks(float(key[j]))
            self.times[len(self.rows) - 1] = state.now
            np.minimum(state.sq, sq_dists[j], out=state.sq)
            state.sq[j] = 0.0  # whose key is infinite
            key = state.keys()
            if self.eligible is not None:
                gone |= np.isin(front, self.take(int(front[j])))
                key[gone] = np.inf
        self.centres.add(vectors[np.array(picked, dtype=np.int64)])
        self.bound[front], self.sq[front] = key, state.sq
        if self.residual is not None:
            self.residual[front] = state.residual
        self.picks_applied[front] = self.centres.count
        if picked and 8 * len(picked) < self._width:
            self._width = max(_SMALLEST_FRONT, self._width // 2)
        elif 2 * len(picked) > self._width:
            self._width = min(_FRONT, self._width * 2)
        self.put_aside(front[picked])
        self.tighten()
        return bool(picked)

    def current_front(self, group: Rows, width: int) -> tuple[Rows, tuple[float, int]]:
        """The group's rows with the smallest keys, and the (bound, row) that comes after them."""
        # Looking further ahead each time keeps updates few where bounds are loose.
        ahead, further = 2 * _FRONT, width
        while True:
            chosen, (bar, place) = smallest(self.bound[group], width)
            # Rows that are picked, or can never be, have an infinite bound and nothing to update.
            front = group[chosen][self.bound[group[chosen]] < np.inf]
            if (self.picks_applied[front] < self.centres.count).any():
                next_up = group[smallest(self.bound[group], ahead)[0]]
                behind = self.picks_applied[next_up] < self.centres.count
                rows = next_up[behind & (self.bound[next_up] < np.inf)]
                self.catch_up(rows)
                self.picks_applied[rows] = self.centres.count
                ahead *= 2
            elif not self.settled[front].all():
                next_up = group[smallest(self.bound[group], further)[0]]
                ready = (self.picks_applied[next_up] == self.centres.count) & ~self.settled[next_up]
                rows = next_up[ready & (self.bound[next_up] < np.inf)]
                self.settle(rows)
                self.settled[rows] = True
                further *= 2
            else:
                return front, (bar, int(group[place]) if place < len(group) else len(self.bound))
