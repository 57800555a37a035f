"""MaxHerding: cover the pool, whatever a model says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding, Evaluation
from askance.strategies.base import Labeled, Need, labeled_features
from askance.strategies.coverage import Covering, equal_weights


@dataclass(frozen=True)
class MaxHerding(Covering):
    """Greedy maximum of Σ_e max_x k(x, e) over labelled and picked points x: cover the pool.

    Each pick x has the largest Σ_e (k(x, e) − cov(e))₊, with cov(e) = max k(x', e) over the labelled
    and the earlier picked points x'. k(x, e) = exp(−‖h_x − h_e‖²/σ²) on features h of unit length, and
    the sum is over a sample of the pool. A pick's score is that sum. It needs no labels and no
    classifier, so it also picks a first batch.

    Args:
        bandwidth: σ² is this many times the median squared distance of the sample to the nearest
            labelled point; without labels, between two points of the sample.
        sample: how many points of the pool the coverage is measured on.

    Reference:
        Bae, Noh & Sutherland, *Generalized Coverage for More Robust Low-Budget Active Learning*, ECCV
        2024, Algorithm 1.

    Deviations: σ² follows the data, where the paper has σ = 1. Coverage is measured on a sample where
    the pool is larger than `sample`. A row of zeros keeps length zero. Ties go to the lowest index.
    Greedy picks are exact, by stale upper bounds.
    """

    bandwidth: float = 1.0
    sample: int = 4000

    name: ClassVar[str] = "maxherding"
    because: ClassVar[str] = "it stands for many items that are like it"
    cost: ClassVar[str] = "≤ (n·N + L)·4000·D"
    needs = frozenset[Need]({"features"})
    takes_targets = True
    optional = frozenset[Need]({"labeled"})

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Tensor | None:
        return None if labeled is None else labeled_features(self, labeled)

    def weigh(self, rows: Embedding, reference: Any) -> Tensor:
        return equal_weights(rows)

    def covered_by(self, reference: Any) -> Tensor | None:
        features: Tensor | None = reference
        return features
