"""Gradients beyond the head: the full θ, or any named subset of it, in bounded memory.

A point's gradient is pulled back from its logits, g = Jᵀ a with a = ∂ℓ/∂z, rather than taken of the
loss: a comes with all its digits (`residuals`), which automatic differentiation of a softmax would
lose for confident points.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.linalg import vecdot

from askance.embedding import Embedding, Evaluation
from askance.embedding.sources import rows_of
from askance.errors import InputError, UnknownError
from askance.gradients.discrepancy import Reference, ScoreTerms, pseudo_labels_like, shrunk
from askance.gradients.last_layer import (
    LossName,
    Objective,
    check_labels,
    objective_residuals,
    pseudo_residuals,
    residuals,
)

_log = logging.getLogger(__name__)
# Of per-point gradients at a time: what stays in a CPU's cache, and what keeps a GPU busy.
_CPU_BYTES, _GPU_BYTES = 16 << 20, 256 << 20


class ParameterGradients:
    """Gradients of chosen parameters of a model under evaluation.

    Args:
        evaluation: the model, in its context.
        names: "all", or names of parameters or of modules (all parameters below them).
        chunk_bytes: how much memory a chunk of per-point gradients may take; what suits the device
            when None.
    """

    def __init__(
        self, evaluation: Evaluation, names: str | Sequence[str], chunk_bytes: int | None = None
    ) -> None:
        self.evaluation = evaluation
        self.chosen = _chosen(evaluation.model, names)
        bytes_a_point = sum(p.numel() * p.element_size() for p in self.chosen.values())
        if chunk_bytes is None:
            is_cpu = next(iter(self.chosen.values())).device.type == "cpu"
            chunk_bytes = _CPU_BYTES if is_cpu else _GPU_BYTES
        self.chunk = max(1, chunk_bytes // bytes_a_point)
        self._vectorised = True

    def pull_back(self, inputs: Any, a_BC: Tensor) -> list[Tensor]:
        """Σ Jᵀ a over a batch of prepared inputs, one tensor a parameter."""
        with torch.enable_grad():
            parameters = {k: p.detach().requires_grad_() for k, p in self.chosen.items()}
            logits_BC = self.evaluation.logits(inputs, parameters)
            return list(
                torch.autograd.grad(
                    logits_BC,
                    list(parameters.values()),
                    a_BC.to(logits_BC.dtype),
                    materialize_grads=True,
                )
            )

    def total(self, inputs: Any, a_NC: Tensor, rows: int = 256) -> list[Tensor]:
        """Σ Jᵀ a over all points, batch by batch, in float64."""
        sums = [torch.zeros_like(p, dtype=torch.float64) for p in self.chosen.values()]
        for part, a_BC in _chunks(inputs, a_NC, rows):
            for total, new in zip(sums, self.pull_back(part, a_BC), strict=True):
                total += new
        return sums

    def per_point(self, inputs: Any, a_NC: Tensor) -> Iterator[list[Tensor]]:
        """Every point's gradient, a bounded chunk of points at a time: (B, *shape) a parameter."""
        parameters = {k: p.detach() for k, p in self.chosen.items()}

        def agreement(parameters: dict[str, Tensor], point: Any, a_C: Tensor) -> Tensor:
            logits_1C = self.evaluation.logits(_batch_of_one(point), parameters)
            return (logits_1C[0] * a_C.to(logits_1C.dtype)).sum()

        for part, a_BC in _chunks(inputs, a_NC, self.chunk):
            if self._vectorised:
                try:
                    with warnings.catch_warnings():
                        # An operation without a batching rule is looped over: same numbers.
                        warnings.filterwarnings("ignore", message="There is a performance drop")
                        gradients = vmap(grad(agreement), (None, 0, 0))(parameters, part, a_BC)
                except RuntimeError as error:
                    _log.warning(
                        "this model cannot be vectorised over points (%s); taking gradients "
                        "one by one, which is slower and gives the same numbers",
                        error,
                    )
                    self._vectorised = False
                else:
                    yield list(gradients.values())
                    continue
            singles = [self.pull_back(point, a_1C) for point, a_1C in _chunks(part, a_BC, 1)]
            yield [torch.stack(column) for column in zip(*singles, strict=True)]


