"""Paired t-tests of every pair, and Benjamini–Hochberg over them.

Shapes as in `table`; `...` stands for any leading shape, so that a thousand rounds are one call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from askance.experiments.statistics.table import Floats

ALPHA = 0.05
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The tests of all pairs i < j of M methods on the same seeds.

    Args:
        first, second: (P,) the methods i and j of each pair.
        seeds: (..., P) how many seeds both have.
        mean: (..., P) mean of a_i − a_j over them.
        std: (..., P) its standard deviation, with S − 1.
        p: (..., P) two-sided; NaN where a pair has fewer than two seeds in common and is not tested.
        adjusted: (..., P) after Benjamini–Hochberg over the tested pairs; NaN likewise.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    seeds: NDArray[np.int64]
    mean: Floats
    std: Floats
    p: Floats
    adjusted: Floats

    @property
    def infinite(self) -> NDArray[np.bool_]:
        """Where every seed gave the same difference and it is not zero: t is infinite, p is 0."""
        return np.isfinite(self.p) & (self.std == 0) & (self.mean != 0)

    def at(self, rows: NDArray[np.int64] | list[int]) -> Pairs:
        """Some rows of the first leading axis."""
        numbers = ("seeds", "mean", "std", "p", "adjusted")
        return replace(self, **{name: getattr(self, name)[rows] for name in numbers})

    def wins(
        self, methods: int, alpha: float = ALPHA, *, corrected: bool = True
    ) -> NDArray[np.bool_]:
        """(..., M, M): whether i beats j, adjusted p < α. Identical accuracies are no win.

        A one-sided p in the direction of the mean is half of the two-sided one, before and after the
        correction: for one-sided tests at α, pass 2α.

        Args:
            corrected: False for the p of each pair as it is.
        """
        with np.errstate(invalid="ignore"):
            significant = (self.adjusted if corrected else self.p) < alpha
            won = np.zeros((*self.p.shape[:-1], methods, methods), dtype=bool)
            won[..., self.first, self.second] = significant & (self.mean > 0)
            won[..., self.second, self.first] = significant & (self.mean < 0)
        return won


def pairwise(accuracy_MS: Floats) -> Pairs:
    """Test every pair of methods on the seeds both have: (..., M, S), NaN where a seed is missing.

    t = mean / (std / √S) with S − 1 degrees of freedom. All differences zero: p = 1. All differences
    the same and not zero: t is infinite and p = 0, which is what the t-test says, and which few seeds
    and a small test set can bring about by chance; `Pairs.infinite` tells where.
    """
    first, second = np.triu_indices(accuracy_MS.shape[-2], k=1)
    differences = accuracy_MS[..., first, :] - accuracy_MS[..., second, :]
    seeds, mean, std = _moments(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, np.abs(mean) * np.sqrt(seeds) / std)
        p = 2 * stats.t.sf(t, np.maximum(seeds - 1, 1))
    p = np.where(seeds < 2, np.nan, p)
    return Pairs(first, second, seeds, mean, std, p, benjamini_hochberg(p))


def benjamini_hochberg(p: Floats) -> Floats:
    """Adjusted p-values over the last axis (Benjamini & Hochberg 1995); NaN is no test."""
    adjusted = np.full(p.shape, np.nan)
    if p.shape[-1] == 0:
        return adjusted
    rows, out = p.reshape(-1, p.shape[-1]), adjusted.reshape(-1, p.shape[-1])
    whole = np.isfinite(rows).all(axis=-1)
    if whole.any():
        out[whole] = stats.false_discovery_control(rows[whole], axis=-1)
    for i in np.flatnonzero(~whole):
        tested = np.isfinite(rows[i])
        if tested.any():
            out[i, tested] = stats.false_discovery_control(rows[i, tested])
    return adjusted


def _moments(differences: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Count, mean and standard deviation over the last axis, NaN left out; NaN where nothing is left.

    0.9 − 0.8 and 0.5 − 0.4 are the same difference but for rounding: a standard deviation within that
    of numbers up to 1 is exactly 0.
    """
    there = np.isfinite(differences)
    count = there.sum(axis=-1)
    filled = np.where(there, differences, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = filled.sum(axis=-1) / count
        squares = np.where(there, (differences - mean[..., None]) ** 2, 0.0).sum(axis=-1)
        std = np.where(count > 1, np.sqrt(squares / (count - 1)), np.nan)
    return count, mean, np.where(std <= _ROUNDING, 0.0, std)
