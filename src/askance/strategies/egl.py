"""Expected gradient length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding
from askance.gradients.last_layer import pseudo_labels, residuals, sq_lengths, working
from askance.seeding import Draws
from askance.strategies.base import Need, Pointwise, features_of, logits_of


@dataclass(frozen=True)
class EGL(Pointwise):
    """Σ_y p(y|x) ‖∇ℓ(θ; x, y)‖₂ over the last layer: the gradient length to be expected.

    Args:
        bias: whether the head's bias takes part.

    Reference:
        Settles, Craven & Ray, *Multiple-Instance Active Learning*, 2007.

    Deviations: the last layer instead of all parameters, as in the paper askance follows.
    """

    bias: bool = True

    name: ClassVar[str] = "egl"
    because: ClassVar[str] = "its label is expected to change the model much"
    cost: ClassVar[str] = "N·(C + D)"
    needs = frozenset[Need]({"logits", "features"})
    multilabel = False

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        return expected_lengths(logits_of(block), features_of(block), self.bias)


def expected_lengths(logits_NC: Tensor, features_ND: Tensor, bias: bool = True) -> Tensor:
    """Σ_y p_y ‖p − e_y‖ · ‖[h; 1]‖ of each row.

    ‖p − e_y‖² = 1 + ‖p‖² − 2 p_y, which cancels for y = ŷ alone; that class is summed over the others
    instead: (Σ_{k≠ŷ} p_k)² + Σ_{k≠ŷ} p_k², which is ‖a‖² under the pseudo-label.
    """
    top_N1 = pseudo_labels(logits_NC).unsqueeze(1)
    a_NC = residuals(logits_NC, top_N1.squeeze(1))
    sq_top_N1 = a_NC.square().sum(dim=1, keepdim=True)
    probs_NC = a_NC.scatter(1, top_N1, 1 + a_NC.gather(1, top_N1))
    sq_NC = 1 + probs_NC.square().sum(dim=1, keepdim=True) - 2 * probs_NC
    sq_NC.scatter_(1, top_N1, sq_top_N1)
    return sq_NC.sqrt_().mul_(probs_NC).sum(dim=1) * sq_lengths(working(features_ND), bias).sqrt()
