"""Exact D² sampling (k-means++ seeding) by lazy exponential clocks.

Row i draws a residual R_i ~ Exp(1) once. It runs down at rate w_i, the row's squared distance to the
nearest pick. The row whose residual reaches zero first is the next pick. Waiting times are memoryless,
so each pick is distributed ∝ w: exact D² sampling from N numbers drawn once. So picks do not depend on
the order of blocks, shards or devices.

With t the time so far, row i fires at t + R_i / w_i, R_i what is *left* of its residual. w only falls,
so an old firing time is a lower bound: the loop of `lazy` applies.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from askance.errors import InputError
from askance.picking.copies import Copies
from askance.picking.eligible import Eligible
from askance.picking.lazy import ZERO, LazyGreedy, firing_times
from askance.picking.points import Floats, Points, Rows, Vectors, portions, running_min
from askance.picking.topk import Picks

_BLOCK = 4096
_DENSE_UNTIL = 16
# Of a column for each pick and a row for each clock, all needed at once to run some clocks down.
_MATRICES = 8


def kmeanspp(
    points: Points, n: int, residuals_N: Floats, eligible: Eligible | None = None
) -> Picks:
    """n rows by D² sampling; the first is the one of largest norm.

    Under limits each pick is drawn ∝ D² among the rows that are eligible then: a clock's waiting time
    does not depend on the clocks of other rows.

    Args:
        points: the pool.
        n: how many.
        residuals_N: (N,) Exp(1) draws, one a row.
        eligible: which rows may be picked; all of them when None.

    Returns:
        Picks with D² at the time of each (the squared norm for the first).
    """
    clocks = Clocks(points, n, residuals_N, eligible)
    if eligible is None or eligible.mask.any():
        clocks.start(*clocks.longest())
    return clocks.run()


class Clocks(LazyGreedy):
    """A pool's clocks: what is left of each residual, and the rate it runs down at."""

    residual: Floats

    def __init__(
        self, points: Points, n: int, residuals_N: Floats, eligible: Eligible | None = None
    ) -> None:
        super().__init__(points, n, residuals_N, eligible)
        # The dense pass keeps bounds of its own: weights from above, residuals from below.
        self._upper_sq = np.full(len(points), np.finfo(np.float64).max)
        self._lower_residual = residuals_N.copy()
        self._dense_count = 0
        self._work = 0
        self._copies = Copies(points)

    def longest(self) -> tuple[int, Vectors]:
        """The eligible row of largest norm, the first of several, and its vector."""
        norms = self.points.sq_norms
        if self.eligible is not None:
            norms = np.where(self.eligible.mask, norms, -1.0)
        # Every row whose float32 norm could be the largest, compared in float64.
        candidates = np.flatnonzero(norms >= norms.max() * (1 - 2 * self.points.slack))
        vectors = self.points.exact(candidates)
        j = int(vectors.sq_norms.argmax())
        return int(candidates[j]), vectors[j : j + 1]

    def start(self, row: int, vector: Vectors) -> None:
        """Make a row the first pick."""
        self.rows.append(row)
        self.scores.append(float(vector.sq_norms[0]))
        self.centres.add(vector)
        self._dense()
        self.put_aside(np.array([row]))
        self.take(row)

    def put_aside(self, picks: Rows) -> None:
        """Picks and their copies never fire again; `leftovers` brings the copies' clocks up to date."""
        super().put_aside(picks)
        self.bound[self._copies.of(picks)] = np.inf

    def catch_up(self, rows: Rows) -> None:
        self._catch_up_clocks(rows)
        # Where this has cost more than a pass over the whole pool would have, make one; not more
        # often than the picks double, since there are pools that float32 cannot tell apart.
        since = self.centres.count - self._dense_count
        if self._work > len(self.points) * since and self.centres.count >= 2 * self._dense_count:
            self._dense()

    def _catch_up_clocks(self, rows: Rows) -> None:
        for start in np.unique(self.picks_applied[rows]).tolist():
            alike = rows[self.picks_applied[rows] == start]
            pending = self.centres.count - start
            for part in portions(alike, _MATRICES * pending):
                self.advance_clocks(part, start)
            self._work += len(alike) * pending

    def advance_clocks(self, rows: Rows, start: int) -> None:
        """Run the clocks of rows that reflect `start` picks through the later ones."""
        least, left = self.sq[rows], self.residual[rows]
        sq_dists = self.points.nearer_sq_dists(rows, self.centres, start, least)
        # Column j holds the weight before pick start + j, at which the clock runs until that pick.
        weights = running_min(np.concatenate([least[:, None], sq_dists], axis=1))
        times = self.times[max(start - 1, 0) : start + sq_dists.shape[1]]
        lengths = np.maximum(np.diff(times, prepend=times[: start == 0]), 0.0)
        # Subtracted one after the other: their sum would have other last digits, and so would the clock
        # of a row that is brought up to date less often.
        spent = np.concatenate([left[:, None], weights[:, :-1] * lengths], axis=1)
        self.residual[rows] = np.subtract.reduce(spent, axis=1)
        self.sq[rows] = weights[:, -1]
        self.bound[rows] = firing_times(times[-1], self.residual[rows], self.sq[rows])

    def tighten(self) -> None:
        # Where few picks have been made, each of them changes most distances.
        if self.centres.count < _DENSE_UNTIL and self.centres.count >= 2 * self._dense_count:
            self._dense()

    def _dense(self) -> None:
        """Tighten every bound by one float32 pass over the centres added since the last one."""
        ends = self.times[self._dense_count : self.centres.count]
        before = self.times[max(self._dense_count - 1, 0)]
        for start in range(0, len(self.points), _BLOCK):
            view = slice(start, start + _BLOCK)
            sq = self.points.upper_sq_dists(view, self.centres, self._dense_count)
            upper, lower = self._upper_sq[view], self._lower_residual[view]
            then = before
            for j, now in enumerate(ends):
                if now > then:
                    lower -= upper * (now - then)
                np.minimum(upper, sq[:, j], out=upper)
                then = now
            np.maximum(self.bound[view], then + lower / upper, out=self.bound[view])
        self._dense_count = self.centres.count
        self._work = 0

    def leftovers(self) -> Rows:
        rows = super().leftovers()
        # Copies that were put aside have a weight from before.
        self._catch_up_clocks(rows[self.sq[rows] > ZERO])
        # Every weight left is zero: the limit of equal small weights, so the residuals decide.
        return rows[np.argsort(self.residual[rows], kind="stable")]


