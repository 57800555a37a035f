"""R networks of one shape as one network: every layer computes all of them in one call.

Maps of R networks with C channels are one tensor of R·C channels, network by network, in channels-last
order: (B, R·C, H, W). Whatever works on channels one by one (batch-norm, pooling, ReLU, sums) then
works on R networks as it is. Convolutions and linear layers have a matrix for each network; they are
batched matrix products. Vectors are (R, B, D).

Shapes: R networks; B points in a mini-batch; I, O channels in and out; k kernel; P = B·H·W places.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from askance.errors import InputError
from askance.models.resnet18 import BasicBlock
from askance.training.manual_mlp import in_order, shared_weights
from askance.training.maps import WIDEST_POOL, convolved, max_pooled, normed

# These work on R·C channels as they do on C.
_CHANNELWISE = (nn.ReLU, nn.Identity, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)


class Stack(nn.Module):
    """R networks of one shape side by side, from their ordinary modules.

    Each layer with weights, and `nn.Flatten`, is replaced by one that computes R of it. Containers are
    kept, except where a batch-norm and the layers after it become one. `forward` takes
    (R, B, *shape), or (B, *shape) for the same points in all networks, and gives (R, B, C) logits.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        self.count = len(models)
        self.in_order = in_order(models[0])
        # A skeleton without data: containers and options are taken from it, weights from `models`.
        self.network = _stacked(copy.deepcopy(models[0]).to("meta"), list(models), "")

    def forward(self, inputs: Tensor, shared: bool = False) -> Tensor:
        if shared:
            inputs = inputs.expand(self.count, *inputs.shape)
        if inputs.ndim == 5:
            inputs = inputs.transpose(0, 1).flatten(1, 2)
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return self.network(inputs)

    def entry(self) -> StackedLinear | None:
        """The linear layer that inputs (R, B, D) come to first; None where there is no such, or where
        layers may not follow each other in the order they are listed."""
        leaves = [m for m in self.network.modules() if not list(m.children())]
        first = next((m for m in leaves if not isinstance(m, (_Flatten, nn.Identity))), None)
        return first if self.in_order and isinstance(first, StackedLinear) else None

    @torch.no_grad()
    def unstack(self, place: int, model: nn.Module) -> None:
        """Write one network's weights and statistics into its ordinary module."""
        for name, layer in self.network.named_modules():
            if isinstance(layer, (StackedLinear, _Conv, _BatchNorm)):
                layer.write(place, model.get_submodule(name))  # type: ignore[arg-type]

    def embedded(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(logits, features) of the same points in all networks: (R, B, C) and (R, B, D).

        Features are what the layer that gives the logits received.
        """
        calls: list[tuple[Tensor, Tensor]] = []
        heads = [m for m in self.network.modules() if isinstance(m, StackedLinear)]
        handles = [
            head.register_forward_hook(lambda _, args, out: calls.append((args[0], out)))
            for head in heads
        ]
        try:
            logits = self(inputs, shared=True)
        finally:
            for handle in handles:
                handle.remove()
        if not calls or calls[-1][1] is not logits:
            raise InputError(
                "a stacked network must end with the linear layer that gives its logits"
            )
        return logits, calls[-1][0]


def stackable(model: nn.Module) -> bool:
    """Whether copies of this network can be stacked: it is made of layers that can."""
    return not _unknown(model)


def _unknown(model: nn.Module) -> list[str]:
    kinds = (nn.Linear, nn.Conv2d, nn.BatchNorm2d, nn.Flatten, *_CHANNELWISE)
    layers = [
        f"{name} ({type(layer).__name__})"
        for name, layer in model.named_modules()
        if not _is_container(layer) and not (type(layer) in kinds and _is_supported(layer))
    ]
    return layers + [f"{name} (shared with another layer)" for name in shared_weights(model)]


def _is_container(layer: nn.Module) -> bool:
    weights_and_buffers = [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]
    return bool(list(layer.children())) and not weights_and_buffers


def _is_supported(layer: nn.Module) -> bool:
    """Whether the stacked layer has all the options that this one uses."""
    if isinstance(layer, nn.Conv2d):
        return (
            layer.groups == 1
            and layer.dilation == (1, 1)
            and layer.padding_mode == "zeros"
            and not isinstance(layer.padding, str)
            and len({*layer.stride}) == len({*layer.padding}) == len({*layer.kernel_size}) == 1
        )
    if isinstance(layer, nn.BatchNorm2d):
        return layer.affine and layer.track_running_stats and layer.momentum is not None
    if isinstance(layer, nn.Flatten):
        return (layer.start_dim, layer.end_dim) == (1, -1)
    if isinstance(layer, nn.AdaptiveAvgPool2d):
        return layer.output_size in (1, (1, 1))
    return True


def _stacked(layer: nn.Module, models: list[nn.Module], name: str) -> nn.Module:
    unknown = _unknown(layer) if not name else []
    if unknown:
        raise InputError(
            f"this network cannot be stacked: {', '.join(unknown)}; train its runs one by one "
            f"(training='one')"
        )
    solos: list[Any] = [model.get_submodule(name) for model in models]
    if isinstance(layer, nn.Linear):
        return StackedLinear(solos)
    if isinstance(layer, nn.Conv2d):
        return _Conv(solos)
    if isinstance(layer, nn.BatchNorm2d):
        return _BatchNorm(solos)
    if isinstance(layer, nn.MaxPool2d) and _windows_are_disjoint(layer):
        return _MaxPool(layer)
    if isinstance(layer, nn.Flatten):
        return _Flatten(len(models))
    for child, inner in layer._modules.items():  # one that is there twice, twice
        if inner is not None:
            setattr(layer, child, _stacked(inner, models, f"{name}.{child}" if name else child))
    if type(layer) is nn.Sequential:
        return _Chain(OrderedDict(layer._modules))
    if isinstance(layer, BasicBlock):
        return _Block(layer)
    return layer


def _windows_are_disjoint(pool: nn.MaxPool2d) -> bool:
    """Whether its windows do not overlap, and it uses no other option."""
    k, stride = pool.kernel_size, pool.stride
    return (
        isinstance(k, int)
        and isinstance(stride, int)
        and k <= min(stride, WIDEST_POOL)
        and not (pool.padding or pool.ceil_mode or pool.return_indices)
        and pool.dilation == 1
    )


class StackedLinear(nn.Module):
    """Weights are (R, D, O): the gradient of a product comes in that order, with no transpose."""

    def __init__(self, solos: Sequence[nn.Linear]) -> None:
        super().__init__()
        weights = [solo.weight.detach().T for solo in solos]
        self.weight = nn.Parameter(torch.stack(weights).contiguous())
        self.bias = _stacked_bias(solos)
        self.by_rows: Callable[[Tensor], Tensor] | None = None  # while training on sparse inputs

    def forward(self, inputs_RBD: Tensor) -> Tensor:
        if self.by_rows is not None:
            out_RBO = self.by_rows(inputs_RBD.squeeze(2))
            return out_RBO if self.bias is None else out_RBO + self.bias.unsqueeze(1)
        if self.bias is None:
            return torch.bmm(inputs_RBD, self.weight)
        return torch.baddbmm(self.bias.unsqueeze(1), inputs_RBD, self.weight)

    def write(self, place: int, solo: nn.Linear) -> None:
        solo.weight.copy_(self.weight[place].T)
        if self.bias is not None:
            solo.bias.copy_(self.bias[place])


class _Conv(nn.Module):
    """Weights are (R, O, k, k, I): the matrix of a product, and channels-last for a grouped call."""

    def __init__(self, solos: Sequence[nn.Conv2d]) -> None:
        super().__init__()
        weights = [solo.weight.detach().permute(0, 2, 3, 1) for solo in solos]
        self.weight = nn.Parameter(torch.stack(weights))
        self.bias = _stacked_bias(solos)
        first = solos[0]
        self.stride, self.padding = int(first.stride[0]), int(first.padding[0])

    def forward(self, maps: Tensor) -> Tensor:
        return convolved(maps, self.weight, self.bias, self.stride, self.padding)

    def write(self, place: int, solo: nn.Conv2d) -> None:
        solo.weight.copy_(self.weight[place].permute(0, 3, 1, 2))
        if self.bias is not None and solo.bias is not None:
            solo.bias.copy_(self.bias[place])


class _MaxPool(nn.Module):
    def __init__(self, solo: Any) -> None:
        super().__init__()
        self.k, self.stride = solo.kernel_size, solo.stride

    def forward(self, maps: Tensor) -> Tensor:
        return max_pooled(maps, self.k, self.stride)


class _Chain(nn.Sequential):
    """Layer after layer, a batch-norm and the ReLU after it in one."""

    def forward(self, maps: Tensor) -> Tensor:
        return _through(list(self), maps)


class _Block(nn.Module):
    """A `BasicBlock`: its last batch-norm, the sum and the ReLU are one."""

    def __init__(self, block: BasicBlock) -> None:
        super().__init__()
        self.residual, self.shortcut = block.residual, block.shortcut

    def forward(self, maps: Tensor) -> Tensor:
        *inner, last = self.residual
        return last(_through(inner, maps), self.shortcut(maps))


def _through(layers: list[nn.Module], maps: Tensor) -> Tensor:
    before: nn.Module | None = None
    for layer, after in zip(layers, [*layers[1:], None], strict=True):
        if isinstance(layer, _BatchNorm):
            maps = layer(maps, rectified=isinstance(after, nn.ReLU))
        elif not (isinstance(before, _BatchNorm) and isinstance(layer, nn.ReLU)):
            maps = layer(maps)
        before = layer
    return maps


class _BatchNorm(nn.Module):
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, solos: Sequence[nn.BatchNorm2d]) -> None:
        super().__init__()
        first = solos[0]
        self.eps, self.momentum = first.eps, first.momentum or 0.0
        self.weight = nn.Parameter(torch.stack([solo.weight.detach() for solo in solos]))
        self.bias = nn.Parameter(torch.stack([solo.bias.detach() for solo in solos]))
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, torch.stack([getattr(solo, name) for solo in solos]))

    def forward(self, maps: Tensor, added: Tensor | None = None, rectified: bool = False) -> Tensor:
        if self.training:
            self.num_batches_tracked.add_(1)
        return normed(
            maps,
            added,
            (self.weight, self.bias),
            (self.running_mean, self.running_var),
            training=self.training,
            momentum=self.momentum,
            eps=self.eps,
            rectified=rectified,
        )

    def write(self, place: int, solo: nn.BatchNorm2d) -> None:
        for name, value in (*self.named_parameters(), *self.named_buffers()):
            getattr(solo, name).copy_(value[place])


class _Flatten(nn.Module):
    """(B, R·C, H, W) → (R, B, C·H·W), in the order one network's own flattening has."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, maps: Tensor) -> Tensor:
        if maps.ndim == 3:
            return maps
        return maps.unflatten(1, (self.count, -1)).transpose(0, 1).flatten(2)


def _stacked_bias(solos: Sequence[Any]) -> nn.Parameter | None:
    if solos[0].bias is None:
        return None
    return nn.Parameter(torch.stack([solo.bias.detach() for solo in solos]))
