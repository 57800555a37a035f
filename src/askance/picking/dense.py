"""Greedy picks of several pools at once on a GPU, every distance in float64.

A GPU reads a pool of 25,000 points in microseconds, so it needs no bounds; but waiting for the host
between picks is slow. One step here makes the next pick of R pools, and is replayed n times. The picks
are the same as those of `kmeanspp` and `kcenter`. Where two points are so near that the expanded square
has lost too many digits to decide, the result is None: call those two functions.

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

# ‖g − g'‖² under this share of ‖g‖² + ‖g'‖² has lost eight of its digits or more. Norms of points so
# near are alike, so twice a point's own is their sum.
_NEAR = 1e-8
_START_ENTRIES = 1 << 26


class _Greedy:
    """n picks of R pools, and every point's squared distance to the nearest pick."""

    def __init__(self, h_RND: Tensor, a_RNC: Tensor | None, bias: bool, n: int) -> None:
        R, N, _ = h_RND.shape
        device = h_RND.device
        self.h, self.a, self.bias = h_RND, a_RNC, bias
        self.sq_norms = h_RND.square().sum(dim=2) + bias
        if a_RNC is not None:
            self.sq_norms *= a_RNC.square().sum(dim=2)
        self.rows = torch.zeros(R, n, dtype=torch.int64, device=device)
        self.scores = torch.zeros(R, n, dtype=torch.float64, device=device)
        self.at = torch.zeros(1, dtype=torch.int64, device=device)
        self.sq = torch.full((R, N), torch.inf, dtype=torch.float64, device=device)
        self.picks, self.points = torch.arange(n, device=device), torch.arange(N, device=device)

    def sq_dists(self, row_R1: Tensor) -> Tensor:
        """‖g − g_row‖² of every point, (R, N)."""

        def of(tensor_RNK: Tensor) -> Tensor:
            return tensor_RNK.gather(1, row_R1[:, :, None].expand(-1, 1, tensor_RNK.shape[2]))

        inner = torch.bmm(self.h, of(self.h).transpose(1, 2))[:, :, 0]
        if self.bias:
            inner += 1.0
        if self.a is not None:
            inner *= torch.bmm(self.a, of(self.a).transpose(1, 2))[:, :, 0]
        total = self.sq_norms + self.sq_norms.gather(1, row_R1)
        return total.sub_(inner, alpha=2).clamp_min_(0.0)

    def take(self, row_R1: Tensor, score_R1: Tensor) -> None:
        """Record the next pick and update every distance.

        It uses masks, since writing by index is slow in deterministic mode.
        """
        here = self.picks == self.at
        torch.where(here, row_R1, self.rows, out=self.rows)
        torch.where(here, score_R1, self.scores, out=self.scores)
        self.at.add_(1)
        torch.minimum(self.sq, self.sq_dists(row_R1), out=self.sq)

    @property
    def state(self) -> list[Tensor]:
        return [self.rows, self.scores, self.at, self.sq]

    def result(self) -> list[Picks | None]:
        """The picks of each pool; None where a distance was too small to be exact."""
        free = torch.ones_like(self.sq, dtype=torch.bool).scatter_(1, self.rows, False)
        left = ((self.sq <= 2 * _NEAR * self.sq_norms) & free).any(dim=1)
        norms = self.sq_norms.gather(1, self.rows)
        near = (left | (self.scores <= 2 * _NEAR * norms).any(dim=1)).tolist()
        rows, scores = self.rows.cpu().numpy(), self.scores.cpu().numpy()
        return [None if n else Picks(r, s) for n, r, s in zip(near, rows, scores, strict=True)]


def dense_kmeanspp(
    h_RND: Tensor, a_RNC: Tensor, residuals: Sequence[Floats], n: int, *, bias: bool = False
) -> list[Picks | None]:
    """D² sampling in R pools, see `kmeanspp`: features, residuals of the loss, and clocks of each."""
    greedy = _Greedy(h_RND.double(), a_RNC.double(), bias, n)
    clocks = torch.from_numpy(np.stack(residuals)).to(h_RND.device)

    def take(row_R1: Tensor, score_R1: Tensor) -> None:
        greedy.take(row_R1, score_R1)
        clocks.masked_fill_(greedy.points == row_R1, torch.inf)

    first = greedy.sq_norms.argmax(dim=1, keepdim=True)
    take(first, greedy.sq_norms.gather(1, first))

    def step() -> None:
        wait = clocks / greedy.sq
        row = wait.argmin(dim=1, keepdim=True)
        score = greedy.sq.gather(1, row)
        clocks.addcmul_(greedy.sq, wait.gather(1, row), value=-1)
        take(row, score)

    repeated = Repeated(step, [*greedy.state, clocks])
    if n > 1:
        repeated(n - 1)
        repeated.wait()
    return greedy.result()


def dense_kcenter(h_RND: Tensor, labeled: Sequence[Tensor], n: int) -> list[Picks | None]:
    """Farthest first in R pools, see `kcenter`: features of each and of its labelled set."""
    greedy = _Greedy(h_RND.double(), None, False, n)
    for pool, labeled_LD in enumerate(labeled):
        _near_start(greedy, pool, labeled_LD.double())

    def step() -> None:
        row = greedy.sq.argmax(dim=1, keepdim=True)
        greedy.take(row, greedy.sq.gather(1, row))
        # Below every distance, so that it is never the farthest again.
        greedy.sq.masked_fill_(greedy.points == row, -1.0)

    repeated = Repeated(step, greedy.state)
    repeated(n)
    repeated.wait()
    return [picks and Picks(picks.rows, np.sqrt(picks.scores)) for picks in greedy.result()]


def _near_start(greedy: _Greedy, pool: int, labeled_LD: Tensor) -> None:
    """Set a pool's squared distances to those to its nearest starting centre."""
    norms_L = labeled_LD.square().sum(dim=1)
    rows = max(1, _START_ENTRIES // max(1, len(labeled_LD)))
    for start in range(0, greedy.h.shape[1], rows):
        view = slice(start, start + rows)
        scale = greedy.sq_norms[pool, view, None] + norms_L
        greedy.sq[pool, view] = torch.sub(scale, greedy.h[pool, view] @ labeled_LD.T, alpha=2).amin(
            1
        )
