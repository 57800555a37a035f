"""BALD, sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding
from askance.picking.topk import check_beta, power_scores
from askance.seeding import Draws
from askance.strategies.bald import mutual_information
from askance.strategies.base import Need, Pointwise, members_of


@dataclass(frozen=True)
class PowerBald(Pointwise):
    """n draws without replacement ∝ s(x)^β with the score s of `bald`.

    The n largest of β·log s(x) + Gumbel noise are exactly such draws, so the rule streams. Its score is
    that key.

    Args:
        beta: 0 samples uniformly, ∞ would be `bald`.

    Reference:
        Kirsch, Farquhar, Atighehchian, Jesson, Branchaud-Charron & Gal, *Stochastic Batch Acquisition:
        A Simple Baseline for Deep Active Learning*, 2023, PowerBALD with its β = 1.

    Deviations: as in `bald`.
    """

    beta: float = 1.0

    name: ClassVar[str] = "powerbald"
    because: ClassVar[str] = "it was drawn among items about which the models disagree"
    cost: ClassVar[str] = "N·M·C"
    needs = frozenset[Need]({"logits", "members"})
    random = True
    multilabel = False

    def __post_init__(self) -> None:
        check_beta(self.beta)

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        scores_B = mutual_information(members_of(block))
        return power_scores(scores_B, self.beta, draws.gumbel(self.name, block.positions))
