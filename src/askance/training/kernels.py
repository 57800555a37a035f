"""Convolution and pooling of R networks side by side, in Triton.

A library's convolution of 3 or 6 channels leaves a GPU idle, and its patches are k² times the size of
the maps. Here no patch is written to memory: each program finds the places of a patch while it
multiplies. Sums have one order, so the result is the same each time.

Shapes: R networks; B points in a mini-batch; I, O channels in and out; k kernel; maps (B, H, W, R·I),
results (B, h, w, R·O); P = B·h·w places of the result; K = k·k·I what one of them sees, numbered by q.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# As measured on an H200: results/training.
_PLACES, _INNER, _LEAST = 32, 16, 16
_PROGRAMS = 1024
_BLOCK = 512


@triton.jit
def _forward(
    maps, weight, bias, out, P, R, H, W, h, w,
    I: tl.constexpr, O: tl.constexpr, k: tl.constexpr, stride: tl.constexpr, padding: tl.constexpr,
    biased: tl.constexpr, precision: tl.constexpr,
    BP: tl.constexpr, BK: tl.constexpr, BO: tl.constexpr,
):  # fmt: skip
    """Y = X Wᵀ + bias, BP places by BO channels of one network."""
    place = tl.program_id(0) * BP + tl.arange(0, BP)
    o = tl.program_id(1) * BO + tl.arange(0, BO)
    r = tl.program_id(2)
    b, y, x = place // (h * w), place // w % h * stride - padding, place % w * stride - padding
    corner = ((b * H + y) * W + x) * (R * I) + r * I
    total = tl.zeros((BP, BO), tl.float32)
    for start in range(0, k * k * I, BK):
        q = start + tl.arange(0, BK)
        i, j = q // (k * I), q // I % k
        inside = (place < P)[:, None] & (q < k * k * I)[None, :]
        if padding > 0:
            row, column = y[:, None] + i[None, :], x[:, None] + j[None, :]
            inside &= (row >= 0) & (row < H) & (column >= 0) & (column < W)
        step = (i * W + j) * (R * I) + q % I
        x_tile = tl.load(maps + (corner[:, None] + step[None, :]), mask=inside, other=0.0)
        there = (q < k * k * I)[:, None] & (o < O)[None, :]
        kernel = tl.load(
            weight + (r * O + o)[None, :] * (k * k * I) + q[:, None], mask=there, other=0.0
        )
        total = tl.dot(x_tile, kernel, total, input_precision=precision)
    if biased:
        total += tl.load(bias + r * O + o, mask=o < O, other=0.0)[None, :]
    at = place[:, None] * (R * O) + r * O + o[None, :]
    tl.store(out + at, total, mask=(place < P)[:, None] & (o < O)[None, :])


@triton.jit
def _weight_grads(
    maps, grad, d_weight, bias, P, R, H, W, h, w,
    I: tl.constexpr, O: tl.constexpr, k: tl.constexpr, stride: tl.constexpr, padding: tl.constexpr,
    precision: tl.constexpr, span: tl.constexpr,
    BP: tl.constexpr, BK: tl.constexpr, BO: tl.constexpr,
):  # fmt: skip
    """∂W = ∂Yᵀ X and ∂bias = Σ ∂Y over `span` places of one network: a part of the sum."""
    part, r = tl.program_id(0), tl.program_id(2)
    q = tl.program_id(1) * BK + tl.arange(0, BK)
    i, j = q // (k * I), q // I % k
    step = (i * W + j) * (R * I) + q % I
    o = tl.arange(0, BO)
    total = tl.zeros((BO, BK), tl.float32)
    sums = tl.zeros((BO,), tl.float32)
    end = tl.minimum(P, (part + 1) * span)
    for start in range(0, span, BP):
        place = part * span + start + tl.arange(0, BP)
        here = place < end
        b, y, x = place // (h * w), place // w % h * stride - padding, place % w * stride - padding
        corner = ((b * H + y) * W + x) * (R * I) + r * I
        inside = here[:, None] & (q < k * k * I)[None, :]
        if padding > 0:
            row, column = y[:, None] + i[None, :], x[:, None] + j[None, :]
            inside &= (row >= 0) & (row < H) & (column >= 0) & (column < W)
        x_tile = tl.load(maps + (corner[:, None] + step[None, :]), mask=inside, other=0.0)
        grad_tile = tl.load(
            grad + place[None, :] * (R * O) + (r * O + o)[:, None],
            mask=here[None, :] & (o < O)[:, None],
            other=0.0,
        )
        total = tl.dot(grad_tile, x_tile, total, input_precision=precision)
        sums += tl.sum(grad_tile, axis=1)
    line = (part * R + r) * O + o
    there = (o < O)[:, None] & (q < k * k * I)[None, :]
    tl.store(d_weight + line[:, None] * (k * k * I) + q[None, :], total, mask=there)
    if tl.program_id(1) == 0:
        tl.store(bias + line, sums, mask=o < O)


@triton.jit
def _back(
    grad, weight, out, P, R, H, W, h, w,
    I: tl.constexpr, O: tl.constexpr, k: tl.constexpr, stride: tl.constexpr, padding: tl.constexpr,
    precision: tl.constexpr,
    BP: tl.constexpr, BK: tl.constexpr, BI: tl.constexpr,
):  # fmt: skip
    """∂X, BP places of the maps by all channels of one network; P counts the maps' places here."""
    place = tl.program_id(0) * BP + tl.arange(0, BP)
    r = tl.program_id(1)
    c = tl.arange(0, BI)
    b, y, x = place // (H * W), place // W % H, place % W
    total = tl.zeros((BP, BI), tl.float32)
    for start in range(0, k * k * O, BK):
        q = start + tl.arange(0, BK)
        i, j, o = q // (k * O), q // O % k, q % O
        down, across = (y + padding)[:, None] - i[None, :], (x + padding)[:, None] - j[None, :]
        row, column = down // stride, across // stride
        inside = (place < P)[:, None] & (q < k * k * O)[None, :]
        inside &= (down >= 0) & (across >= 0) & (row < h) & (column < w)
        inside &= (down % stride == 0) & (across % stride == 0)
        at = ((b[:, None] * h + row) * w + column) * (R * O) + r * O + o[None, :]
        grad_tile = tl.load(grad + at, mask=inside, other=0.0)
        there = (q < k * k * O)[:, None] & (c < I)[None, :]
        at = ((r * O + o) * (k * k) + i * k + j)[:, None] * I + c[None, :]
        kernel = tl.load(weight + at, mask=there, other=0.0)
        total = tl.dot(grad_tile, kernel, total, input_precision=precision)
    at = place[:, None] * (R * I) + r * I + c[None, :]
    tl.store(out + at, total, mask=(place < P)[:, None] & (c < I)[None, :])


