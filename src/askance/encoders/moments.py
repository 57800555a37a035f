"""Mean and deviation of features that come block by block, as those of all features at once.

Of two parts with n and m rows, means μ and ν and sums of squared deviations S and T:

    mean = μ + (ν − μ)·m/(n + m),   squares = S + T + (ν − μ)²·nm/(n + m)

Sums of x² would lose the digits of a feature whose mean is large beside its deviation.

Paper: Chan, Golub & LeVeque 1983, Algorithms for computing the sample variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askance.encoders.linear import Floats, Standardiser


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Of some rows of features.

    Args:
        count: how many rows.
        mean: (D,); zero where there is no row.
        squares: (D,), the sum of squared deviations from the mean.

    Example:
        >>> import numpy as np
        >>> first, second = np.array([[0.0], [2.0]]), np.array([[7.0]])
        >>> both = FeatureMoments.of(first) + FeatureMoments.of(second)
        >>> both.count, both.mean.tolist(), both.squares.tolist()
        (3, [3.0], [26.0])
    """

    count: int
    mean: Floats
    squares: Floats

    @classmethod
    def none(cls, dimension: int) -> FeatureMoments:
        """Of no rows of D features."""
        return cls(0, np.zeros(dimension), np.zeros(dimension))

    @classmethod
    def of(cls, features_ND: NDArray[np.floating]) -> FeatureMoments:
        """Of (N, D) features, in float64."""
        if not len(features_ND):
            return cls.none(features_ND.shape[1])
        mean = features_ND.mean(axis=0, dtype=np.float64)
        return cls(len(features_ND), mean, ((features_ND - mean) ** 2).sum(axis=0))

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        count = self.count + other.count
        share = other.count / max(1, count)
        apart = other.mean - self.mean
        squares = self.squares + other.squares + apart**2 * (self.count * share)
        return FeatureMoments(count, self.mean + apart * share, squares)

    def standardiser(self) -> Standardiser:
        """The shift and scale of these rows."""
        return Standardiser.of_moments(self.mean, np.sqrt(self.squares / max(1, self.count)))