@dataclass(frozen=True, eq=False)
class ParameterReference(Reference):
    """ḡ_L over chosen parameters, and how many points it stands for.

    Args:
        gradients: the chosen parameters' gradients.
        mean: ∇f(θ; D_L) of the mean loss, one float64 tensor a parameter.
        count: n = |D_L|, whatever number of points the mean was estimated from.
        loss: the named loss.
    """

    gradients: ParameterGradients
    mean: list[Tensor]
    count: int
    loss: LossName

    @classmethod
    def of(
        cls,
        gradients: ParameterGradients,
        labeled: Embedding,
        labels: Tensor,
        count: int,
        loss: LossName,
    ) -> ParameterReference:
        """ḡ_L of a labelled set under its true labels."""
        assert labeled.logits is not None
        check_labels(labels, labeled.logits, loss)
        sums = gradients.total(labeled.inputs, residuals(labeled.logits, labels, loss))
        return cls(gradients, [total / len(labeled) for total in sums], count, loss)

    @property
    def norm(self) -> float:
        return float(sum(m.square().sum() for m in self.mean)) ** 0.5

    def parts(self, block: Embedding) -> ScoreTerms:
        assert block.logits is not None
        a_BC = pseudo_residuals(block.logits, self.loss)
        columns = [
            torch.stack([_terms(g, m) for g, m in zip(point, self.mean, strict=True)]).sum(dim=0)
            for point in self.gradients.per_point(block.inputs, a_BC)
        ]
        return ScoreTerms(*torch.cat(columns, dim=1))

    def scores(self, block: Embedding) -> Tensor:
        return shrunk(self.count, self.parts(block))


@dataclass(frozen=True, eq=False)
class ParameterObjectiveReference(Reference):
    """The labelled set itself, for an objective that is no mean over points, over chosen parameters.

    s(x) takes a pass back through the labelled set for every pool point.
    """

    gradients: ParameterGradients
    labeled: Embedding
    labels: Tensor
    objective: Objective

    def scores(self, block: Embedding) -> Tensor:
        assert block.logits is not None
        assert self.labeled.logits is not None
        labeled_LC = self.labeled.logits.double()
        scores = []
        for point, logits_1C in _chunks(block.inputs, block.logits.double(), 1):
            pseudo = pseudo_labels_like(self.labels, logits_1C)
            labels = torch.cat([self.labels, pseudo])
            both_NC = objective_residuals(
                self.objective, torch.cat([labeled_LC, logits_1C]), labels
            )
            alone_1C = objective_residuals(self.objective, logits_1C, pseudo)
            # Both gradients pass through x, so their difference at x is pulled back once.
            old = self.gradients.total(self.labeled.inputs, both_NC[:-1])
            new = self.gradients.pull_back(point, both_NC[-1:] - alone_1C)
            difference = [(o + n).flatten() for o, n in zip(old, new, strict=True)]
            scores.append(torch.cat(difference).norm())
        return torch.stack(scores)


def _chosen(model: torch.nn.Module, names: str | Sequence[str]) -> dict[str, Tensor]:
    parameters = {k: p for k, p in model.named_parameters() if p.is_floating_point()}
    if names == "all":
        wanted = list(parameters)
    else:
        listed = [names] if isinstance(names, str) else list(names)
        wanted = []
        for name in listed:
            below = [k for k in parameters if k == name or k.startswith(f"{name}.")]
            if not below:
                modules = {k.rpartition(".")[0] for k in parameters} - {""}
                raise UnknownError.of("parameter or module", name, {*parameters, *modules})
            wanted += [k for k in below if k not in wanted]
    if not wanted:
        raise InputError("at least one parameter must be chosen, got none")
    return {k: parameters[k] for k in wanted}


def _chunks(inputs: Any, a_NC: Tensor, rows: int) -> Iterator[tuple[Any, Tensor]]:
    for index in torch.arange(len(a_NC), device=a_NC.device).split(rows):
        yield rows_of(inputs, index), a_NC[index]


def _batch_of_one(point: Any) -> Any:
    if isinstance(point, dict):
        return {key: _batch_of_one(value) for key, value in point.items()}
    if isinstance(point, tuple):
        return tuple(_batch_of_one(value) for value in point)
    return point.unsqueeze(0) if isinstance(point, Tensor) else point


def _terms(gradient: Tensor, mean: Tensor) -> Tensor:
    """‖g‖², ⟨g, ḡ⟩ and ‖g − ḡ‖² of one parameter's (B, *shape) gradients, in float64: (3, B).

    Float64 rows are made once, and products are summed as they are made: nothing else is of that size
    but the difference.
    """
    g_BP, mean_P = gradient.flatten(1).double(), mean.flatten()
    apart_BP = g_BP - mean_P
    return torch.stack([vecdot(g_BP, g_BP), g_BP @ mean_P, vecdot(apart_BP, apart_BP)])
