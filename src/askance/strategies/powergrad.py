"""Gradient discrepancy, sampled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding
from askance.picking.topk import check_beta, power_scores
from askance.seeding import Draws
from askance.strategies.base import Pointwise
from askance.strategies.grad import Grad, UsesGrad


@dataclass(frozen=True)
class PowerGrad(UsesGrad, Pointwise):
    """n draws without replacement ∝ s(x)^β: `grad`'s signal with a sampler's diversity, in one pass.

    The n largest of β·log s(x) + Gumbel noise are exactly such draws, so the rule streams like any
    other pointwise one. Its score is that perturbed key; `explain()` shows s(x)'s parts.

    Args:
        beta: 0 samples uniformly, ∞ would be `grad`.
        grad: the score to sample by, with its options.

    Reference:
        Kirsch, Farquhar, Atighehchian, Jesson, Branchaud-Charron & Gal, *Stochastic Batch Acquisition:
        A Simple Baseline for Deep Active Learning*, 2023: power acquisition, draws ∝ s^β of any score.
        The score is that of `grad` (Khosravani & Zilles). Draws by Gumbel keys: Kool, van Hoof &
        Welling, *Stochastic Beams and Where to Find Them*, 2019.

    Deviations: β = 2, where Kirsch et al. take 1.
    """

    beta: float = 2.0
    grad: Grad = field(default_factory=Grad)

    name: ClassVar[str] = "powergrad"
    because: ClassVar[str] = (
        "it was drawn among items that pull the model another way than labelled ones"
    )
    cost: ClassVar[str] = "as `grad`"
    random = True

    def __post_init__(self) -> None:
        check_beta(self.beta)

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        scores_B = self.grad.score(block, reference, draws)
        return power_scores(scores_B, self.beta, draws.gumbel(self.name, block.positions))
