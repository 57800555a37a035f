"""The first layer of stacked networks on sparse inputs, in Triton: the product, and the step.

`sparse` says what is computed. A point's non-zeros are taken in blocks, by several programs side by
side: some texts are twenty times as long as others, and would be waited for. No two programs write
different things to one place and sums have one order, so the result is the same each time.

Shapes: R networks; B points in a mini-batch; D columns of the inputs; O outputs.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

# Non-zeros in a block, outputs in a block, programs that share a point's blocks between them.
PRODUCT = 32, 128, 4
UPDATE = 16, 128, 8
MARK = 128
_LEAST = 16


@triton.jit
def _product(
    weight, buffer, last, clock, paths, rows, starts, columns, values, out, programs, B, D, longest,
    O: tl.constexpr, parts: tl.constexpr, BN: tl.constexpr, BO: tl.constexpr,
):  # fmt: skip
    """A part of h = Σ_i x_i (w_i − c(k_i) v_i) of one point, BO outputs."""
    point, part = tl.program_id(0), tl.program_id(1)
    o = tl.program_id(2) * BO + tl.arange(0, BO)
    r = (point // B).to(tl.int64)
    row, now = tl.load(rows + point), tl.load(clock)
    first = tl.load(starts + row)
    count = (tl.load(starts + row + 1) - first).to(tl.int32)
    total = tl.zeros((BN, BO), out.dtype.element_ty)
    for start in range(part * BN, count, parts * BN):
        i = start + tl.arange(0, BN)
        here = i < count
        x = tl.load(values + first + i, mask=here, other=0.0)
        line = r * D + tl.load(columns + first + i, mask=here, other=0)
        idle = now - tl.load(last + line, mask=here, other=0)
        path = tl.load(paths + tl.minimum(idle, longest))
        there = here[:, None] & (o < O)[None, :]
        at = line[:, None] * O + o[None, :]
        w = tl.load(weight + at, mask=there, other=0.0)
        v = tl.load(buffer + at, mask=there, other=0.0)
        total += x[:, None] * (w - path[:, None] * v)
    tl.store(out + (part * programs + point) * O + o, tl.sum(total, axis=0), mask=o < O)


@triton.jit
def _update(
    weight, buffer, last, clock, powers, paths, rows, starts, columns, inputs, grad, B, D, longest,
    O: tl.constexpr, parts: tl.constexpr, BB: tl.constexpr, BN: tl.constexpr, BO: tl.constexpr,
):  # fmt: skip
    """One step for BO weights of each column that this point is the first of its mini-batch to have.

    `last` is only read here, since several programs read it for one column: `_mark` writes it.
    """
    point, part = tl.program_id(0), tl.program_id(1)
    o = tl.program_id(2) * BO + tl.arange(0, BO)
    r, place = (point // B).to(tl.int64), point % B
    row, now = tl.load(rows + point), tl.load(clock)
    first = tl.load(starts + row)
    count = (tl.load(starts + row + 1) - first).to(tl.int32)
    b = tl.arange(0, BB)
    batch = tl.load(rows + point - place + b, mask=b < B, other=0)
    for start in range(part * BN, count, parts * BN):
        i = start + tl.arange(0, BN)
        here = i < count
        j = tl.load(columns + first + i, mask=here, other=0)
        # All points' values at once, into the cache; those before this one tell whose the column is.
        wanted = (b < B)[:, None] & here[None, :]
        values_here = tl.load(inputs + batch[:, None] * D + j[None, :], mask=wanted, other=0.0)
        earlier = (values_here != 0) & (b < place)[:, None]
        here &= tl.max(earlier.to(tl.int32), axis=0) == 0
        d_weight = tl.zeros((BN, BO), weight.dtype.element_ty)
        for other in range(place, B):
            that = tl.load(rows + point - place + other)
            x = tl.load(inputs + that * D + j, mask=here, other=0.0)
            grad_row = tl.load(grad + (point - place + other) * O + o, mask=o < O, other=0.0)
            d_weight += x[:, None] * grad_row[None, :]
        line = r * D + j
        idle = now - tl.load(last + line, mask=here, other=0)
        path = tl.load(paths + tl.minimum(idle, longest))
        power = tl.load(powers + tl.minimum(idle + 1, longest))
        there = here[:, None] & (o < O)[None, :]
        at = line[:, None] * O + o[None, :]
        w = tl.load(weight + at, mask=there, other=0.0)
        v = tl.load(buffer + at, mask=there, other=0.0)
        new_buffer = power[:, None] * v + d_weight
        tl.store(buffer + at, new_buffer, mask=there)
        tl.store(weight + at, w - path[:, None] * v - new_buffer, mask=there)


@triton.jit
def _mark(last, clock, rows, starts, columns, B, D, BN: tl.constexpr):
    """The columns of one point are as they should be after this step."""
    point = tl.program_id(0)
    r = (point // B).to(tl.int64)
    row, now = tl.load(rows + point), tl.load(clock)
    first = tl.load(starts + row)
    count = (tl.load(starts + row + 1) - first).to(tl.int32)
    for start in range(0, count, BN):
        i = start + tl.arange(0, BN)
        j = tl.load(columns + first + i, mask=i < count, other=0)
        tl.store(last + r * D + j, tl.zeros((BN,), tl.int32) + now + 1, mask=i < count)


def product(
    weight_RDO: Tensor,
    momentum_buffer_RDO: Tensor,
    last_RD: Tensor,
    clock: Tensor,
    paths: Tensor,
    nonzeros: tuple[Tensor, Tensor, Tensor],
    rows_RB: Tensor,
) -> Tensor:
    """(R, B, O): each network's points by its weights as they would be now."""
    (R, B), (_, D, O) = rows_RB.shape, weight_RDO.shape
    BN, BO, parts = _blocks(PRODUCT, O)
    out = weight_RDO.new_empty(parts, R, B, O)
    _product[(R * B, parts, triton.cdiv(O, BO))](
        weight_RDO, momentum_buffer_RDO, last_RD, clock, paths, rows_RB, *nonzeros, out,
        R * B, B, D, len(paths) - 1, O, parts, BN=BN, BO=BO,
    )  # fmt: skip
    return out.sum(dim=0)


def update(
    weight_RDO: Tensor,
    momentum_buffer_RDO: Tensor,
    last_RD: Tensor,
    clock: Tensor,
    powers: Tensor,
    paths: Tensor,
    nonzeros: tuple[Tensor, Tensor, Tensor],
    inputs_ND: Tensor,
    rows_RB: Tensor,
    grad_RBO: Tensor,
) -> None:
    """One step of every column that a point of the mini-batch has, in place."""
    (R, B), (_, D, O) = rows_RB.shape, weight_RDO.shape
    (BN, BO, parts), (starts, columns, _) = _blocks(UPDATE, O), nonzeros
    _update[(R * B, parts, triton.cdiv(O, BO))](
        weight_RDO, momentum_buffer_RDO, last_RD, clock, powers, paths, rows_RB, starts, columns,
        inputs_ND, grad_RBO, B, D, len(paths) - 1, O, parts,
        BB=triton.next_power_of_2(B), BN=BN, BO=BO,
    )  # fmt: skip
    _mark[(R * B,)](last_RD, clock, rows_RB, starts, columns, B, D, BN=MARK)
    clock.add_(1)


def _blocks(sizes: tuple[int, int, int], O: int) -> tuple[int, int, int]:
    """With no fewer outputs than leave a place to each thread."""
    return sizes[0], min(sizes[1], triton.next_power_of_2(max(O, _LEAST))), sizes[2]
