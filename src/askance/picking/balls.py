"""Greedy cover by balls of one radius, and the radius at which balls are pure.

Which pairs are within δ is read from one float32 matrix product a block. The few pairs that it leaves
open are decided by their difference in float64, so that every pass over the pool sees the same graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.picking.eligible import Eligible, LimitedRows, best_eligible
from askance.picking.points import Floats, Rows
from askance.picking.topk import Picks

_ENTRIES = 1 << 22


def cover(
    units_ND: Tensor,
    covered_LD: Tensor,
    radius: float,
    n: int,
    ties_N: Floats,
    eligible: Eligible | None = None,
) -> Picks:
    """n rows, each within `radius` of the most rows that no labelled row or earlier pick covers.

    Args:
        units_ND: the pool, rows of length 1 (or 0).
        covered_LD: rows whose balls are there before the first pick.
        radius: of a ball, without its edge.
        ties_N: where rows cover as many, the smallest of these goes first.
        eligible: which rows may be picked; all of them when None.

    Returns:
        Picks, and how many rows each was the first to cover: 0 once all are covered.
    """
    pairs = _Pairs(units_ND, radius)
    open_N = ~pairs.near_any(covered_LD)
    degrees_N = pairs.degrees(np.flatnonzero(open_N))
    eligible = eligible or LimitedRows(len(units_ND), n)
    rows, scores = [], []
    for _ in range(n):
        most = degrees_N[eligible.mask].max(initial=0)
        if most == 0:
            break
        best = np.flatnonzero((degrees_N == most) & eligible.mask)
        row = int(best[ties_N[best].argmin()])
        rows.append(row)
        scores.append(float(most))
        eligible.take(row)
        fresh = np.flatnonzero(pairs.near(np.array([row]))[0] & open_N)
        open_N[fresh] = False
        degrees_N -= pairs.degrees(fresh)
    rest = best_eligible(ties_N.argsort(kind="stable"), n - len(rows), eligible)
    return Picks(
        np.concatenate([np.array(rows, dtype=np.int64), rest]),
        np.concatenate([np.array(scores), np.zeros(len(rest))]),
    )


def pure_radius(units_ND: Tensor, cluster_N: NDArray[np.int64], purity: float) -> float:
    """The largest radius at which this share of the balls hold rows of one cluster alone.

    A ball is pure up to the distance to the nearest row of another cluster; infinite where there is one
    cluster alone.
    """
    if (cluster_N == cluster_N[0]).all():
        return math.inf
    clusters = torch.from_numpy(cluster_N)
    pairs = _Pairs(units_ND, 0.0)
    least = []
    for block in torch.arange(len(units_ND), device="cpu").split(max(1, _ENTRIES // len(units_ND))):
        sq_BN = pairs.low_excess(units_ND[block])
        sq_BN.masked_fill_(clusters[block, None] == clusters, torch.inf)
        bar_B1 = sq_BN.amin(dim=1, keepdim=True) + 2 * pairs.slack
        i, j = (sq_BN <= bar_B1).nonzero().T
        exact = pairs.exact_sq_dists(units_ND[block], i, j)
        least.append(exact.new_full((len(block),), torch.inf).scatter_reduce(0, i, exact, "amin"))
    dists_N = torch.cat(least).sqrt_().sort().values
    # With the m smallest left out, all others are at least the next one.
    return float(dists_N[min(len(dists_N) - 1, int((1 - purity) * len(dists_N)))])


class _Pairs:
    """Which rows are within a radius of which."""

    def __init__(self, units_ND: Tensor, radius: float) -> None:
        self._rows, self._low = units_ND, units_ND.float()
        self._sq = self._low.square().sum(dim=1)
        self._sq_radius = radius**2
        # A float32 product of k terms is off by at most k·2⁻²⁴ of the lengths', which are at most 1.
        self.slack = (units_ND.shape[1] + 16) * 2.0**-22

    def near(self, rows: Rows) -> NDArray[np.bool_]:
        """(B, N): whether ‖x − y‖ < radius, for some rows of the pool and all."""
        return self._near(self._rows[torch.from_numpy(rows)])

    def near_any(self, centres_LD: Tensor) -> NDArray[np.bool_]:
        """(N,) whether a row is within the radius of any of some centres."""
        near_N = np.zeros(len(self._rows), dtype=bool)
        for part in centres_LD.split(max(1, _ENTRIES // len(self._rows))):
            near_N |= self._near(part).any(axis=0)
        return near_N

    def degrees(self, of: Rows) -> NDArray[np.int64]:
        """(N,) how many of these rows each row of the pool has within the radius."""
        degrees_N = np.zeros(len(self._rows), dtype=np.int64)
        for part in self._blocks(of):
            degrees_N += self.near(part).sum(axis=0)
        return degrees_N

    def _blocks(self, rows: Rows) -> Iterator[Rows]:
        step = max(1, _ENTRIES // len(self._rows))
        for start in range(0, len(rows), step):
            yield rows[start : start + step]

    def _near(self, centres_BD: Tensor) -> NDArray[np.bool_]:
        excess_BN = self.low_excess(centres_BD)
        near_BN = excess_BN < 0
        i, j = (excess_BN.abs_() <= self.slack).nonzero().T
        near_BN[i, j] = self.exact_sq_dists(centres_BD, i, j) < self._sq_radius
        return near_BN.numpy()

    def low_excess(self, centres_BD: Tensor) -> Tensor:
        """(B, N) ‖x − y‖² − radius² in float32, at most `slack` from the truth."""
        low_BD = centres_BD.float()
        excess_BN = torch.addmm(self._sq, low_BD, self._low.T, alpha=-2)
        return excess_BN.add_(low_BD.square().sum(dim=1, keepdim=True) - self._sq_radius)

    def exact_sq_dists(self, centres_BD: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """‖x − y‖² in float64 of pairs of a row of `centres_BD` and a row of the pool."""
        sq = torch.empty(len(i), dtype=torch.float64, device="cpu")
        for some in torch.arange(len(i), device="cpu").split(
            max(1, _ENTRIES // self._rows.shape[1])
        ):
            apart = centres_BD[i[some]].double() - self._rows[j[some]].double()
            sq[some] = apart.square_().sum(dim=1)
        return sq
