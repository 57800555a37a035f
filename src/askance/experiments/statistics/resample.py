"""The bootstrap over seeds, exact where seeds are few."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from askance.experiments.statistics.table import Floats
from askance.seeding import Draws

EXACT = 6  # up to 6⁶ = 46,656 resamples are all there are; more seeds are drawn
DRAWN = 10_000
DRAWN_MEANS = 100_000  # which cost little; the tail for seven numbers is 4 resamples in 1,000
LEVEL = 0.95
FEWEST = 5
"""How many seeds a test or an interval needs to be shown. Of 4,000 simulated 95% intervals of normal
differences, 92% hold the truth with five seeds, 87% with four, 75% with three and 50% with two."""


@dataclass(frozen=True)
class Interval:
    """A number with its interval; an end is infinite where the resamples have none, NaN where n < 2."""

    value: float
    low: float
    high: float
    n: int
    level: float = LEVEL


@cache
def resamples(n: int, drawn: int = DRAWN) -> NDArray[np.int64]:
    """(B, n) positions drawn with replacement: all nⁿ where n ≤ 6, else so many at random."""
    if n <= EXACT:
        return np.array(list(itertools.product(range(n), repeat=n)), dtype=np.int64)
    return Draws(0).generator("bootstrap").integers(n, size=(drawn, n))


def interval(value: float, statistic_B: Floats, n: int, level: float = LEVEL) -> Interval:
    """The percentile interval of a statistic's resamples, expanded for few seeds.

    A bootstrap of n numbers is too narrow twice over: its variance has n where n − 1 belongs, and its
    tails are normal where Student's belong. Hesterberg (2015, "What teachers should know about the
    bootstrap", §3.3) takes the percentile Φ(−√(n/(n − 1)) t) in place of (1 − level)/2. For normal
    differences a plain 95% interval of five seeds holds the truth 84% of the time, this one 92%; with
    fewer seeds no bootstrap can (`FEWEST`), since it never leaves the range of what was seen.
    """
    if n < 2:
        return Interval(value, np.nan, np.nan, n, level)
    t = stats.t.ppf((1 + level) / 2, n - 1)
    tail = float(stats.norm.cdf(-np.sqrt(n / (n - 1)) * t))
    # Order statistics, not their mixtures: an infinite one must not make its neighbours NaN.
    low = np.quantile(statistic_B, tail, method="lower")
    high = np.quantile(statistic_B, 1 - tail, method="higher")
    return Interval(value, float(low), float(high), n, level)


def mean_interval(values_S: Floats, level: float = LEVEL) -> Interval:
    """The mean of some numbers, one a seed, with its interval."""
    n = len(values_S)
    means = values_S[resamples(n, DRAWN_MEANS)].mean(axis=1) if n > 1 else values_S
    return interval(float(values_S.mean()), means, n, level)
