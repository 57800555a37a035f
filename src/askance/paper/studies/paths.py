"""Two-layer networks trained side by side, and ‖DF(S, S_J)‖ at any point of their paths.

With a_i = ∂ℓ_i/∂z_i, h_i the hidden layer, W the classifier's weights and δ_i = (Wᵀ a_i) ∘ 1[h_i > 0],

    DF = Σ_i w_i g_i,     w_i = 1/|S| − 1[i ∈ S_J]/|S_J|,     g_i = (δ_i ⊗ [x_i; 1], a_i ⊗ [h_i; 1]),

so that the classifier's part of DF is Σ w_i a_i ⊗ [h_i; 1], and the hidden layer's is of the same form.

Two things make wide inputs cheap. A column that is zero in all of S has no gradient, so it is left
out. And
where there are still more columns than points, X = R Q with R (L, L) and orthonormal rows of Q. The
network of inputs R and first weights W Qᵀ has the same logits; a step −γ Σ δ_i ⊗ x_i of W is the
step −γ Σ δ_i ⊗ R_i of W Qᵀ, and no step leaves the span of the rows of Q. So gradient descent on
it, with momentum or without, is the
same path, and ‖Σ w_i δ_i ⊗ x_i‖ = ‖Σ w_i δ_i ⊗ R_i‖. Adam rescales each column by itself, and keeps
them.

Shapes: R networks; L points of S; B points of a mini-batch; D columns; H hidden; C classes; J subsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from askance.errors import UnknownError
from askance.gradients.last_layer import residuals

OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "momentum": partial(torch.optim.SGD, momentum=0.9),
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
}
ROTATABLE = ("momentum", "sgd")  # whose path does not depend on the columns the inputs are given in
Weights = Sequence[Tensor]
"""(H, D), (H,), (C, H), (C,)."""
_SPARSE = 0.1  # of the entries: with fewer, a product of sparse rows is the faster one


class TwoLayers:
    """R networks of one hidden layer of ReLU, their weights stacked: (R, H, D), (R, H), (R, C, H),
    (R, C).

    Args:
        weights_R: the four of each network.
    """

    def __init__(self, weights_R: Sequence[Weights]) -> None:
        parts = zip(*weights_R, strict=True)
        self.weights = [torch.stack(part).detach().requires_grad_() for part in parts]

    def __len__(self) -> int:
        return len(self.weights[0])

    def one(self, r: int) -> Weights:
        """Network r's weights, in float64."""
        return [weight[r].detach().double() for weight in self.weights]

    def losses(self, x_RBD: Tensor, y_RB: Tensor) -> Tensor:
        """(R,) mean cross-entropies."""
        first_RHD, bias_RH, last_RCH, bias_RC = self.weights
        # In this order the gradient of the widest weights is made as it is kept, without a copy.
        hidden_RHB = torch.baddbmm(bias_RH[:, :, None], first_RHD, x_RBD.mT).relu()
        logits_RCB = torch.baddbmm(bias_RC[:, :, None], last_RCH, hidden_RHB)
        return cross_entropy(logits_RCB, y_RB, reduction="none").mean(dim=1)


def train(
    networks: TwoLayers,
    x_RLD: Tensor,
    y_RL: Tensor,
    order_REL: Tensor,
    *,
    optimiser: str,
    learning_rate: float,
    batch: int | None,
) -> Iterator[int]:
    """Train epoch by epoch on the mean loss of mini-batches, yielding the epoch just finished, from 1.

    Args:
        order_REL: which rows each epoch goes through, in order; the last, smaller mini-batch is kept.
        batch: points in a mini-batch; all at once where None.
    """
    if optimiser not in OPTIMISERS:
        raise UnknownError.of("optimiser", optimiser, OPTIMISERS)
    step: Any = OPTIMISERS[optimiser](networks.weights, lr=learning_rate, fused=True)
    of_R1 = torch.arange(len(networks), device=x_RLD.device)[:, None]
    for epoch in range(order_REL.shape[1]):
        for rows_RB in order_REL[:, epoch].split(batch or order_REL.shape[2], dim=1):
            step.zero_grad(set_to_none=True)
            # A sum, so that each network has the gradient it would have by itself.
            networks.losses(x_RLD[of_R1, rows_RB], y_RL[of_R1, rows_RB]).sum().backward()
            step.step()
        yield epoch + 1


