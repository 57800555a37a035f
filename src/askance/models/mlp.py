"""The network for text and tables."""

from __future__ import annotations

import math
from typing import final

from torch import Tensor, nn

from askance.models.head import Shape, mlp_head
from askance.models.initial import Init, initialise


@final
class MLP(nn.Module):
    """Two hidden layers, 512 and 256 wide, on the flattened input.

    Shapes: (B, *shape) → (B, C).

    Args:
        shape: of one example, whatever it is.
        classes: C.
        init: of the weights, see `initialise`.
    """

    def __init__(self, shape: Shape, classes: int, init: Init = "default") -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.head = mlp_head(math.prod(shape), classes)
        initialise(self, init)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.flatten(inputs))
