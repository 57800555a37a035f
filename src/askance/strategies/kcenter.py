"""k-center greedy: cover the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from askance.embedding import Block, Evaluation
from askance.errors import InputError
from askance.picking import Picks, dense_kcenter, feature_points, kcenter
from askance.seeding import Draws
from askance.strategies.base import Batch, Labeled, Need, features_of


@dataclass(frozen=True)
class KCenter(Batch):
    """Farthest first: each pick is the point farthest from everything labelled or already picked.

    Euclidean in the head's inputs, started from the labelled set. The score of a pick is its distance
    to the nearest centre when it was picked.

    Reference:
        Sener & Savarese, *Active Learning for Convolutional Neural Networks: A Core-Set Approach*,
        2018, Algorithm 1.

    Deviations: the greedy algorithm alone, without the mixed-integer refinement, as in the paper
    askance follows. Ties go to the lowest index.
    """

    name: ClassVar[str] = "kcenter"

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({"features", "labeled"})

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Tensor:
        assert labeled is not None
        if labeled.block.features is None:
            raise InputError("kcenter needs features, the labelled Embedding has none")
        return labeled.block.features

    def pick(self, pool: Block, n: int, reference: Any, draws: Draws) -> Picks:
        return self.pick_many([pool], n, [reference], [draws])[0]

    def pick_many(
        self, pools: Sequence[Block], n: int, references: Sequence[Any], draws: Sequence[Draws]
    ) -> list[Picks]:
        features = [features_of(pool) for pool in pools]
        found: list[Picks | None] = [None] * len(pools)
        if features[0].is_cuda:
            found = dense_kcenter(torch.stack(features), references, n)
        return [
            picks or kcenter(feature_points(own), seen, n)
            for picks, own, seen in zip(found, features, references, strict=True)
        ]