def weights_of(model: nn.Module) -> Weights:
    """The weights of a chain whose linear layers are two."""
    first, last = (layer for layer in model.modules() if isinstance(layer, nn.Linear))
    return [p.detach() for layer in (first, last) for p in (layer.weight, layer.bias)]


def narrowed(x_LD: Tensor, weights: Weights) -> tuple[Tensor, Weights]:
    """R in the place of X, and W Qᵀ in that of the first weights; both computed in float64."""
    q_DL, r_LL = torch.linalg.qr(x_LD.T.double())
    first_HL = weights[0].double() @ q_DL
    return r_LL.T.to(x_LD.dtype), [first_HL.to(weights[0].dtype), *weights[1:]]


class PreparedPoints:
    """The points of S, prepared once so that discrepancies on them are cheap; in float64."""

    def __init__(self, x_LD: Tensor, y_L: Tensor) -> None:
        x_LD = x_LD.double()
        is_sparse = int(x_LD.count_nonzero()) < _SPARSE * x_LD.numel()
        is_wide = x_LD.shape[1] > x_LD.shape[0]
        self.inputs = x_LD.to_sparse_coo() if is_sparse else x_LD
        self.factor = torch.linalg.qr(x_LD.T, mode="r").R.T if is_wide else x_LD
        self.labels = y_L

    def discrepancies(self, weights: Weights, w_JL: Tensor) -> Tensor:
        """(J, 2): ‖Σ_i w_i g_i‖ over the full θ and over the last layer, for each row of `w_JL`.

        Args:
            weights: a network's, as `TwoLayers.one` gives them.
        """
        first_HD, bias_H, last_CH, bias_C = weights
        hidden_LH = (self.inputs @ first_HD.T + bias_H).relu_()
        a_LC = residuals(hidden_LH @ last_CH.T + bias_C, self.labels)
        back_LH = (a_LC @ last_CH).mul_(hidden_LH > 0)
        last_J = _sq_norms(w_JL, a_LC, hidden_LH)
        first_J = _sq_norms(w_JL, back_LH, self.factor)
        return torch.stack([first_J + last_J, last_J], dim=1).sqrt_()

    def loss(self, weights: Weights) -> float:
        """The mean loss."""
        first_HD, bias_H, last_CH, bias_C = weights
        hidden_LH = (self.inputs @ first_HD.T + bias_H).relu_()
        return float(cross_entropy(hidden_LH @ last_CH.T + bias_C, self.labels))


def _sq_norms(w_JL: Tensor, a_LA: Tensor, h_LB: Tensor) -> Tensor:
    """(J,): ‖Σ_i w_i a_i ⊗ [h_i; 1]‖²."""
    rows_JAL = w_JL[:, None] * a_LA.T
    matrix_JAB = (rows_JAL.flatten(0, 1) @ h_LB).view(len(w_JL), a_LA.shape[1], -1)
    return matrix_JAB.square().sum(dim=(1, 2)) + rows_JAL.sum(dim=2).square().sum(dim=1)


def subset_weights(count: int, subsets: Sequence[Tensor]) -> Tensor:
    """(J, L): the w_i of each subset S_J, given by its rows of S."""
    w_JL = torch.full((len(subsets), count), 1 / count, dtype=torch.float64)
    for w_L, rows in zip(w_JL, subsets, strict=True):
        w_L[rows] -= 1 / len(rows)
    return w_JL
