"""The paper's theory as software: the bound, the method it holds for, and Proposition A.1's rate.

Example:
    >>> from askance.paper.theory import bound
    >>> terms = bound(0.1, [0.05] * 100, gamma=0.01, epsilon=0.01, n=1000, m=500, d=3000)
    >>> f"{terms.empirical:.3f} + {terms.confidence:.3f} + {terms.discrepancy:.3f}"
    '0.158 + 0.013 + 0.010'

The bound is that of Luo, Luo & Li, *Generalization bounds for gradient methods via discrete and
continuous prior*, NeurIPS 35 (2022), arXiv:2205.13799. Their definitions, theorems and algorithms
are cited by the numbers of the version they submitted.
"""

from askance.paper.theory.bound import (
    Bound,
    bound,
    catoni_constant,
    cumulative_sum,
    simplified_sum,
)
from askance.paper.theory.floored import FlooredSGD
from askance.paper.theory.rate import ContractionRate, rates

__all__ = [
    "Bound",
    "ContractionRate",
    "FlooredSGD",
    "bound",
    "catoni_constant",
    "cumulative_sum",
    "rates",
    "simplified_sum",
]
