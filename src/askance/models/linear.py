"""The classifier on features that are made already."""

from __future__ import annotations

import math
from typing import final

from torch import Tensor, nn

from askance.errors import InputError
from askance.models.head import Shape


@final
class Linear(nn.Module):
    """One linear layer on the flattened input: multinomial logistic regression.

    An experiment does not train it step by step: `askance.training.regression` solves it.

    Shapes: (B, *shape) → (B, C).

    Args:
        shape: of one example, whatever it is.
        classes: C.
        strength: the inverse of the L2 penalty's weight; chosen by cross-validation when None, see
            `askance.encoders.linear.fit_linear`.
    """

    def __init__(self, shape: Shape, classes: int, strength: float | None = None) -> None:
        super().__init__()
        if strength is not None and not 0 < strength < math.inf:
            raise InputError(f"strength must be a number above 0, got {strength!r}")
        self.flatten = nn.Flatten()
        self.head = nn.Linear(math.prod(shape), classes)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.flatten(inputs))
        return logits
