"""The numbers the studies report, each a function of arrays alone.

Shapes: N pool points; B picks; T epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata, spearmanr

from askance.errors import InputError
from askance.paper.theory.bound import cumulative_sum, simplified_sum

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Spread:
    """How far apart a batch lies in its pool.

    Args:
        mean_distance: over the pairs of picks.
        coverage_radius: from the pool point farthest from all picks to the nearest of them.
        close_share: of the pairs of picks, those closer than a limit.
    """

    mean_distance: float
    coverage_radius: float
    close_share: float


def close_limit(distances_NN: Floats, quantile: float = 0.01) -> float:
    """The distance under which this share of the pool's pairs lies."""
    return float(np.quantile(distances_NN[np.triu_indices(len(distances_NN), 1)], quantile))


def spread(distances_NN: Floats, picks: Rows, limit: float) -> Spread:
    """The spread of at least two picks, given as rows of the pool's distance matrix."""
    if len(picks) < 2:
        raise InputError(f"the spread of a batch needs at least two picks, got {len(picks)}")
    pairs = distances_NN[np.ix_(picks, picks)][np.triu_indices(len(picks), 1)]
    return Spread(
        mean_distance=float(pairs.mean()),
        coverage_radius=float(distances_NN[:, picks].min(axis=1).max()),
        close_share=float((pairs < limit).mean()),
    )


def auroc(inside: ArrayLike, outside: ArrayLike) -> float:
    """P(score outside > score inside), ties counted half: 0.5 is a detector that sees nothing.

    With R the sum of the ranks of the m outside scores among all n + m, it is
    (R − m(m + 1)/2) / (n m), the Mann–Whitney statistic.
    """
    n, m = np.size(inside), np.size(outside)
    if n == 0 or m == 0:
        raise InputError(f"AUROC needs scores of both kinds, got {n} inside and {m} outside")
    ranks = rankdata(np.concatenate([np.ravel(inside), np.ravel(outside)]))
    return float((ranks[n:].sum() - m * (m + 1) / 2) / (n * m))


def rank_correlation(one: ArrayLike, other: ArrayLike) -> float | None:
    """Spearman's ρ; None where one of them is constant and has no ranks."""
    one, other = np.asarray(one), np.asarray(other)
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(spearmanr(one, other).statistic)


def overlap(one: Rows, other: Rows) -> float:
    """The share of two batches of one size that they have in common."""
    if len(one) != len(other) or len(one) == 0:
        raise InputError(f"overlap is of two batches of one size, got {len(one)} and {len(other)}")
    return len(np.intersect1d(one, other)) / len(one)


@dataclass(frozen=True)
class Contraction:
    """A discrepancy series d_1 … d_T held against Assumption 1 (d_{t+1} ≤ d_t for all t ≥ t₀).

    The weights γ_t²/ε_t² of the bound are taken as 1.

    Args:
        first: t₀, from 1; T where the last step rises, and the assumption then says nothing.
        rises: how many of the T − 1 steps have d_{t+1} > d_t.
        largest_rise: the largest (d_{t+1} − d_t)/d_t; 0 where none rises.
        total: Σ_{t=1}^T d_t², the bound's cumulative term.
        tail: Σ_{t=t₀}^T d_t², what the simplified form stands for.
        simplified: κ d_{t₀}² with κ = T − t₀ + 1.
        fall: 1 − d_T/d_1, which is above 0 where the series ends lower than it began.
        rarity: ½ less the share of steps that rise.
        calm: the relative change over the first third of the series less that over the last.
    """

    first: int
    rises: int
    largest_rise: float
    total: float
    tail: float
    simplified: float
    fall: float
    rarity: float
    calm: float


def contraction(series: Sequence[float] | Floats) -> Contraction:
    """Where a series starts to decrease for good, where it rises, and its part in the bound.

    Args:
        series: at least two numbers above 0.
    """
    d_T = np.asarray(series, dtype=np.float64)
    if d_T.ndim != 1 or len(d_T) < 2 or not np.all(d_T > 0):
        raise InputError(
            f"a series of at least two numbers above 0 is needed, got shape {d_T.shape}"
        )
    rises = np.flatnonzero(d_T[1:] > d_T[:-1]) + 1
    first = int(rises[-1]) + 1 if len(rises) else 1
    third = len(d_T) // 3
    change_first, change_last = (
        abs(float(part[-1] / part[0]) - 1) for part in (d_T[: third + 1], d_T[-third - 1 :])
    )
    ones_T = np.ones(len(d_T))
    return Contraction(
        first=first,
        rises=len(rises),
        largest_rise=max((float(d_T[t] / d_T[t - 1] - 1) for t in rises), default=0.0),
        total=cumulative_sum(d_T, ones_T),
        tail=cumulative_sum(d_T[first - 1 :], ones_T[first - 1 :]),
        simplified=simplified_sum(d_T, ones_T, first),
        fall=float(1 - d_T[-1] / d_T[0]),
        rarity=float(0.5 - len(rises) / (len(d_T) - 1)),
        calm=change_first - change_last,
    )
