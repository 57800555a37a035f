"""Train an MLP without automatic differentiation: linear layers with ReLUs between them.

On a CPU a step of a small network is some sixty calls, and each call costs more than its arithmetic.
Written out it is eighteen: momentum is part of the products that make the gradients,

    V ← μ V + ∂Zᵀ A / B,     W ← W − γ V,

and the mini-batches of an epoch are slices of one shuffled copy.

Shapes: L labelled points; B points in a mini-batch; a layer's A (B, in), Z (B, out), W (out, in).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from askance.models import MLP

_LEAVES = (nn.Flatten, nn.Linear, nn.ReLU, nn.Identity)


def mlp_layers(model: nn.Module) -> list[nn.Linear] | None:
    """The linear layers of a network that is a chain of them with ReLUs between; None for any other."""
    if not isinstance(model, (MLP, nn.Sequential)):
        return None
    leaves = [layer for layer in model.modules() if not list(layer.children())]
    kinds = [type(leaf) for leaf in leaves if not isinstance(leaf, nn.Identity)]
    if not all(type(leaf) in _LEAVES for leaf in leaves):
        return None
    if kinds[:1] == [nn.Flatten]:
        kinds = kinds[1:]
    chain = [nn.Linear, nn.ReLU] * (len(kinds) // 2) + [nn.Linear]
    layers = [leaf for leaf in leaves if isinstance(leaf, nn.Linear)]
    trained = all(p.requires_grad for p in model.parameters())
    biased = all(layer.bias is not None for layer in layers)
    return layers if kinds == chain and trained and biased and in_order(model) else None


def in_order(model: nn.Module) -> bool:
    """Whether its layers run in the order they are listed in, each of them once."""
    listed = [layer for _, layer in model.named_modules(remove_duplicate=False)]
    once = len(listed) == len(set(listed)) and not shared_weights(model)
    nested = [layer for layer in listed if list(layer.children())]
    return once and all(type(layer) in (MLP, nn.Sequential) for layer in nested)


def shared_weights(model: nn.Module) -> list[str]:
    """Weights that several layers share: all their names but the first."""
    first = {name for name, _ in model.named_parameters()}
    return [n for n, _ in model.named_parameters(remove_duplicate=False) if n not in first]


class ManualMLP:
    """The weights of such a network, and one step of momentum SGD on the mean cross-entropy."""

    def __init__(self, layers: Iterable[nn.Linear], rate: float, momentum: float) -> None:
        self.weights = [layer.weight.detach() for layer in layers]
        self.biases = [layer.bias.detach() for layer in layers]
        self.all = [*self.weights, *self.biases]
        self.momentum_buffers = [torch.zeros_like(weight) for weight in self.weights]
        self.bias_buffers = [torch.zeros_like(bias) for bias in self.biases]
        self.all_buffers = [*self.momentum_buffers, *self.bias_buffers]
        self.rate, self.momentum = rate, momentum
        self.ones: Tensor | None = None

    def step(self, inputs_BD: Tensor, answers_BC: Tensor) -> None:
        """One step. `answers_BC` has a one in each point's class and zeros elsewhere."""
        activations = [inputs_BD]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            activations.append(torch.addmm(bias, activations[-1], weight.T).relu_())
        logits = torch.addmm(self.biases[-1], activations[-1], self.weights[-1].T)
        grad = torch.softmax(logits, dim=1).sub_(answers_BC)
        share = 1 / len(inputs_BD)
        if self.ones is None or len(self.ones) != len(inputs_BD):
            self.ones = inputs_BD.new_ones(len(inputs_BD))
        for k in range(len(self.weights) - 1, -1, -1):
            buffer, bias_buffer = self.momentum_buffers[k], self.bias_buffers[k]
            buffer.addmm_(grad.T, activations[k], beta=self.momentum, alpha=share)
            bias_buffer.addmv_(grad.T, self.ones, beta=self.momentum, alpha=share)
            if k:
                back = torch.mm(grad, self.weights[k])
                grad = torch.ops.aten.threshold_backward(back, activations[k], 0)
        torch._foreach_add_(self.all, self.all_buffers, alpha=-self.rate)
