"""What a number of seeds could have seen."""

from __future__ import annotations

import numpy as np
from scipy import optimize, stats

from askance.bench.stats.paired import ALPHA


def power(difference: float, std: float, n: int, alpha: float = ALPHA) -> float:
    """The chance that a two-sided paired t-test of n seeds finds a true mean difference.

    T has the noncentral t distribution with n − 1 degrees of freedom and noncentrality √n δ/σ.
    """
    if n < 2:
        return 0.0
    if std == 0:
        return 1.0 if difference else 0.0
    critical = stats.t.ppf(1 - alpha / 2, n - 1)
    noncentrality = abs(difference) / std * np.sqrt(n)
    # The other tail is below 1e-9 beyond 10, where its formula gives NaN.
    other = stats.nct.cdf(-critical, n - 1, noncentrality) if noncentrality < 10 else 0.0
    return float(stats.nct.sf(critical, n - 1, noncentrality) + other)


def detectable(std: float, n: int, alpha: float = ALPHA, chance: float = 0.8) -> float:
    """The smallest true mean difference that n seeds find with that chance; infinite where n < 2."""
    if n < 2:
        return np.inf
    if std == 0:
        return 0.0
    high = 1.0
    while power(high, 1.0, n, alpha) < chance:
        high *= 2
    return std * float(optimize.brentq(lambda d: power(d, 1.0, n, alpha) - chance, 0.0, high))
