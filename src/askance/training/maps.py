"""Convolution, batch-norm and pooling of stacked networks, the fastest way that was measured.

Maps of R networks with C channels are one tensor of R·C channels, network by network, in channels-last
order: (B, R·C, H, W).

Shapes: R networks; B points in a mini-batch; I, O channels in and out; k kernel; P = B·H'·W' places.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from askance.capture import triton_kernels

WIDEST_POOL = 11  # the place in a window is kept in a byte
_GROUPED_UP_TO = 128
_LONG, _SMALL = 512, 4096
_FEW = 16


def convolved(
    maps: Tensor, weight_ROkkI: Tensor, bias_RO: Tensor | None, stride: int, padding: int
) -> Tensor:
    """(B, R·I, H, W) by R kernels → (B, R·O, H', W'), channels last."""
    R, O, _, _, I = weight_ROkkI.shape  # noqa: E741
    if I <= _FEW and _is_float32(maps) and _fits_int32(maps, R * O) and (ours := _kernels(maps)):
        return ours.Convolution.apply(maps, weight_ROkkI, bias_RO, stride, padding)
    out = _by_libraries(maps, weight_ROkkI, stride, padding)
    return out if bias_RO is None else out + bias_RO.flatten()[:, None, None]


def max_pooled(maps: Tensor, k: int, stride: int) -> Tensor:
    """The largest of each k×k window; windows do not overlap, and k is at most WIDEST_POOL."""
    if _fits_int32(maps, 1) and (ours := _kernels(maps)):
        return ours.MaxPool.apply(maps, k, stride)
    return F.max_pool2d(maps, k, stride)


def normed(
    maps: Tensor,
    added: Tensor | None,
    affine: tuple[Tensor, Tensor],
    running: tuple[Tensor, Tensor],
    *,
    training: bool,
    momentum: float,
    eps: float,
    rectified: bool,
) -> Tensor:
    """Batch-norm, then ReLU if `rectified`; with maps `added` to it, relu of the sum in any case."""
    if training and (ours := _norms(maps, added)):
        return ours.Norm.apply(maps, added, *affine, *running, momentum, eps, rectified)
    gamma, beta = (t.flatten() for t in affine)
    mean, var = (t.view(-1) for t in running)
    out = F.batch_norm(maps, mean, var, gamma, beta, training, momentum, eps)
    if added is not None:
        return torch.relu(out + added)
    return torch.relu(out) if rectified else out


def _by_libraries(maps: Tensor, weight_ROkkI: Tensor, stride: int, padding: int) -> Tensor:
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
        d_weight = _weight_grad(grad_RPO, patches_RPK).view_as(weight)
        if not ctx.needs_input_grad[0]:
            return None, d_weight, None, None
        spread_RPK = torch.bmm(grad_RPO, weight.flatten(2))
        B, _, H, W = grad.shape
        back = _overlapped(spread_RPK.view(R, B, H, W, k, k, I), shape, stride, padding)
        return back, d_weight, None, None


def _weight_grad(grad_RPO: Tensor, patches_RPK: Tensor) -> Tensor:
    """∂Yᵀ X of each network, (R, O, K).

    A long sum into a small matrix keeps few of a GPU's units busy: it is cut into pieces.
    """
    P, pieces = grad_RPO.shape[1], 1
    while P % (2 * pieces) == 0 and P // (2 * pieces) >= _LONG:
        pieces *= 2
    if pieces == 1 or grad_RPO.shape[2] * patches_RPK.shape[2] > _SMALL:
        return torch.bmm(grad_RPO.transpose(1, 2), patches_RPK)
    grad, patches_part = (t.unflatten(1, (pieces, -1)) for t in (grad_RPO, patches_RPK))
    return torch.matmul(grad.transpose(2, 3), patches_part).sum(dim=1)


def patches(
    maps: Tensor, count: int, k: int, stride: int, padding: int
) -> tuple[Tensor, tuple[int, int, int]]:
    """(R, P, k·k·I): what each place of the output sees; and (B, H', W')."""
    if ours := _kernels(maps):
        return ours.patches(maps, count, k, stride, padding)
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


def _kernels(values: Tensor) -> ModuleType | None:
    """Our own kernels, where they can be used: on a CUDA device, where Triton is installed."""
    usable = values.is_cuda and values.dtype in (torch.float32, torch.bfloat16)
    return triton_kernels("askance.training.kernels") if usable else None


def _norms(maps: Tensor, added: Tensor | None) -> ModuleType | None:
    """Our own batch-norm, where it can be used. A library refuses a single value a channel."""
    alike = added is None or (_is_float32(added) and added.shape == maps.shape)
    many = maps.numel() > maps.shape[1]
    fit = alike and many and _is_float32(maps) and _fits_int32(maps, 1)
    return triton_kernels("askance.training.norms") if fit and _kernels(maps) else None


def _is_float32(maps: Tensor) -> bool:
    """Whether these maps are computed with in float32: no autocast changes that."""
    return maps.dtype == torch.float32 and not torch.is_autocast_enabled("cuda")


def _fits_int32(maps: Tensor, channels: int) -> bool:
    """Whether 32-bit indices reach all of these maps, and of results with so many channels."""
    return maps.numel() // maps.shape[1] * max(channels, maps.shape[1]) < 2**31
