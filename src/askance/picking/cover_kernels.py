"""Greedy coverage on a GPU, in Triton: a pick is two small kernels, and nobody waits for the host.

The kernel is in whole numbers, so that sums are exact and do not depend on their order. A column is an
evaluation row e of it: w(e)·k(x, e) of all candidates x, scaled. Gains are kept current: where a pick
raises the coverage of a column from `before` to `after`, a candidate loses what lay between.

Shapes: N candidates, a tile BX of them; M evaluation rows, BM the next power of two; P tiles, BP alike.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_TILE, _COLUMNS = 128, 8
_WARPS = 8
# Gains are compared without their last bits, where two rows that cover as much may differ.
_SHIFT = 16
# So many columns, and so many tiles, one program looks at.
MOST = 1 << 14
MOST_ROWS = MOST * _TILE


@triton.jit
def _lower(
    scaled_MN, gains_N, free_N, column_M, before_M, after_M, count, key_P, row_P, N,
    shift: tl.constexpr, BX: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Lower the gains of a tile by what the last pick covers; the tile's best candidate."""
    x = tl.program_id(0) * BX + tl.arange(0, BX)
    there = x < N
    gain = tl.load(gains_N + x, mask=there, other=0)
    raised = tl.load(count).to(tl.int32)
    for start in range(0, raised, BC):
        at = start + tl.arange(0, BC)
        some = at < raised
        column = tl.load(column_M + at, mask=some, other=0)
        before = tl.load(before_M + at, mask=some, other=0)
        after = tl.load(after_M + at, mask=some, other=0)
        k = tl.load(
            scaled_MN + column[:, None] * N + x[None, :],
            mask=some[:, None] & there[None, :],
            other=0,
        )
        lost = tl.minimum(tl.maximum(k, before[:, None]), after[:, None]) - before[:, None]
        gain -= tl.sum(lost, axis=0)
    tl.store(gains_N + x, gain, mask=there)
    free = tl.load(free_N + x, mask=there, other=0) != 0
    key = tl.where(free, gain >> shift, -1)
    best = tl.max(key, axis=0)
    row = tl.min(tl.where(key == best, x, N), axis=0)
    tl.store(key_P + tl.program_id(0), best)
    tl.store(row_P + tl.program_id(0), row)


@triton.jit
def _take(
    scaled_MN, gains_N, free_N, covered_M, column_M, before_M, after_M, count, key_P, row_P,
    rows_n, scores_n, at, N, M, P, n, BM: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    """Pick the best candidate of all tiles, and list the columns whose coverage it raises."""
    tile = tl.arange(0, BP)
    key = tl.load(key_P + tile, mask=tile < P, other=-2)
    row_of_tile = tl.load(row_P + tile, mask=tile < P, other=N)
    row = tl.min(tl.where(key == tl.max(key, axis=0), row_of_tile, N), axis=0)
    place = tl.atomic_add(at, 1)
    tl.store(rows_n + place, row, mask=place < n)
    tl.store(scores_n + place, tl.load(gains_N + row), mask=place < n)
    tl.store(free_N + row, 0)
    e = tl.arange(0, BM)
    k = tl.load(scaled_MN + e.to(tl.int64) * N + row, mask=e < M, other=0)
    covered = tl.load(covered_M + e, mask=e < M, other=0)
    raised = k > covered
    # Those that are raised, one after the other.
    into = tl.cumsum(raised.to(tl.int32), axis=0) - 1
    tl.store(column_M + into, e, mask=raised)
    tl.store(before_M + into, covered, mask=raised)
    tl.store(after_M + into, k, mask=raised)
    # A thread may hold what another one has read: all must have, before it is written.
    tl.debug_barrier()
    tl.store(covered_M + e, k, mask=raised)
    tl.store(count, tl.sum(raised.to(tl.int32), axis=0))


class GreedyState:
    """Gains, coverage and picks on a device, and the step that makes the next pick.

    Args:
        scaled_MN: w(e)·k(x, e) in whole numbers, int64.
        covered_M: w(e)·cov(e) in the same.
        gains_N: Σ_e (w(e)·k(x, e) − w(e)·cov(e))₊ of them.
        n: how many picks there is room for, N at most.
    """

    def __init__(self, scaled_MN: Tensor, covered_M: Tensor, gains_N: Tensor, n: int) -> None:
        self.scaled, self.covered, self.gains = scaled_MN, covered_M, gains_N
        self.tiles = triton.cdiv(len(gains_N), _TILE)
        self.free = torch.ones_like(gains_N)
        self.column, self.before, self.after = (torch.zeros_like(covered_M) for _ in range(3))
        self.key, self.row = (gains_N.new_zeros(self.tiles) for _ in range(2))
        self.count, self.at = (gains_N.new_zeros(1) for _ in range(2))
        self.rows, self.scores = (gains_N.new_zeros(n) for _ in range(2))

    @property
    def changed(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        best = [self.key, self.row, self.free, self.rows, self.scores, self.at]
        return [self.gains, self.covered, self.column, self.before, self.after, self.count, *best]

    def step(self) -> None:
        """Make the next pick."""
        M, N = self.scaled.shape
        listed = self.column, self.before, self.after, self.count, self.key, self.row
        _lower[(self.tiles,)](
            self.scaled, self.gains, self.free, *listed, N,
            shift=_SHIFT, BX=_TILE, BC=_COLUMNS,
        )  # fmt: skip
        _take[(1,)](
            self.scaled, self.gains, self.free, self.covered, *listed,
            self.rows, self.scores, self.at, N, M, self.tiles, len(self.rows),
            BM=triton.next_power_of_2(M), BP=triton.next_power_of_2(self.tiles), num_warps=_WARPS,
        )  # fmt: skip