@triton.jit
def _pool(
    maps, out, which, n, C, H, W, h, w, k: tl.constexpr, stride: tl.constexpr, block: tl.constexpr
):
    """The largest of each window, and which of its k² places has it: the first, as in PyTorch."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    there = at < n
    c, place = at % C, at // C
    b, y, x = place // (h * w), place // w % h, place % w
    corner = ((b * H + y * stride) * W + x * stride) * C + c
    best = tl.load(maps + corner, mask=there, other=0.0)
    place_of_best = tl.zeros((block,), tl.int8)
    for inner in tl.static_range(1, k * k):
        value = tl.load(maps + corner + (inner // k * W + inner % k) * C, mask=there, other=0.0)
        better = (value > best) | (value != value)
        best = tl.where(better, value, best)
        place_of_best = tl.where(better, inner, place_of_best).to(tl.int8)
    tl.store(out + at, best, mask=there)
    tl.store(which + at, place_of_best, mask=there)


@triton.jit
def _unpool(
    grad, which, out, n, C, H, W, h, w, k: tl.constexpr, stride: tl.constexpr, block: tl.constexpr
):
    """∂ of the window goes to the place that had the largest."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    c, place = at % C, at // C
    b, row, column = place // (H * W), place // W % H, place % W
    y, x, i, j = row // stride, column // stride, row % stride, column % stride
    inside = (at < n) & (i < k) & (j < k) & (y < h) & (x < w)
    source = ((b * h + y) * w + x) * C + c
    grad_tile = tl.load(grad + source, mask=inside, other=0.0)
    winner = tl.load(which + source, mask=inside, other=-1)
    tl.store(out + at, tl.where(winner == i * k + j, grad_tile, 0.0), mask=at < n)


