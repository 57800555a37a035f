"""The first layer of stacked networks on sparse inputs: a step updates only the columns it needs.

Eight texts have a few hundred of the D columns of their inputs. Where no point of a mini-batch has a
column, the gradient of its weights w is zero, and a step of momentum SGD with rate 1 is

    v ← μ v,   w ← w − v;   after k of them   v_k = μᵏ v,   w_k = w − c(k) v,

    c(k) = μ + μ² + … + μᵏ = μ (1 − μᵏ) / (1 − μ).

So those steps are made at once when the next point has the column, or when training ends. It is the
same algorithm up to rounding, at the cost of the columns that are used. One thing differs: a network
that diverges has NaN only in the columns that are used, where 0 · NaN would fill all of them.

Shapes: R networks; N points; D columns; O outputs; B points in a mini-batch.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from askance.capture import triton_kernels
from askance.training.recipe import Recipe
from askance.training.stack import Stack, StackedLinear

# Beyond this share of columns touched in a step, on average, nothing is left for later.
_FEW = 0.25


def lazy_layer(stack: Stack, inputs: Tensor, recipe: Recipe, steps: int) -> Lazy | None:
    """The stack's first layer, made lazy; None if it is not linear or inputs are not sparse."""
    layer = stack.entry() if inputs.ndim == 2 else None
    if layer is None or (kernels := _kernels(inputs)) is None:
        return None
    if len(list(stack.parameters())) == 1:
        return None  # nothing would be left to the optimizer
    if recipe.batch_size * int(torch.count_nonzero(inputs)) > _FEW * inputs.numel():
        return None
    return Lazy(layer, inputs, recipe.momentum, steps, kernels)


class Lazy:
    """A linear layer in training that takes row numbers of its points, and updates its own weights.

    Its weights are out of date until `settle`, and the optimizer must not have them.

    Args:
        layer: of R networks; it computes through this until `settle`.
        inputs_ND: the points.
        momentum: μ.
        steps: how many there will be.
        kernels: that do the work.
    """

    def __init__(
        self,
        layer: StackedLinear,
        inputs_ND: Tensor,
        momentum: float,
        steps: int,
        kernels: ModuleType,
    ) -> None:
        self.layer, self.weight_RDO, self._kernels = layer, layer.weight, kernels
        self.inputs_ND = inputs_ND.contiguous()
        self.nonzeros = _nonzeros(self.inputs_ND)
        self.momentum_buffer_RDO = torch.zeros_like(layer.weight, requires_grad=False)
        device, shape = inputs_ND.device, layer.weight.shape[:2]
        self.last_RD = torch.zeros(shape, dtype=torch.int32, device=device)
        self.clock = torch.zeros(1, dtype=torch.int32, device=device)
        self.powers, self.paths = (
            of.to(device, inputs_ND.dtype) for of in _tables(momentum, steps, inputs_ND.dtype)
        )
        layer.by_rows = self

    @property
    def state(self) -> list[Tensor]:
        """What a step changes in place, beside the weights."""
        return [self.momentum_buffer_RDO, self.last_RD, self.clock]

    def __call__(self, rows_RB: Tensor) -> Tensor:
        """(R, B, O) outputs without the bias. The backward pass makes a step."""
        return _Product.apply(self.weight_RDO, rows_RB.contiguous(), self)

    def product(self, rows_RB: Tensor) -> Tensor:
        """(R, B, O): these points times the weights as they would be now."""
        return self._kernels.product(
            self.weight_RDO, *self.state, self.paths, self.nonzeros, rows_RB
        )

    def step(self, rows_RB: Tensor, grad_RBO: Tensor) -> None:
        """One step of SGD, given the gradient of the outputs."""
        tables = self.powers, self.paths
        points = self.nonzeros, self.inputs_ND, rows_RB, grad_RBO
        self._kernels.update(self.weight_RDO, *self.state, *tables, *points)

    @torch.no_grad()
    def settle(self) -> None:
        """Bring every weight up to date; the layer is an ordinary one again."""
        idle_RD = (self.clock - self.last_RD).clamp_(max=len(self.paths) - 1)
        self.weight_RDO.addcmul_(
            self.momentum_buffer_RDO, self.paths[idle_RD].unsqueeze(2), value=-1
        )
        self.momentum_buffer_RDO.mul_(self.powers[idle_RD].unsqueeze(2))
        self.last_RD.copy_(self.clock.expand_as(self.last_RD))
        self.layer.by_rows = None


class _Product(torch.autograd.Function):
    """The layer's product. Its backward pass applies the update; the weights get no gradient.

    They are an argument so that there is a backward pass.
    """

    @staticmethod
    def forward(ctx: Any, weight_RDO: Tensor, rows_RB: Tensor, lazy: Lazy) -> Tensor:
        ctx.rows_RB, ctx.lazy = rows_RB, lazy
        return lazy.product(rows_RB)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        ctx.lazy.step(ctx.rows_RB, grads[0].contiguous())
        return None, None, None


def _nonzeros(inputs_ND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where each row's begin, (N + 1,); their columns; their values."""
    rows, columns = (inputs_ND != 0).nonzero(as_tuple=True)
    starts = torch.searchsorted(rows, torch.arange(len(inputs_ND) + 1, device=rows.device))
    return starts, columns.to(torch.int32), inputs_ND[rows, columns]


def _tables(momentum: float, steps: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """μᵏ and c(k), as far as k can come, or until μᵏ is nothing in this precision."""
    powers = momentum ** torch.arange(steps + 1, dtype=torch.float64)
    powers = powers[: int(torch.count_nonzero(powers.to(dtype))) + 1]
    return powers, momentum * (1 - powers) / (1 - momentum)


def _kernels(inputs: Tensor) -> ModuleType | None:
    """On a CUDA device, where Triton is installed; and where products are made in full precision."""
    full = inputs.dtype in (torch.float32, torch.float64)
    if not (inputs.is_cuda and full) or torch.is_autocast_enabled("cuda"):
        return None
    return triton_kernels("askance.training.sparse_kernels")
