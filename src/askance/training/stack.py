"""R networks of one shape as one network: every layer computes all of them in one call.

Maps of R networks with C channels are one tensor of R·C channels, network by network, in channels-last
order: (B, R·C, H, W). Whatever works on channels one by one (batch-norm, pooling, ReLU, sums) then
works on R networks as it is. Convolutions and linear layers have a matrix for each network; they are
batched matrix products. Vectors are (R, B, D).

Shapes: R networks; B points in a mini-batch; I, O channels in and out; k kernel; P = B·H·W places.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from askance.errors import InputError

# These work on R·C channels as they do on C.
_CHANNELWISE = (nn.ReLU, nn.Identity, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)
_GROUPED_UP_TO = 128
_LONG, _SMALL = 512, 4096
_FEW = 16
_WIDEST_POOL = 11  # the place in a window is kept in a byte


class Stack(nn.Module):
    """R networks of one shape side by side, from their ordinary modules.

    The containers are kept as they are; each layer with weights, and `nn.Flatten`, gives way to one
    that computes R of it. `forward` takes (R, B, *shape), or (B, *shape) for the same points in all
    networks, and gives (R, B, C) logits.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        self.count = len(models)
        # A skeleton without data: containers and options are taken from it, weights from `models`.
        self.network = _stacked(copy.deepcopy(models[0]).to("meta"), list(models), "")

    def forward(self, inputs: Tensor, shared: bool = False) -> Tensor:
        if shared:
            inputs = inputs.expand(self.count, *inputs.shape)
        if inputs.ndim == 5:
            inputs = inputs.transpose(0, 1).flatten(1, 2)
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return self.network(inputs)

    @torch.no_grad()
    def unstack(self, place: int, model: nn.Module) -> None:
        """Write one network's weights and statistics into its ordinary module."""
        for name, layer in self.network.named_modules():
            if isinstance(layer, (_Linear, _Conv, _BatchNorm)):
                layer.write(place, model.get_submodule(name))  # type: ignore[arg-type]

    def embedded(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(logits, features) of the same points in all networks: (R, B, C) and (R, B, D).

        Features are what the layer that gives the logits received.
        """
        heard: list[tuple[Tensor, Tensor]] = []
        heads = [m for m in self.network.modules() if isinstance(m, _Linear)]
        handles = [
            head.register_forward_hook(lambda _, given, out: heard.append((given[0], out)))
            for head in heads
        ]
        try:
            logits = self(inputs, shared=True)
        finally:
            for handle in handles:
                handle.remove()
        if not heard or heard[-1][1] is not logits:
            raise InputError(
                "a stacked network must end with the linear layer that gives its logits"
            )
        return logits, heard[-1][0]


def stackable(model: nn.Module) -> bool:
    """Whether copies of this network can be stacked: it is made of layers that can."""
    return not _unknown(model)


def _unknown(model: nn.Module) -> list[str]:
    known = (nn.Linear, nn.Conv2d, nn.BatchNorm2d, nn.Flatten, *_CHANNELWISE)
    return [
        f"{name} ({type(layer).__name__})"
        for name, layer in model.named_modules()
        if not _is_container(layer) and not (type(layer) in known and _plain(layer))
    ]


def _is_container(layer: nn.Module) -> bool:
    own = [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]
    return bool(list(layer.children())) and not own


def _plain(layer: nn.Module) -> bool:
    """No option that the stacked twin does not have."""
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
        return _Linear(solos)
    if isinstance(layer, nn.Conv2d):
        return _Conv(solos)
    if isinstance(layer, nn.BatchNorm2d):
        return _BatchNorm(solos)
    if isinstance(layer, nn.MaxPool2d) and _apart(layer):
        return _MaxPool(layer)
    if isinstance(layer, nn.Flatten):
        return _Flatten(len(models))
    for child, inner in layer.named_children():
        setattr(layer, child, _stacked(inner, models, f"{name}.{child}" if name else child))
    return layer


def _apart(pool: nn.MaxPool2d) -> bool:
    """Whether its windows lie side by side, and it has no other option."""
    k, stride = pool.kernel_size, pool.stride
    return (
        isinstance(k, int)
        and isinstance(stride, int)
        and k <= min(stride, _WIDEST_POOL)
        and not (pool.padding or pool.ceil_mode or pool.return_indices)
        and pool.dilation == 1
    )


def _kernels(values: Tensor) -> ModuleType | None:
    """Our own kernels, where they can be used: on a CUDA device, where Triton is installed."""
    usable = values.is_cuda and values.dtype in (torch.float32, torch.bfloat16)
    return _imported() if usable else None


def _countable(maps: Tensor, channels: int) -> bool:
    """Whether 32 bits number these maps, and results of so many channels at each of their places."""
    return maps.numel() // maps.shape[1] * max(channels, maps.shape[1]) < 2**31


@cache
def _imported() -> ModuleType | None:
    try:
        from askance.training import kernels
    except ImportError:
        return None
    return kernels


class _Linear(nn.Module):
    """Weights are (R, D, O): the slope of a product comes in that order, and need not be turned."""

    def __init__(self, solos: Sequence[nn.Linear]) -> None:
        super().__init__()
        weights = [solo.weight.detach().T for solo in solos]
        self.weight = nn.Parameter(torch.stack(weights).contiguous())
        self.bias = _stacked_bias(solos)

    def forward(self, inputs_RBD: Tensor) -> Tensor:
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
        R, O, *_, I = self.weight.shape  # noqa: E741
        plain = maps.dtype == torch.float32 and not torch.is_autocast_enabled("cuda")
        if I <= _FEW and plain and _countable(maps, R * O) and (ours := _kernels(maps)):
            return ours.Convolution.apply(maps, self.weight, self.bias, self.stride, self.padding)
        out = convolved(maps, self.weight, self.stride, self.padding)
        return out if self.bias is None else out + self.bias.flatten()[:, None, None]

    def write(self, place: int, solo: nn.Conv2d) -> None:
        solo.weight.copy_(self.weight[place].permute(0, 3, 1, 2))
        if self.bias is not None and solo.bias is not None:
            solo.bias.copy_(self.bias[place])


class _MaxPool(nn.Module):
    def __init__(self, solo: nn.MaxPool2d) -> None:
        super().__init__()
        self.solo = solo

    def forward(self, maps: Tensor) -> Tensor:
        solo: Any = self.solo
        if _countable(maps, 1) and (ours := _kernels(maps)):
            return ours.MaxPool.apply(maps, solo.kernel_size, solo.stride)
        return self.solo(maps)


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

    def forward(self, maps: Tensor) -> Tensor:
        if self.training:
            self.num_batches_tracked.add_(1)
        return F.batch_norm(
            maps,
            self.running_mean.view(-1),
            self.running_var.view(-1),
            self.weight.flatten(),
            self.bias.flatten(),
            self.training,
            self.momentum,
            self.eps,
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


def convolved(maps: Tensor, weight_ROkkI: Tensor, stride: int, padding: int) -> Tensor:
    """(B, R·I, H, W) by R kernels → (B, R·O, H', W'), channels last."""
    R, O, k, _, I = weight_ROkkI.shape  # noqa: E741
    if not _by_products(R, O, k, I):
        grouped = weight_ROkkI.reshape(R * O, k, k, I).permute(0, 3, 1, 2)
        return F.conv2d(maps, grouped, stride=stride, padding=padding, groups=R)
    kind = maps.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        maps, weight_ROkkI = maps.to(dtype), weight_ROkkI.to(dtype)
    with torch.autocast(kind, enabled=False):
        return _Products.apply(maps, weight_ROkkI, stride, padding)


def _by_products(R: int, O: int, k: int, I: int) -> bool:  # noqa: E741
    """Whether matrix products are the faster way, as measured in `results/training/`.

    A library's grouped convolution is good where as many channels come out as go in, and few of them;
    else it takes up to three times as long as making the patches.
    """
    return R > 1 and not (I == O <= _GROUPED_UP_TO and k > 1)


class _Products(torch.autograd.Function):
    """A convolution as the product of patches and kernels, network by network.

    With X the patches (R, P, k·k·I): Y = X Wᵀ, ∂W = ∂Yᵀ X, ∂X = ∂Y W, whose patches are added up
    where they overlap. Sums have one order, so the result is the same each time.
    """

    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
        R, O, k = weight.shape[:3]  # noqa: E741
        patches_RPK, (B, H, W) = patches(maps, R, k, stride, padding)
        out = torch.empty(
            (B, R * O, H, W),
            dtype=maps.dtype,
            device=maps.device,
            memory_format=torch.channels_last,
        )
        torch.bmm(patches_RPK, weight.flatten(2).transpose(1, 2), out=_matrices(out, R))
        ctx.save_for_backward(patches_RPK, weight)
        ctx.sizes = maps.shape, stride, padding
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, None, None]:
        patches_RPK, weight = ctx.saved_tensors
        shape, stride, padding = ctx.sizes
        R, _, k, _, I = weight.shape  # noqa: E741
        grad = grads[0].contiguous(memory_format=torch.channels_last)
        grad_RPO = _matrices(grad, R)
        slope = _slope(grad_RPO, patches_RPK).view_as(weight)
        if not ctx.needs_input_grad[0]:
            return None, slope, None, None
        spread_RPK = torch.bmm(grad_RPO, weight.flatten(2))
        B, _, H, W = grad.shape
        back = _overlapped(spread_RPK.view(R, B, H, W, k, k, I), shape, stride, padding)
        return back, slope, None, None


def _slope(grad_RPO: Tensor, patches_RPK: Tensor) -> Tensor:
    """∂Yᵀ X of each network, (R, O, K).

    A long sum into a small matrix keeps few of a GPU's units busy: it is cut into pieces.
    """
    P, pieces = grad_RPO.shape[1], 1
    while P % (2 * pieces) == 0 and P // (2 * pieces) >= _LONG:
        pieces *= 2
    if pieces == 1 or grad_RPO.shape[2] * patches_RPK.shape[2] > _SMALL:
        return torch.bmm(grad_RPO.transpose(1, 2), patches_RPK)
    grad, seen = (t.unflatten(1, (pieces, -1)) for t in (grad_RPO, patches_RPK))
    return torch.matmul(grad.transpose(2, 3), seen).sum(dim=1)


def patches(
    maps: Tensor, count: int, k: int, stride: int, padding: int
) -> tuple[Tensor, tuple[int, int, int]]:
    """(R, P, k·k·I): what each place of the output sees; and (B, H', W')."""
    if ours := _kernels(maps):
        sides = [(side + 2 * padding - k) // stride + 1 for side in maps.shape[2:]]
        return ours.patches(maps, count, k, stride, padding), (len(maps), sides[0], sides[1])
    rows = maps.permute(0, 2, 3, 1)
    if padding:
        rows = F.pad(rows, (0, 0, padding, padding, padding, padding))
    windows = rows.unfold(1, k, stride).unfold(2, k, stride)  # (B, H', W', R·I, k, k)
    B, H, W = windows.shape[:3]
    split = windows.unflatten(3, (count, -1)).permute(3, 0, 1, 2, 5, 6, 4)
    return split.reshape(count, B * H * W, -1), (B, H, W)


def _overlapped(spread: Tensor, shape: torch.Size, stride: int, padding: int) -> Tensor:
    """The sum of overlapping patches (R, B, H', W', k, k, I), as maps of `shape`."""
    if ours := _kernels(spread):
        R, k = spread.shape[0], spread.shape[4]
        return ours.overlapped(spread, shape, R, k, stride, padding)
    B, channels, height, width = shape
    R, _, H, W, k, _, I = spread.shape  # noqa: E741
    total = spread.new_zeros(B, height + 2 * padding, width + 2 * padding, R, I)
    places = spread.permute(1, 2, 3, 0, 4, 5, 6)
    for i in range(k):
        for j in range(k):
            down, across = slice(i, i + stride * H, stride), slice(j, j + stride * W, stride)
            total[:, down, across].add_(places[:, :, :, :, i, j])
    inner = total[:, padding : padding + height, padding : padding + width]
    return inner.reshape(B, height, width, channels).permute(0, 3, 1, 2)


def _matrices(maps: Tensor, count: int) -> Tensor:
    """Channels-last maps (B, R·C, H, W) as R matrices (P, C), without a copy."""
    B, channels, H, W = maps.shape
    rows = maps.permute(0, 2, 3, 1).reshape(B * H * W, count, channels // count)
    return rows.transpose(0, 1)
