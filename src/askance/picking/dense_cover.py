"""Greedy coverage on a GPU, every gain kept current.

A GPU holds the kernel of 25,000 candidates and 4,000 evaluation rows, and a pick raises the coverage of
few rows. So it needs no bounds; but waiting for the host between picks is slow. One step here makes the
next pick, and is replayed n times (`cover_kernels`); the picks are read once, at the end. They are
those of `cover`, but for gains that are level in their first twelve digits or so. Where digits are
lost, or the kernel has no room, the result is None: call `cover`.

Shapes: N candidates; M evaluation rows, B of a block; D features; n picks.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from askance.capture import Repeated, triton_kernels
from askance.picking.audience import Audience, sq_dists, unit_rows
from askance.picking.topk import Picks

# Gains are whole numbers, and Σ w(e) is up to 2 to this power.
_BITS = 61
# Gains under this share of Σ w(e), and kernels under this width, have lost digits that picks need.
_LEAST_GAIN, _LEAST_SQ_WIDTH = 2.0**-24, 1e-3
_BLOCK_ENTRIES = 1 << 24
_SHARE_OF_MEMORY = 0.5


def dense_cover(features_ND: Tensor, audience: Audience, n: int) -> Picks | None:
    """n picks, see `cover`, on the device of features and audience; or None."""
    N, M = len(features_ND), len(audience.unit_MD)
    kernels = triton_kernels("askance.picking.cover_kernels")
    total = float(audience.weights_M.sum())
    if kernels is None or total <= 0 or audience.sq_width < _LEAST_SQ_WIDTH:
        return None
    if M > kernels.MOST or N > kernels.MOST_ROWS or not _has_room(features_ND.device, 8 * N * M):
        return None
    scale = math.ldexp(1.0, _BITS - math.frexp(total)[1])
    weights_M = audience.weights_M * scale
    covered_M = (weights_M * audience.covered_M).round_().long()
    scaled_MN, gains_N = _scaled(features_ND, audience, weights_M, covered_M)
    state = kernels.GreedyState(scaled_MN, covered_M, gains_N, min(n, N))
    repeated = Repeated(state.step, state.changed)
    repeated(len(state.rows))
    repeated.wait()
    scores = state.scores.cpu().numpy() / scale
    if scores.min(initial=np.inf) < _LEAST_GAIN * total:
        return None
    return Picks(state.rows.cpu().numpy(), scores)


def _has_room(device: torch.device, count: int) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return count <= _SHARE_OF_MEMORY * (free + cached)


def _scaled(
    features_ND: Tensor, audience: Audience, weights_M: Tensor, covered_M: Tensor
) -> tuple[Tensor, Tensor]:
    """w(e)·k(x, e) in whole numbers, (M, N), and every candidate's gain in the same."""
    unit_ND = unit_rows(features_ND)
    N, M = len(unit_ND), len(weights_M)
    scaled_MN = covered_M.new_empty(M, N)
    gains_N = covered_M.new_zeros(N)
    step = max(1, _BLOCK_ENTRIES // N)
    for start in range(0, M, step):
        some = slice(start, start + step)
        kernel_BN = sq_dists(audience.unit_MD[some], unit_ND).div_(-audience.sq_width).exp_()
        scaled_MN[some] = kernel_BN.mul_(weights_M[some, None]).round_()
        gains_N += (scaled_MN[some] - covered_M[some, None]).clamp_min_(0).sum(dim=0)
    return scaled_MN, gains_N
