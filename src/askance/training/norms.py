"""Batch-norm in training with what follows it, y = relu(x̂·γ + β + s), for a GPU, in Triton.

A library reads and writes the maps for the normalisation, again for the sum with the shortcut s, again
for the ReLU; here they are written once. Maps of up to `_WHOLE` places are one tile of a program, read
once. Larger ones are cut into parts: a first kernel finds each part's mean and Σ(x − mean)², or sums of
gradients, and every program of a second combines them. Sums have one order, so the result is the same
each time.

With g the gradient of y where y > 0, else 0, and sums over the P places of a channel:
∂β = Σg, ∂γ = Σg·x̂, ∂s = g, ∂x = γ/σ·(g − ∂β/P − x̂·∂γ/P).

Shapes: maps are a matrix of P places by C channels (of all networks), a tile BP places by BC channels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

_WHOLE = 512  # places that one program takes at once
_TILE = 8192  # places by channels of such a program, at most
_PLACES, _CHANNELS = 256, 32  # a tile of larger maps
_PARTS = 32  # sums of larger maps are cut into so many at most
_A_WARP = 512  # values of a tile for each warp
_WARPS = 8


@triton.jit
def _place(P, C, first, tile, BP: tl.constexpr, BC: tl.constexpr):
    """Channels of this program, and where a tile lies that begins at a place."""
    c = first + tl.arange(0, BC)
    place = tile + tl.arange(0, BP)
    there = (place < P)[:, None] & (c < C)[None, :]
    return c, place[:, None] * C + c[None, :], there


@triton.jit
def _of(values, c, C):
    return tl.load(values + c, mask=c < C, other=0.0)


@triton.jit
def _spread(x_tile, there, n):
    """Mean and Σ(x − mean)² of a tile that has n places."""
    mean = tl.sum(x_tile, axis=0) / n
    off = tl.where(there, x_tile - mean[None, :], 0.0)
    return mean, tl.sum(off * off, axis=0)


@triton.jit
def _moments(x, means, squares, P, C, span: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    """Mean and Σ(x − mean)² over `span` places: a part of them all."""
    blocks = tl.cdiv(C, BC)
    part, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BC
    mean, square = tl.zeros((BC,), tl.float32), tl.zeros((BC,), tl.float32)
    for start in range(0, span, BP):
        _, at, there = _place(P, C, first, part * span + start, BP, BC)
        n = tl.maximum(0, tl.minimum(BP, P - part * span - start)).to(tl.float32)
        here, more = _spread(tl.load(x + at, mask=there, other=0.0), there, tl.maximum(n, 1.0))
        # Chan, Golub & LeVeque (1979): two sets as one.
        delta, share = here - mean, n / (start + n)
        mean += delta * share
        square += more + delta * delta * (start * share)
    c = first + tl.arange(0, BC)
    tl.store(means + part * C + c, mean, mask=c < C)
    tl.store(squares + part * C + c, square, mask=c < C)


@triton.jit
def _parts_of(values, c, C, parts, BK: tl.constexpr):
    """(BK, BC) what the parts computed for these channels; 0 beyond the last part."""
    k = tl.arange(0, BK)
    there = (k < parts)[:, None] & (c < C)[None, :]
    return tl.load(values + k[:, None] * C + c[None, :], mask=there, other=0.0)


@triton.jit
def _forward(
    x, added, out, gamma, beta, running_mean, running_var, means, rstds, each_mean, each_square,
    P, C, span, parts, momentum, eps,
    whole: tl.constexpr, summed: tl.constexpr, rectified: tl.constexpr,
    BP: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A tile of y. The programs of the first places also keep the statistics."""
    blocks = tl.cdiv(C, BC)
    # The last places first: they are what the parts read last, and may still be in cache.
    tile = (tl.num_programs(0) - 1 - tl.program_id(0)) // blocks * BP
    c, at, there = _place(P, C, tl.program_id(0) % blocks * BC, tile, BP, BC)
    x_tile = tl.load(x + at, mask=there, other=0.0)
    if whole:
        mean, square = _spread(x_tile, there, P.to(tl.float32))
    else:
        n = tl.maximum(0, tl.minimum(span, P - tl.arange(0, BK) * span)).to(tl.float32)[:, None]
        part_means = _parts_of(each_mean, c, C, parts, BK)
        mean = tl.sum(n * part_means, axis=0) / P
        off = part_means - mean[None, :]
        square = tl.sum(_parts_of(each_square, c, C, parts, BK) + n * off * off, axis=0)
    rstd = tl.rsqrt(square / P + eps)
    if tile == 0:
        tl.store(means + c, mean, mask=c < C)
        tl.store(rstds + c, rstd, mask=c < C)
        old = _of(running_mean, c, C)
        tl.store(running_mean + c, old + momentum * (mean - old), mask=c < C)
        old = _of(running_var, c, C)
        tl.store(running_var + c, old + momentum * (square / (P - 1) - old), mask=c < C)
    y = _normed(x_tile, mean, rstd, c, C, gamma, beta)
    if summed:
        y += tl.load(added + at, mask=there, other=0.0)
    if rectified:
        y = tl.where(y <= 0.0, 0.0, y)  # NaN stays NaN, as in PyTorch
    tl.store(out + at, y, mask=there)