@triton.jit
def _patches(
    maps, out, P, R, H, W, h, w,
    I: tl.constexpr, k: tl.constexpr, stride: tl.constexpr, padding: tl.constexpr,
    BP: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """What BP places see at one of the k·k taps, BC channels of one network."""
    blocks: tl.constexpr = (I + BC - 1) // BC
    place = tl.program_id(0) * BP + tl.arange(0, BP)
    tap, r = tl.program_id(1) // blocks, tl.program_id(2)
    c = tl.program_id(1) % blocks * BC + tl.arange(0, BC)
    b, y, x = place // (h * w), place // w % h, place % w
    row, column = y * stride - padding + tap // k, x * stride - padding + tap % k
    here = (place < P)[:, None] & (c < I)[None, :]
    inside = ((row >= 0) & (row < H) & (column >= 0) & (column < W))[:, None] & here
    at = ((b * H + row) * W + column).to(tl.int64)[:, None] * (R * I) + r * I + c[None, :]
    x_tile = tl.load(maps + at, mask=inside, other=0.0)
    at = ((r.to(tl.int64) * P + place) * (k * k) + tap)[:, None] * I + c[None, :]
    tl.store(out + at, x_tile, mask=here)


@triton.jit
def _overlapped(
    spread, out, P, R, H, W, h, w,
    I: tl.constexpr, k: tl.constexpr, stride: tl.constexpr, padding: tl.constexpr,
    BP: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """The sum of all that patches say of BP places of the maps, BC channels of one network."""
    place = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    r = tl.program_id(2)
    b, y, x = place // (H * W), place // W % H, place % W
    here = (place < P)[:, None] & (c < I)[None, :]
    total = tl.zeros((BP, BC), tl.float32)
    for tap in range(k * k):
        down, across = y + padding - tap // k, x + padding - tap % k
        row, column = down // stride, across // stride
        inside = (down >= 0) & (across >= 0) & (row < h) & (column < w)
        inside &= (down % stride == 0) & (across % stride == 0)
        at = (((r.to(tl.int64) * (P // (H * W)) + b) * h + row) * w + column) * (k * k) + tap
        grad_tile = tl.load(
            spread + at[:, None] * I + c[None, :], mask=inside[:, None] & here, other=0.0
        )
        total += grad_tile.to(tl.float32)
    at = place.to(tl.int64)[:, None] * (R * I) + r * I + c[None, :]
    tl.store(out + at, total.to(out.dtype.element_ty), mask=here)


def patches(
    maps: Tensor, R: int, k: int, stride: int, padding: int
) -> tuple[Tensor, tuple[int, int, int]]:
    """(R, P, K): what each place of the result sees; and (B, h, w)."""
    maps = maps.contiguous(memory_format=torch.channels_last)
    B, channels, H, W = maps.shape
    I = channels // R
    h, w = _sides(H, W, k, stride, padding)
    P, BC = B * h * w, _block(I)
    out = maps.new_empty(R, P, k * k * I)
    _patches[(triton.cdiv(P, _PLACES), k * k * triton.cdiv(I, BC), R)](
        maps, out, P, R, H, W, h, w, I, k, stride, padding, BP=_PLACES, BC=BC
    )
    return out, (B, h, w)


def overlapped(
    spread: Tensor, like: torch.Size, R: int, k: int, stride: int, padding: int
) -> Tensor:
    """The sum of overlapping patches (R, P, K), as channels-last maps of the shape `like`."""
    B, channels, H, W = like
    I = channels // R
    h, w = _sides(H, W, k, stride, padding)
    P, BC = B * H * W, _block(I)
    out = _empty(spread, *like)
    _overlapped[(triton.cdiv(P, _PLACES), triton.cdiv(I, BC), R)](
        spread, out, P, R, H, W, h, w, I, k, stride, padding, BP=_PLACES, BC=BC
    )
    return out


class Convolution(torch.autograd.Function):
    """(B, R·I, H, W) by kernels (R, O, k, k, I), and (R, O) or None → (B, R·O, h, w), channels last."""

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int
    ) -> Tensor:
        maps = maps.contiguous(memory_format=torch.channels_last)
        weight = weight.contiguous()
        R, O, k, _, I = weight.shape
        B, _, H, W = maps.shape
        h, w = _sides(H, W, k, stride, padding)
        out = _empty(maps, B, R * O, h, w)
        BO, P = _block(O), B * h * w
        _forward[(triton.cdiv(P, _PLACES), triton.cdiv(O, BO), R)](
            maps, weight, weight if bias is None else bias, out, P, R, H, W, h, w,
            I, O, k, stride, padding, bias is not None, _precision(),
            BP=_PLACES, BK=_INNER, BO=BO,
        )  # fmt: skip
        ctx.save_for_backward(maps, weight)
        ctx.options = stride, padding, bias is not None
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        maps, weight = ctx.saved_tensors
        stride, padding, biased = ctx.options
        grad = grads[0].contiguous(memory_format=torch.channels_last)
        R, O, k, _, I = weight.shape
        B, _, H, W = maps.shape
        h, w = grad.shape[2:]
        sizes = R, H, W, h, w
        P, BK, BO = B * h * w, 2 * _INNER, triton.next_power_of_2(max(O, _LEAST))
        blocks = triton.cdiv(k * k * I, BK)
        # A long sum into a small matrix keeps few of a GPU's units busy: it is cut into parts.
        parts = max(1, min(triton.cdiv(P, 2 * _PLACES), _PROGRAMS // (R * blocks)))
        span = triton.cdiv(P, parts * _PLACES) * _PLACES
        parts = triton.cdiv(P, span)
        d_weight, d_bias = weight.new_empty(parts, *weight.shape), weight.new_empty(parts, R, O)
        _weight_grads[(parts, blocks, R)](
            maps, grad, d_weight, d_bias, P, *sizes,
            I, O, k, stride, padding, _precision(), span, BP=_PLACES, BK=BK, BO=BO,
        )  # fmt: skip
        back = None
        if ctx.needs_input_grad[0]:
            back = torch.empty_like(maps)
            _back[(triton.cdiv(B * H * W, _PLACES), R)](
                grad, weight, back, B * H * W, *sizes,
                I, O, k, stride, padding, _precision(),
                BP=_PLACES, BK=_INNER, BI=triton.next_power_of_2(max(I, _LEAST)),
            )  # fmt: skip
        return back, d_weight.sum(dim=0), d_bias.sum(dim=0) if biased else None, None, None


class MaxPool(torch.autograd.Function):
    """Max-pooling with windows that do not overlap (stride ≥ k), channels last."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, k: int, stride: int) -> Tensor:
        maps = maps.contiguous(memory_format=torch.channels_last)
        B, C, H, W = maps.shape
        h, w = _sides(H, W, k, stride, 0)
        out = _empty(maps, B, C, h, w)
        which = torch.empty_like(out, dtype=torch.int8)
        n = out.numel()
        _pool[(triton.cdiv(n, _BLOCK),)](maps, out, which, n, C, H, W, h, w, k, stride, _BLOCK)
        ctx.save_for_backward(which)
        ctx.options = k, stride, maps.shape
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (which,) = ctx.saved_tensors
        k, stride, (B, C, H, W) = ctx.options
        grad = grads[0].contiguous(memory_format=torch.channels_last)
        h, w = grad.shape[2:]
        back = _empty(grad, B, C, H, W)
        n = back.numel()
        _unpool[(triton.cdiv(n, _BLOCK),)](grad, which, back, n, C, H, W, h, w, k, stride, _BLOCK)
        return back, None, None


def _sides(H: int, W: int, k: int, stride: int, padding: int) -> tuple[int, int]:
    return (H + 2 * padding - k) // stride + 1, (W + 2 * padding - k) // stride + 1


def _empty(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(
        shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last
    )


def _block(channels: int) -> int:
    return min(64, triton.next_power_of_2(max(channels, _LEAST)))


def _precision() -> str:
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
