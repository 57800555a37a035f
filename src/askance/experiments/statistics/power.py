"""What a number of seeds could have seen."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
from scipy import integrate, optimize, stats
from scipy.special import ndtr

from askance.experiments.statistics.paired import ALPHA


def power(difference: float, std: float, n: int, alpha: float = ALPHA) -> float:
    """The chance that a two-sided paired t-test of n seeds finds a true mean difference.

    T = (Z + ν) / (X/√k), Z normal, X of the chi distribution with k = n − 1 degrees of freedom and
    ν = √n δ/σ. So P(|T| > c) is the mean of Φ(ν − cX/√k) + Φ(−ν − cX/√k) over X. (The library's own
    noncentral t gives NaN in its far tails, which few seeds and many pairs do reach.)
    """
    if n < 2:
        return 0.0
    if std == 0:
        return 1.0 if difference else 0.0
    k = n - 1
    critical = stats.t.isf(alpha / 2, k)
    noncentrality = abs(difference) / std * np.sqrt(n)
    scale = critical / np.sqrt(k)
    chi = stats.chi(k)

    def density(x: float) -> float:
        tails = ndtr(noncentrality - scale * x) + ndtr(-noncentrality - scale * x)
        return float(tails * chi.pdf(x))

    low, high = chi.ppf(1e-12), chi.isf(1e-12)
    # Where Φ steps from one to zero, in a width of 1/scale: the integral is told.
    steps = (noncentrality + np.array([-8.0, 0.0, 8.0])) / scale
    edges = [low, *(x for x in np.sort(steps) if low < x < high), high]
    parts = [integrate.quad(density, a, b, epsabs=1e-11)[0] for a, b in pairwise(edges)]
    return float(min(sum(parts), 1.0))


def detectable(std: float, n: int, alpha: float = ALPHA, chance: float = 0.8) -> float:
    """The smallest true mean difference that n seeds find with that chance; infinite where n < 2."""
    if n < 2:
        return np.inf
    if std == 0:
        return 0.0
    return std * _stds(n, alpha, chance)


@cache
def _stds(n: int, alpha: float, chance: float) -> float:
    """What is detectable in standard deviations; the same for all experiments of as many seeds."""
    high = 1.0
    while power(high, 1.0, n, alpha) < chance:
        high *= 2
    return float(optimize.brentq(lambda d: power(d, 1.0, n, alpha) - chance, 0.0, high))
