"""The greedy picks of several pools at once, every distance in float64: the way of a GPU.

A GPU reads a pool of 25,000 points in microseconds, so it needs no bounds; what it cannot bear is
waiting for the host between picks. One step here makes the next pick of R pools, and is replayed n
times. The picks are those of `kmeanspp` and `kcenter`, one by one. Where two points are so near that
the expanded square has lost too many digits to tell, the answer is None: ask those two.

Shapes: R pools of N points; D features; C classes; L starting centres; n picks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from askance.capture import Repeated
from askance.picking.points import Floats
from askance.picking.topk import Picks

# ‖g − g'‖² under this share of ‖g‖² + ‖g'‖² has lost eight of its digits or more.
_NEAR = 1e-8
_START_ENTRIES = 1 << 26


class _Greedy:
    """n picks of R pools by the smallest key; ties to the lowest row."""

    def __init__(self, h_RND: Tensor, a_RNC: Tensor | None, bias: bool, n: int) -> None:
        R, N, _ = h_RND.shape
        self.h, self.a, self.bias = h_RND, a_RNC, bias
        self.sq_norms = h_RND.square().sum(dim=2) + bias
        if a_RNC is not None:
            self.sq_norms *= a_RNC.square().sum(dim=2)
        self.rows = torch.zeros(R, n, dtype=torch.int64, device=h_RND.device)
        self.scores = torch.zeros(R, n, dtype=torch.float64, device=h_RND.device)
        self.at = torch.zeros(1, dtype=torch.int64, device=h_RND.device)
        self.sq = torch.full((R, N), torch.inf, dtype=torch.float64, device=h_RND.device)
        self.picked = torch.zeros(R, N, dtype=torch.bool, device=h_RND.device)
        self.near = torch.zeros(R, dtype=torch.bool, device=h_RND.device)

    def sq_dists(self, row_R1: Tensor) -> Tensor:
        """‖g − g_row‖² of every point, (R, N)."""

        def of(tensor_RNK: Tensor) -> Tensor:
            return tensor_RNK.gather(1, row_R1[:, :, None].expand(-1, 1, tensor_RNK.shape[2]))

        inner = torch.bmm(self.h, of(self.h).transpose(1, 2))[:, :, 0]
        if self.bias:
            inner += 1.0
        if self.a is not None:
            inner *= torch.bmm(self.a, of(self.a).transpose(1, 2))[:, :, 0]
        scale = self.sq_norms + self.sq_norms.gather(1, row_R1)
        return self.checked(torch.sub(scale, inner, alpha=2), scale, self.picked)

    def checked(self, sq_RN: Tensor, scale_RN: Tensor, apart_RN: Tensor) -> Tensor:
        """The squares, noting where one is too small to be trusted; `apart` need not be."""
        self.near |= ((sq_RN <= _NEAR * scale_RN) & ~apart_RN).any(dim=1)
        return sq_RN

    def take(self, row_R1: Tensor, score_R1: Tensor) -> None:
        """Write the next pick down and bring every distance up to date."""
        self.rows.index_copy_(1, self.at, row_R1)
        self.scores.index_copy_(1, self.at, score_R1)
        self.at.add_(1).remainder_(self.rows.shape[1])
        self.picked.scatter_(1, row_R1, True)
        torch.minimum(self.sq, self.sq_dists(row_R1), out=self.sq)

    @property
    def state(self) -> list[Tensor]:
        return [self.rows, self.scores, self.at, self.sq, self.picked, self.near]

    def result(self) -> list[Picks | None]:
        rows, scores = self.rows.cpu().numpy(), self.scores.cpu().numpy()
        near = self.near.tolist()
        return [None if n else Picks(r, s) for n, r, s in zip(near, rows, scores, strict=True)]


def first_of(keys_RN: Tensor) -> Tensor:
    """The lowest row among those with the smallest key, (R, 1)."""
    return (keys_RN == keys_RN.amin(dim=1, keepdim=True)).to(torch.uint8).argmax(1, keepdim=True)


def dense_kmeanspp(
    h_RND: Tensor, a_RNC: Tensor, residuals: Sequence[Floats], n: int, *, bias: bool = False
) -> list[Picks | None]:
    """D² sampling in R pools, see `kmeanspp`: features, residuals of the loss, and clocks of each."""
    greedy = _Greedy(h_RND.double(), a_RNC.double(), bias, n)
    clocks = torch.from_numpy(np.stack(residuals)).to(h_RND.device)
    first = first_of(-greedy.sq_norms)
    greedy.take(first, greedy.sq_norms.gather(1, first))

    def step() -> None:
        wait = (clocks / greedy.sq).where(~greedy.picked, torch.inf)
        row = first_of(wait)
        clocks.sub_(greedy.sq * wait.gather(1, row))
        greedy.take(row, greedy.sq.gather(1, row))

    repeated = Repeated(step, [*greedy.state, clocks])
    if n > 1:
        repeated(n - 1)
        repeated.wait()
    return greedy.result()


def dense_kcenter(h_RND: Tensor, labeled: Sequence[Tensor], n: int) -> list[Picks | None]:
    """Farthest first in R pools, see `kcenter`: features of each and of its labelled set."""
    greedy = _Greedy(h_RND.double(), None, False, n)
    for pool, seen_LD in enumerate(labeled):
        _near_start(greedy, pool, seen_LD.double())

    def step() -> None:
        row = first_of((-greedy.sq).where(~greedy.picked, torch.inf))
        greedy.take(row, greedy.sq.gather(1, row))

    repeated = Repeated(step, greedy.state)
    repeated(n)
    repeated.wait()
    return [picks and Picks(picks.rows, np.sqrt(picks.scores)) for picks in greedy.result()]


def _near_start(greedy: _Greedy, pool: int, seen_LD: Tensor) -> None:
    """Set a pool's squared distances to those to its nearest starting centre."""
    norms_L = seen_LD.square().sum(dim=1)
    rows = max(1, _START_ENTRIES // max(1, len(seen_LD)))
    for start in range(0, greedy.h.shape[1], rows):
        view = slice(start, start + rows)
        scale = greedy.sq_norms[pool, view, None] + norms_L
        sq = torch.sub(scale, greedy.h[pool, view] @ seen_LD.T, alpha=2)
        greedy.near[pool] |= (sq <= _NEAR * scale).any()
        greedy.sq[pool, view] = sq.amin(dim=1)
