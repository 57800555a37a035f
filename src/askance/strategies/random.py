"""Uniform sampling: the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from askance.embedding import Embedding
from askance.seeding import Draws
from askance.strategies.base import Need, Pointwise


@dataclass(frozen=True)
class Random(Pointwise):
    """n points uniformly without replacement: the n largest of one uniform draw a row."""

    name: ClassVar[str] = "random"
    because: ClassVar[str] = "it was drawn at random"
    cost: ClassVar[str] = "N"
    needs = frozenset[Need]()
    takes_targets = True
    random = True

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        return torch.from_numpy(draws.uniform(self.name, block.positions))
