"""Gradient discrepancy, sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding
from askance.errors import InputError
from askance.picking.topk import gumbel_keys
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
        ours; the sampler is Kool, van Hoof & Welling, *Stochastic Beams and Where to Find Them*, 2019,
        and its use on acquisition scores Kirsch et al., *Stochastic Batch Acquisition*, 2023.
    """

    beta: float = 2.0
    grad: Grad = field(default_factory=Grad)

    name: ClassVar[str] = "powergrad"
    random = True

    def __post_init__(self) -> None:
        if not (isinstance(self.beta, (int, float)) and 0 <= self.beta < math.inf):
            raise InputError(f"beta must be a finite number ≥ 0, got {self.beta!r}")

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        scores_B = self.grad.score(block, reference, draws)
        keys_B = gumbel_keys(scores_B, self.beta, draws.gumbel(self.name, block.positions))
        # A score that is not finite is passed on, so that it is refused and not ranked last.
        return keys_B.where(scores_B.isfinite(), scores_B.double())
