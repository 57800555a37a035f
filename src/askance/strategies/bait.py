"""BAIT: Fisher information, for what the pool is uncertain about."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from askance.embedding import Embedding, Evaluation
from askance.errors import InputError
from askance.gradients.last_layer import pseudo_residuals, working
from askance.picking import Picks
from askance.picking.eligible import Eligible
from askance.picking.fisher import WeightedRows, lower_trace
from askance.seeding import Draws
from askance.strategies.base import Batch, Labeled, Need, features_of, labeled_features, logits_of


@dataclass(frozen=True)
class Bait(Batch):
    """Each pick lowers tr(A⁻¹F) most: what the labels leave unknown (A⁻¹), where the pool needs it (F).

    With p̂ = max_y p and v(x) = √(p̂(1 − p̂))·[h; 1], F is the mean of vvᵀ over the pool, and
    A = λI + Σ_L vvᵀ over the labelled set and the picks so far. The pick is the largest
    vᵀA⁻¹FA⁻¹v / (1 + vᵀA⁻¹v), which is what it takes off tr(A⁻¹F), and its score.

    Args:
        ridge: λ.

    Reference:
        Ash, Goel, Krishnamurthy & Kakade, *Gone Fishing: Neural Active Learning with Fisher
        Embeddings*, 2021, Algorithm 1; in the binary form of Huseljic, Hahn, Herde, Rauch & Sick, *Fast
        Fishing*, 2024, which asks of a softmax only whether its likeliest class is right.

    Deviations: forward only: n points are picked, where the papers pick 2n and drop n again. The
    labelled set and the picks are summed, not averaged.
    """

    ridge: float = 1.0

    name: ClassVar[str] = "bait"
    because: ClassVar[str] = "its label tells much about the items that the model is unsure of"
    cost: ClassVar[str] = "3·N·D² + n·(2·N·D + 32·D²) + D³"
    needs = frozenset[Need]({"logits", "features", "labeled"})
    multilabel = False

    def __post_init__(self) -> None:
        if not (isinstance(self.ridge, (int, float)) and 0 < self.ridge < math.inf):
            raise InputError(f"ridge must be a finite number above 0, got {self.ridge!r}")

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Tensor:
        """Σ_L vvᵀ."""
        assert labeled is not None
        labeled_features(self, labeled)
        return weighted_rows(labeled.block).sum_of_squares()

    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        return lower_trace(weighted_rows(pool), reference, self.ridge, n, eligible)


def weighted_rows(block: Embedding) -> WeightedRows:
    """v of each row."""
    # 1 − p̂ = −a_ŷ, which keeps its digits where p̂ ≈ 1.
    wrong_N = -pseudo_residuals(logits_of(block).double().cpu()).amin(dim=1)
    return WeightedRows(working(features_of(block)).cpu(), wrong_N * (1 - wrong_N))
