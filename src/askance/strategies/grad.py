"""Gradient discrepancy: the rule askance is built around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from askance._checks import check_whole
from askance.embedding import Embedding, Evaluation
from askance.errors import InputError
from askance.gradients.discrepancy import ObjectiveReference, Reference, last_layer_reference
from askance.gradients.last_layer import LossName, Objective, check_loss
from askance.gradients.parameters import (
    ParameterGradients,
    ParameterObjectiveReference,
    ParameterReference,
)
from askance.seeding import Draws
from askance.strategies.base import Labeled, Need, Pointwise, Strategy


@dataclass(frozen=True)
class Grad(Pointwise):
    """s(x) = ‖DF(D_L ∪ Ŝ(x), Ŝ(x))‖₂ = n/(n+1) · ‖ḡ_L − g(x)‖: far from what is explained.

    Args:
        parameters: "last" for the head; "all" for the full θ; or names of parameters or modules.
        bias: whether the head's bias takes part (for "last").
        reference_size: estimate ḡ_L from this many labelled points, drawn by the seed (all of them
            where there are fewer); from all of them when None. The factor's n stays |D_L|.
        loss: "cross-entropy"; "multilabel" (binary cross-entropy summed over classes, labels (L, C)
            of zeros and ones); or any objective (logits, labels) → scalar of a whole set, which is
            then scored from both objective-level gradients with no shortcut.

    Reference:
        Khosravani & Zilles, *Gradient-Discrepancy Acquisition for Pool-Based Active Learning*, eq. 11
        and Algorithm 1.

    Deviations: none; the multi-label loss is ours.
    """

    parameters: str | Sequence[str] = "last"
    bias: bool = True
    reference_size: int | None = None
    loss: LossName | Objective = "cross-entropy"

    name: ClassVar[str] = "grad"
    because: ClassVar[str] = "it pulls the model another way than the labelled items do"
    cost: ClassVar[str] = "(N + L)·C·D"

    def __post_init__(self) -> None:
        check_loss(self.loss, objectives=True)
        if not isinstance(self.parameters, str):
            object.__setattr__(self, "parameters", tuple(self.parameters))
        if self.parameters != "last" and not self.bias:
            raise InputError(
                "bias=False is an option of parameters='last'; leave the bias out of the "
                "list of parameters instead"
            )
        size = self.reference_size
        check_whole("reference_size", size, 1, or_none=True)
        if size is not None and callable(self.loss):
            raise InputError(
                "reference_size estimates a mean gradient; an objective that is no mean "
                "needs the whole labelled set, so leave reference_size=None"
            )

    @property
    def random(self) -> bool:
        return self.reference_size is not None

    @property
    def needs(self) -> frozenset[Need]:
        last = frozenset[Need]({"logits", "features", "labeled"})
        return last if self.parameters == "last" else last | {"inputs"}

    @property
    def multilabel(self) -> bool | None:
        return None if callable(self.loss) else self.loss == "multilabel"

    def reference_points(self, count: int, draws: Draws) -> NDArray[np.int64] | None:
        if self.reference_size is None or self.reference_size >= count:
            return None
        chosen = draws.generator("reference").choice(count, self.reference_size, replace=False)
        return np.sort(chosen)

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Reference:
        assert labeled is not None
        block, labels, count = labeled.block, labeled.labels, labeled.count
        if self.parameters == "last":
            if callable(self.loss):
                return ObjectiveReference(block, labels, self.loss, self.bias)
            return last_layer_reference(block, labels, count=count, bias=self.bias, loss=self.loss)
        if model is None or block.inputs is None:
            raise InputError(
                "grad with these options differentiates the model itself, so it needs the labelled "
                "set's inputs, not an Embedding"
            )
        gradients = ParameterGradients(model, self.parameters)
        if callable(self.loss):
            return ParameterObjectiveReference(gradients, block, labels, self.loss)
        return ParameterReference.of(gradients, block, labels, count, self.loss)

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        return reference.scores(block)


class UsesGrad(Strategy):
    """A rule with a field `grad`: it scores by that `Grad`, so it needs what that one needs."""

    grad: Grad

    @property
    def random(self) -> bool:
        return self.grad.random

    @property
    def needs(self) -> frozenset[Need]:
        return self.grad.needs

    @property
    def multilabel(self) -> bool | None:
        return self.grad.multilabel

    def reference_points(self, count: int, draws: Draws) -> NDArray[np.int64] | None:
        return self.grad.reference_points(count, draws)

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Reference:
        return self.grad.prepare(labeled, model)
