"""Numbers over experiments: a mean whose units are datasets, and in how many of them a claim holds.

Experiments of one dataset share their data, so they are no independent observations.
Shapes: E experiments, D datasets, S seeds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from askance.experiments.statistics.resample import (
    DRAWN_MEANS,
    LEVEL,
    Interval,
    interval,
    resamples,
)
from askance.experiments.statistics.table import Floats


def clustered(values_E: Floats, of: Sequence[Hashable], level: float = LEVEL) -> Interval:
    """The mean with Student's interval of D − 1 degrees of freedom; `of` names the dataset of each.

    With u_d the sum of x_e − m over a dataset, the standard error is √(D/(D − 1) Σ u_d²)/E (the
    cluster-robust one: Cameron & Miller 2015, eq. 11). One experiment a dataset: Student's.
    """
    sums_D, counts_D = _by_cluster(values_E, of)
    clusters, value = len(sums_D), float(values_E.mean())
    if clusters < 2:
        return Interval(value, np.nan, np.nan, clusters, level)
    u_D = sums_D - value * counts_D
    error = np.sqrt(clusters / (clusters - 1) * np.square(u_D).sum()) / len(values_E)
    width = float(stats.t.ppf((1 + level) / 2, clusters - 1) * error)
    return Interval(value, value - width, value + width, clusters, level)


def resampled(values_E: Floats, of: Sequence[Hashable], level: float = LEVEL) -> Interval:
    """The same mean with a bootstrap that draws datasets, each with all of its experiments."""
    sums_D, counts_D = _by_cluster(values_E, of)
    clusters, value = len(sums_D), float(values_E.mean())
    drawn_BD = resamples(clusters, DRAWN_MEANS)
    means_B = sums_D[drawn_BD].sum(axis=1) / counts_D[drawn_BD].sum(axis=1)
    return interval(value, means_B, clusters, level)


def _by_cluster(values_E: Floats, of: Sequence[Hashable]) -> tuple[Floats, NDArray[np.int64]]:
    """Sum and number of each dataset's values."""
    names = list(dict.fromkeys(of))
    at_E = np.array([names.index(name) for name in of], dtype=np.int64)
    sums_D = np.asarray(np.bincount(at_E, weights=values_E), dtype=np.float64)
    return sums_D, np.asarray(np.bincount(at_E), dtype=np.int64)


def holm(p_E: Floats, alpha: float) -> NDArray[np.bool_]:
    """Which of some hypotheses Holm's method rejects: p_(k) ≤ α/(E − k + 1) for it and all before."""
    order = np.argsort(p_E, kind="stable")
    passed = p_E[order] * np.arange(len(p_E), 0, -1) <= alpha
    rejected = np.zeros(len(p_E), dtype=bool)
    rejected[order] = np.logical_and.accumulate(passed)
    return rejected


def how_many(each: Sequence[Floats], limit: float = 0.0, level: float = LEVEL) -> Interval:
    """In how many experiments a mean difference over seeds is above a limit.

    The number seen is that of means above it. At least those that are significantly above it have it,
    and at most all but those significantly below: one-sided t-tests at (1 − level)/2, each side
    corrected over the experiments by Holm's method, which bounds the number of false ones at zero. So
    the interval holds the true number of *these* experiments at that level, however they depend.

    Args:
        each: the (S,) differences of every experiment, at least two of each.
    """
    p_E = np.array([_above(values_S, limit) for values_S in each])
    alpha = (1 - level) / 2
    low, below = int(holm(p_E, alpha).sum()), int(holm(1 - p_E, alpha).sum())
    count = sum(float(values_S.mean()) > limit for values_S in each)
    return Interval(count, low, len(each) - below, len(each), level)


def _above(values_S: Floats, limit: float) -> float:
    """p of the t-test that a mean is above a limit; ½ where all values are the limit."""
    more = float(values_S.mean()) - limit
    error = float(values_S.std(ddof=1)) / np.sqrt(len(values_S))
    if error <= _ROUNDING:
        return 0.5 if abs(more) <= _ROUNDING else float(more < 0)
    return float(stats.t.sf(more / error, len(values_S) - 1))


_ROUNDING = 4 * float(np.finfo(np.float64).eps)
