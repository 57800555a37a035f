"""Margin, sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding
from askance.gradients.last_layer import pseudo_residuals
from askance.picking.topk import check_beta, power_scores
from askance.seeding import Draws
from askance.strategies.base import Need, Pointwise, logits_of


@dataclass(frozen=True)
class PowerMargin(Pointwise):
    """n draws without replacement ∝ s(x)^β, s(x) = 1 − (p₁ − p₂): `margin`, sampled.

    s is 1 where the two likeliest classes tie, and 0 for a certain point. The n largest of
    β·log s(x) + Gumbel noise are exactly such draws, so the rule streams. Its score is that key.

    Args:
        beta: 0 samples uniformly, ∞ would be `margin`.

    Reference:
        Kirsch, Farquhar, Atighehchian, Jesson, Branchaud-Charron & Gal, *Stochastic Batch Acquisition:
        A Simple Baseline for Deep Active Learning*, 2023: power acquisition, with its β = 1.

    Deviations: power acquisition takes any score that is 0 where a label would teach nothing;
    1 − (p₁ − p₂) is our choice of one.
    """

    beta: float = 1.0

    name: ClassVar[str] = "powermargin"
    because: ClassVar[str] = (
        "it was drawn among items on which the model hesitates between two classes"
    )
    cost: ClassVar[str] = "N·C"
    needs = frozenset[Need]({"logits"})
    random = True
    multilabel = False

    def __post_init__(self) -> None:
        check_beta(self.beta)

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        # 1 − (p₁ − p₂) = Σ_{k≠ŷ} p_k + p₂, the entries −a_ŷ and max a of a = p − e_ŷ: nothing cancels
        # where p₁ ≈ 1.
        a_BC = pseudo_residuals(logits_of(block))
        scores_B = a_BC.amax(dim=1) - a_BC.amin(dim=1)
        return power_scores(scores_B, self.beta, draws.gumbel(self.name, block.positions))
