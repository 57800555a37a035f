"""The length of the pseudo-labelled gradient: `grad` without its reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding
from askance.gradients.last_layer import LossName, pseudo_residuals, sq_norms, working
from askance.seeding import Draws
from askance.strategies.base import NamedLoss, Need, Pointwise, features_of, logits_of


@dataclass(frozen=True)
class GradNorm(NamedLoss, Pointwise):
    """‖g(x)‖ over the last layer under the pseudo-label: the ablation that shows what ḡ_L adds.

    Args:
        bias: whether the head's bias takes part.
        loss: "cross-entropy" or "multilabel".

    Reference:
        ours; `grad` with ḡ_L = 0 and without its factor.
    """

    bias: bool = True
    loss: LossName = "cross-entropy"

    name: ClassVar[str] = "gradnorm"
    because: ClassVar[str] = "training on it would change the model much"
    cost: ClassVar[str] = "N·(C + D)"
    needs = frozenset[Need]({"logits", "features"})

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        a_BC = pseudo_residuals(logits_of(block), self.loss)
        return sq_norms(a_BC, working(features_of(block)), self.bias).sqrt()
