"""Predictive entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from askance.embedding import Embedding
from askance.gradients.last_layer import LossName, working
from askance.seeding import Draws
from askance.strategies.base import NamedLoss, Need, Pointwise, logits_of


@dataclass(frozen=True)
class Entropy(NamedLoss, Pointwise):
    """H(p) = −Σ_k p_k log p_k, in nats, of the predicted distribution.

    Args:
        loss: "multilabel" for independent classes: the sum of the C binary entropies.

    Reference:
        Settles, *Active Learning Literature Survey*, 2009, §3.1 (uncertainty sampling).

    Deviations: none; the multi-label form is ours.
    """

    loss: LossName = "cross-entropy"

    name: ClassVar[str] = "entropy"
    because: ClassVar[str] = "the model is unsure between several classes"
    cost: ClassVar[str] = "N·C"
    needs = frozenset[Need]({"logits"})

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        logits_BC = working(logits_of(block))
        if self.multilabel:
            return binary_entropies(logits_BC).sum(dim=1)
        return entropies(logits_BC)


def entropies(logits_NC: Tensor) -> Tensor:
    """−Σ p log p of each row.

    With δ = z − z_ŷ ≤ 0 and T = Σ_{k≠ŷ} exp δ_k this is log(1 + T) − Σ_{k≠ŷ} exp(δ_k) δ_k / (1 + T): no
    logarithm of a probability that may be 0, and no term of either sign that could cancel another.
    """
    peak_N1, own_N1 = logits_NC.max(dim=1, keepdim=True)
    # The difference of two finite logits may be infinite, and 0 · ∞ is no number.
    delta_NC = (logits_NC - peak_N1).clamp_(min=torch.finfo(logits_NC.dtype).min)
    exps_NC = delta_NC.exp().scatter_(1, own_N1, 0.0)
    others_N = exps_NC.sum(dim=1)
    return others_N.log1p() - exps_NC.mul_(delta_NC).sum(dim=1) / (1 + others_N)


def binary_entropies(logits_NC: Tensor) -> Tensor:
    """−σ log σ − (1−σ) log(1−σ) of each logit; symmetric in z, so taken at −|z| to keep digits."""
    minority_NC = torch.sigmoid(-logits_NC.abs())
    # 1 − m keeps its digits only as log1p(−m).
    return torch.special.entr(minority_NC) - (1 - minority_NC) * torch.log1p(-minority_NC)
