"""How good a model is, how much better than an earlier one, and how alike two models predict.

Shapes: N items.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askance.errors import InputError


@dataclass(frozen=True)
class Estimate:
    """A share of right predictions, of n, with its interval."""

    accuracy: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Gain:
    """A difference in accuracy, with its interval."""

    gain: float
    low: float
    high: float

    def times(self, factor: float) -> Gain:
        """The same gain in another unit; a difference of accuracies stays within −1 and 1."""
        return Gain(*(min(1.0, max(-1.0, end * factor)) for end in vars(self).values()))


def normal_quantile(level: float) -> float:
    """z of a two-sided interval: 1.96 for a level of 0.95."""
    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(right: float, n: int, level: float = 0.95) -> Estimate:
    """The share `right`/n with Wilson's score interval (1927).

    (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n); it holds its level for small n and p near 1.

    Example:
        >>> round(wilson(20, 20).low, 3)
        0.839
    """
    z = normal_quantile(level)
    p, z2 = right / n, z * z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return Estimate(p, max(0.0, centre - half), min(1.0, centre + half), n)


def paired_gain(
    before_N: NDArray[np.bool_], after_N: NDArray[np.bool_], level: float = 0.95
) -> Gain:
    """The difference of two models' accuracies on the same N items.

    With b items only the later model gets right and c only the earlier one, Bonett & Price's interval
    (2012) for a paired difference: p̃ = (b+1)/(n+2), q̃ = (c+1)/(n+2),
    p̃ − q̃ ± z·√((p̃ + q̃ − (p̃ − q̃)²)/(n+2)). The gain itself is the plain (b − c)/n.
    """
    n = len(before_N)
    b, c = int((after_N & ~before_N).sum()), int((before_N & ~after_N).sum())
    p, q = (b + 1) / (n + 2), (c + 1) / (n + 2)
    half = normal_quantile(level) * sqrt((p + q - (p - q) ** 2) / (n + 2))
    return Gain((b - c) / n, max(-1.0, p - q - half), min(1.0, p - q + half))


def cohen_kappa(one_N: ArrayLike, other_N: ArrayLike) -> float:
    """Cohen's kappa (1960): how far two lists of N classes agree beyond chance.

    κ = (A_o − A_e)/(1 − A_e), with A_o the share of items on which they agree, and A_e the share
    expected of two that answer independently, each with its own frequencies of classes. It is NaN where
    both give every item the same class: then agreement says nothing.

    Example:
        >>> cohen_kappa([0, 0, 1, 1], [0, 0, 1, 0])
        0.5
    """
    one, other = np.asarray(one_N), np.asarray(other_N)
    if one.shape != other.shape or one.ndim != 1 or not len(one):
        raise InputError(
            f"kappa takes two lists of classes of the same items, got shapes {one.shape} and "
            f"{other.shape}"
        )
    names, codes = np.unique(np.concatenate([one, other]), return_inverse=True)
    if len(names) == 1:
        return nan
    shares = [np.bincount(part, minlength=len(names)) / len(one) for part in np.split(codes, 2)]
    expected = float(shares[0] @ shares[1])
    return (float((one == other).mean()) - expected) / (1 - expected)
