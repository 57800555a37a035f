"""Uncertainty herding: cover what the model is uncertain of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding, Evaluation
from askance.strategies.base import Labeled, Need, labeled_features, logits_of
from askance.strategies.coverage import Covering
from askance.strategies.margin import margins


@dataclass(frozen=True)
class UHerding(Covering):
    """Greedy maximum of Σ_e u(e)·max_x k(x, e), u the margin uncertainty: cover what is uncertain.

    As `maxherding`, with each point e of the sample weighted by u(e) = 1 − (p₁ − p₂), p₁ ≥ p₂ its two
    largest probabilities. A pick's score is the gain Σ_e u(e)·(k(x, e) − cov(e))₊.

    Args:
        bandwidth: σ² is this many times the median squared distance of the sample to the nearest
            labelled point.
        sample: how many points of the pool the coverage is measured on.

    Reference:
        Bae, Oliveira & Sutherland, *Uncertainty Herding: One Active Learning Method for All Label
        Budgets*, ICLR 2025, Algorithm 1.

    Deviations: probabilities are the model's own, where the paper calibrates a temperature on a part of
    the labelled set. σ² is a median distance to the nearest labelled point, where the paper has σ the
    smallest distance between two labelled points; both shrink as labels come in. For sample, length and
    ties see `maxherding`.
    """

    bandwidth: float = 1.0
    sample: int = 4000

    name: ClassVar[str] = "uherding"
    because: ClassVar[str] = "it stands for many items of which the model is unsure"
    cost: ClassVar[str] = "≤ (n·N + L)·4000·D"
    needs = frozenset[Need]({"logits", "features", "labeled"})
    multilabel = False

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Tensor | None:
        return None if labeled is None else labeled_features(self, labeled)

    def weigh(self, rows: Embedding, reference: Any) -> Tensor:
        return 1.0 - margins(logits_of(rows).double())

    def covered_by(self, reference: Any) -> Tensor | None:
        features: Tensor | None = reference
        return features