def kmeanspp_replay(points: Points, n: int, uniform: Callable[[], float]) -> Picks:
    """The plain cumulative-sum sampler on a stream of uniform numbers, pick for pick.

    Each pick inverts the cumulative sum of D² at the next number of the stream, redrawing where the
    number falls on a row already picked. Dense and in float64: for replaying other implementations.
    """
    vectors = points.exact(np.arange(len(points)))
    first = int(vectors.sq_norms.argmax())
    rows, scores = [first], [float(vectors.sq_norms[first])]
    sq = np.full(len(points), np.inf)
    while len(rows) < n:
        last = rows[-1]
        np.minimum(sq, vectors.sq_dists(vectors[last : last + 1])[:, 0], out=sq)
        if not sq.any():
            raise InputError(
                f"every point left is a copy of the {len(rows)} picked ones, so there is "
                f"nothing to draw the next of {n} by"
            )
        cumulative = np.cumsum(sq / sq.sum())
        # Rounding may leave the last sum below 1, and a number between the two.
        last_row = int(np.flatnonzero(sq)[-1])
        row = last
        while row in rows:
            row = min(int(np.searchsorted(cumulative, uniform())), last_row)
        rows.append(row)
        scores.append(float(sq[row]))
    return Picks(np.array(rows, dtype=np.int64), np.array(scores))
