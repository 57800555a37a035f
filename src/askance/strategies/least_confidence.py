"""Least confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding
from askance.gradients.last_layer import pseudo_residuals
from askance.seeding import Draws
from askance.strategies.base import Need, Pointwise, logits_of


@dataclass(frozen=True)
class LeastConfidence(Pointwise):
    """1 − p_ŷ = Σ_{k≠ŷ} p_k: the probability that the model's own answer is wrong.

    Reference:
        Lewis & Gale, *A Sequential Algorithm for Training Text Classifiers*, 1994.

    Deviations: summed over the other classes, so that confident points keep their digits.
    """

    name: ClassVar[str] = "least-confidence"
    because: ClassVar[str] = "the model is not sure of its answer"
    cost: ClassVar[str] = "N·C"
    needs = frozenset[Need]({"logits"})
    multilabel = False

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        return -pseudo_residuals(logits_of(block)).amin(dim=1)
