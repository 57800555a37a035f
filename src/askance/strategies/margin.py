"""Smallest margin between the two likeliest classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from askance.embedding import Embedding
from askance.gradients.last_layer import check_outputs, working
from askance.seeding import Draws
from askance.strategies.base import Need, Pointwise, logits_of


@dataclass(frozen=True)
class Margin(Pointwise):
    """−(p₁ − p₂), p₁ ≥ p₂ the two largest probabilities: the narrowest margin scores highest.

    Reference:
        Scheffer, Decomain & Wrobel, *Active Hidden Markov Models for Information Extraction*, 2001.

    Deviations: the sign is turned, so that higher is better.
    """

    name: ClassVar[str] = "margin"
    because: ClassVar[str] = "the model hesitates between two classes"
    cost: ClassVar[str] = "N·C"
    needs = frozenset[Need]({"logits"})
    multilabel = False

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        return -margins(working(logits_of(block)))


def margins(logits_NC: Tensor) -> Tensor:
    """p₁ − p₂ of each row, as (1 − exp(z₂ − z₁)) / Σ exp(z − z₁)."""
    check_outputs(logits_NC.shape[1])
    peak_N1, own_N1 = logits_NC.max(dim=1, keepdim=True)
    delta_NC = logits_NC - peak_N1
    second_N = delta_NC.scatter(1, own_N1, -torch.inf).amax(dim=1)
    return -second_N.expm1() / delta_NC.exp_().sum(dim=1)