@triton.jit
def _normed(x_tile, mean, rstd, c, C, gamma, beta):
    scale = _of(gamma, c, C) * rstd
    shift = _of(beta, c, C)
    return (x_tile - mean[None, :]) * scale[None, :] + shift[None, :]


@triton.jit
def _grads(
    x, y, grad, gamma, beta, mean, rstd, c, at, there, C,
    summed: tl.constexpr, rectified: tl.constexpr,
):  # fmt: skip
    """g and x̂ of a tile. Where nothing was added, the sign of y comes from x: y is not read."""
    x_tile = tl.load(x + at, mask=there, other=0.0)
    g = tl.load(grad + at, mask=there, other=0.0)
    if summed:
        g = tl.where(tl.load(y + at, mask=there, other=0.0) <= 0.0, 0.0, g)
    elif rectified:
        g = tl.where(_normed(x_tile, mean, rstd, c, C, gamma, beta) <= 0.0, 0.0, g)
    return g, (x_tile - mean[None, :]) * rstd[None, :]


@triton.jit
def _sums(
    x, y, grad, passed, gamma, beta, means, rstds, shifts, scales, P, C, span: tl.constexpr,
    summed: tl.constexpr, rectified: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Σg and Σg·x̂ over `span` places: a part of them all. Writes g where the shortcut wants it."""
    blocks = tl.cdiv(C, BC)
    part, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BC
    c = first + tl.arange(0, BC)
    mean, rstd = _of(means, c, C), _of(rstds, c, C)
    shift, scale = tl.zeros((BC,), tl.float32), tl.zeros((BC,), tl.float32)
    for start in range(0, span, BP):
        _, at, there = _place(P, C, first, part * span + start, BP, BC)
        g, x_hat = _grads(
            x, y, grad, gamma, beta, mean, rstd, c, at, there, C, summed, rectified
        )  # fmt: skip
        if summed:
            tl.store(passed + at, g, mask=there)
        shift += tl.sum(g, axis=0)
        scale += tl.sum(g * x_hat, axis=0)
    tl.store(shifts + part * C + c, shift, mask=c < C)
    tl.store(scales + part * C + c, scale, mask=c < C)


@triton.jit
def _backward(
    x, y, grad, passed, back, gamma, beta, means, rstds, d_gamma, d_beta, shifts, scales,
    P, C, parts,
    whole: tl.constexpr, summed: tl.constexpr, rectified: tl.constexpr,
    BP: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A tile of ∂x. The programs of the first places also keep ∂γ and ∂β."""
    blocks = tl.cdiv(C, BC)
    tile = (tl.num_programs(0) - 1 - tl.program_id(0)) // blocks * BP
    c, at, there = _place(P, C, tl.program_id(0) % blocks * BC, tile, BP, BC)
    mean, rstd = _of(means, c, C), _of(rstds, c, C)
    g, x_hat = _grads(
        x, y, grad, gamma, beta, mean, rstd, c, at, there, C, summed, rectified
    )  # fmt: skip
    if whole:
        shift, scale = tl.sum(g, axis=0), tl.sum(g * x_hat, axis=0)
        if summed:
            tl.store(passed + at, g, mask=there)
    else:
        shift = tl.sum(_parts_of(shifts, c, C, parts, BK), axis=0)
        scale = tl.sum(_parts_of(scales, c, C, parts, BK), axis=0)
    if tile == 0:
        tl.store(d_beta + c, shift, mask=c < C)
        tl.store(d_gamma + c, scale, mask=c < C)
    gamma_rstd = _of(gamma, c, C) * rstd
    d_x = gamma_rstd[None, :] * (g - (shift / P)[None, :] - x_hat * (scale / P)[None, :])
    tl.store(back + at, d_x, mask=there)


class _Cut(NamedTuple):
    """How P places by C channels are cut: tiles, and parts of `span` places."""

    P: int
    C: int
    whole: bool
    BP: int
    BC: int
    span: int
    parts: int

    @classmethod
    def of(cls, maps: Tensor) -> _Cut:
        B, C, H, W = maps.shape
        P = B * H * W
        if P <= _WHOLE:
            BP = triton.next_power_of_2(P)
            return cls(P, C, True, BP, min(_CHANNELS, max(1, _TILE // BP)), P, 1)
        tiles = triton.cdiv(P, _PLACES)
        span = triton.cdiv(tiles, _PARTS) * _PLACES
        return cls(P, C, False, _PLACES, _CHANNELS, span, triton.cdiv(P, span))

    def grid(self, count: int) -> tuple[int]:
        return (count * triton.cdiv(self.C, self.BC),)

    @property
    def tiles(self) -> int:
        return triton.cdiv(self.P, self.BP)

    @property
    def blocks(self) -> dict[str, int]:
        warps = max(1, min(_WARPS, self.BP * self.BC // _A_WARP))
        return {"BP": self.BP, "BC": self.BC, "num_warps": warps}


class Norm(torch.autograd.Function):
    """Batch-norm in training, then ReLU if `rectified`; with `added`, relu of the sum in any case.

    Running statistics are moved in place.
    """

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, added: Tensor | None, gamma: Tensor, beta: Tensor,
        running_mean: Tensor, running_var: Tensor, momentum: float, eps: float, rectified: bool,
    ) -> Tensor:  # fmt: skip
        maps = maps.contiguous(memory_format=torch.channels_last)
        summed, rectified = added is not None, rectified or added is not None
        added = maps if added is None else added.contiguous(memory_format=torch.channels_last)
        cut = _Cut.of(maps)
        out = torch.empty_like(maps)
        mean, rstd = maps.new_empty(2, cut.C).unbind()
        part_sums = maps.new_empty(2, cut.parts, cut.C).unbind()
        if not cut.whole:
            _moments[cut.grid(cut.parts)](maps, *part_sums, cut.P, cut.C, cut.span, **cut.blocks)
        _forward[cut.grid(cut.tiles)](
            maps, added, out, gamma, beta, running_mean, running_var, mean, rstd, *part_sums,
            cut.P, cut.C, cut.span, cut.parts, momentum, eps,
            cut.whole, summed, rectified, BK=triton.next_power_of_2(cut.parts), **cut.blocks,
        )  # fmt: skip
        ctx.save_for_backward(maps, out if summed else None, gamma, beta, mean, rstd)
        ctx.rectified = rectified
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        maps, out, gamma, beta, mean, rstd = ctx.saved_tensors
        grad = grads[0].contiguous(memory_format=torch.channels_last)
        summed, rectified = out is not None, ctx.rectified
        cut = _Cut.of(maps)
        out = maps if out is None else out
        back, passed = torch.empty_like(maps), torch.empty_like(maps) if summed else grad
        d_gamma, d_beta = torch.empty_like(gamma), torch.empty_like(beta)
        part_sums = maps.new_empty(2, cut.parts, cut.C).unbind()
        g, flags = grad, (summed, rectified)
        if not cut.whole:
            _sums[cut.grid(cut.parts)](
                maps, out, grad, passed, gamma, beta, mean, rstd, *part_sums,
                cut.P, cut.C, cut.span, summed, rectified, **cut.blocks,
            )  # fmt: skip
            if summed:
                g, flags = passed, (False, False)  # it is g already
        _backward[cut.grid(cut.tiles)](
            maps, out, g, passed, back, gamma, beta, mean, rstd, d_gamma, d_beta, *part_sums,
            cut.P, cut.C, cut.parts,
            cut.whole, *flags, BK=triton.next_power_of_2(cut.parts), **cut.blocks,
        )  # fmt: skip
        return back, passed if summed else None, d_gamma, d_beta, *(None,) * 5
