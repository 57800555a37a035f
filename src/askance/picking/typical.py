"""How near a row is to its neighbours."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from askance.picking.points import Floats

_ENTRIES = 1 << 22


def mean_neighbour_dists(rows_MD: Tensor, k: int) -> Floats:
    """(M,) each row's mean distance to its k nearest other rows, all of them where there are fewer.

    0 for a row that has no other beside it. In float64, a block of rows at a time.
    """
    count = len(rows_MD)
    k = min(k, count - 1)
    if k == 0:
        return np.zeros(count)
    rows_MD = rows_MD.double()
    sq_M = rows_MD.square().sum(dim=1)
    means = []
    for block in torch.arange(count, device="cpu").split(max(1, _ENTRIES // count)):
        sq_BM = torch.addmm(sq_M, rows_MD[block], rows_MD.T, alpha=-2).add_(sq_M[block, None])
        sq_BM[block - block[0], block] = torch.inf
        nearest_Bk = sq_BM.topk(k, dim=1, largest=False).values
        means.append(nearest_Bk.clamp_(min=0.0).sqrt_().mean(dim=1))
    return torch.cat(means).numpy()
