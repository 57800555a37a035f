"""Average-linkage clusters, for a few thousand rows."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.picking.points import Floats

_ENTRIES = 1 << 22


def average_linkage(rows_MD: Tensor, k: int) -> NDArray[np.int64]:
    """(M,) the cluster of each row, from 0 on: k of them, or fewer where merges tie.

    The two clusters that are nearest in the mean over pairs of their rows are merged, until k are left.
    All M(M − 1)/2 distances are kept, in float64.
    """
    # Imported here: half a second that nothing else needs.
    from scipy.cluster.hierarchy import fcluster, linkage

    if k >= len(rows_MD):
        return np.arange(len(rows_MD))
    merges = linkage(_distances(rows_MD.cpu().double()), method="average")
    clusters: NDArray[np.int64] = fcluster(merges, k, criterion="maxclust").astype(np.int64) - 1
    return clusters


def _distances(rows_MD: Tensor) -> Floats:
    """The distances of all pairs i < j, one row i after the other."""
    count = len(rows_MD)
    sq_M = rows_MD.square().sum(dim=1)
    pairs = np.empty(count * (count - 1) // 2)
    end = 0
    for block in torch.arange(count, device="cpu").split(max(1, _ENTRIES // count)):
        sq_BM = torch.addmm(sq_M, rows_MD[block], rows_MD.T, alpha=-2).add_(sq_M[block, None])
        dists_BM = sq_BM.clamp_(min=0.0).sqrt_().numpy()
        for i, dists_M in zip(block.tolist(), dists_BM, strict=True):
            start, end = end, end + count - i - 1
            pairs[start:end] = dists_M[i + 1 :]
    return pairs
