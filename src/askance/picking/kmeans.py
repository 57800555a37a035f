"""k-means: Lloyd's iterations from centres drawn by exact D² sampling."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.picking.kmeanspp import Clocks
from askance.picking.points import feature_points
from askance.seeding import Draws

_BLOCK = 1 << 22
_ROUNDS = 100
# Where no more than this share of the rows changes its cluster, so does next to nothing else.
_SETTLED = 1e-3


def unit_length(features_ND: Tensor) -> Tensor:
    """Each row divided by its length, in float64 on the CPU; a row of zeros stays as it is."""
    rows_ND = features_ND.cpu().double()
    # By its largest entry first, since the square of a tiny or a huge one is no number.
    peak_N1 = rows_ND.abs().amax(dim=1, keepdim=True)
    rows_ND = rows_ND / torch.where(peak_N1 > 0, peak_N1, 1.0)
    lengths_N1 = torch.linalg.vector_norm(rows_ND, dim=1, keepdim=True)
    return rows_ND / torch.where(lengths_N1 > 0, lengths_N1, 1.0)


def kmeans(rows_ND: Tensor, k: int, purpose: str, draws: Draws) -> NDArray[np.int64]:
    """(N,) the cluster of each row, from 0 to k − 1; some may be empty where rows are copies.

    The first centre is drawn uniformly and the others ∝ D², so that the draws are those of k-means++.
    """
    return lloyd(rows_ND, rows_ND[first_centres(rows_ND, k, purpose, draws)])


def first_centres(rows_ND: Tensor, k: int, purpose: str, draws: Draws) -> NDArray[np.int64]:
    """The k rows that k-means begins with."""
    points, each = feature_points(rows_ND), range(len(rows_ND))
    first = int(draws.uniform(f"{purpose} first centre", each).argmin())
    clocks = Clocks(points, k, draws.exponential(f"{purpose} centres", each))
    clocks.start(first, points.exact(np.array([first])))
    return clocks.run().rows


def lloyd(rows_ND: Tensor, centres_KD: Tensor) -> NDArray[np.int64]:
    """The cluster of each row once hardly a row changes it; equal distances go to the lower cluster.

    A cluster without rows keeps its centre.
    """
    labels_N = torch.full((len(rows_ND),), -1, device="cpu")
    for _ in range(_ROUNDS):
        before_N, labels_N = labels_N, _nearest(rows_ND, centres_KD)
        if int((labels_N != before_N).sum()) <= _SETTLED * len(rows_ND):
            break
        counts_K = torch.bincount(labels_N, minlength=len(centres_KD))
        sums_KD = torch.zeros_like(centres_KD).index_add_(0, labels_N, rows_ND)
        full_K = counts_K > 0
        centres_KD = centres_KD.clone()
        centres_KD[full_K] = sums_KD[full_K] / counts_K[full_K, None]
    return labels_N.numpy()


def _nearest(rows_ND: Tensor, centres_KD: Tensor) -> Tensor:
    half_sq_K = centres_KD.square().sum(dim=1) / 2
    parts = rows_ND.split(max(1, _BLOCK // len(centres_KD)))
    return torch.cat(
        [torch.addmm(half_sq_K, part, centres_KD.T, alpha=-1).argmin(1) for part in parts]
    )
