"""Which rows point almost the same way."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.gradients.last_layer import working

# A cosine in float32 may be off by this much; nearer ones are computed again in float64.
_FLOAT32 = 1e-4
# 1 − cos of copies that came through a network in different batches.
_SAME = 1e-12


class Similar:
    """Rows whose features point almost the same way.

    Args:
        features: (N, D).
        most: the cosine that two rows may not reach; copies reach 1.
    """

    def __init__(self, features: Tensor, most: float) -> None:
        self.features = working(features)
        self._most = most
        self._norms = torch.linalg.vector_norm(self.features, dim=1, dtype=torch.float64)

    def to(self, row: int) -> NDArray[np.bool_]:
        """(N,) which rows are similar to this one; it is so itself.

        With u of length 1, 1 − cos = ½‖u − u'‖², which keeps its digits where the cosine is near 1. A
        zero feature has no direction; it is similar to other zero features.
        """
        h_D, length = self.features[row], self._norms[row]
        similar = np.zeros(len(self.features), dtype=bool)
        if length > 0:
            along = self.features @ (h_D / length).to(h_D.dtype)
            close = along >= (self._most - _FLOAT32) * self._norms
            near = (close & (self._norms > 0)).nonzero().flatten()
            u, v = self.features[near].double(), h_D.double()
            gaps = (u / u.norm(dim=1, keepdim=True) - v / v.norm()).square().sum(dim=1) / 2
            near = near[gaps <= 1 - self._most + _SAME]
            similar[near.cpu().numpy()] = True
        else:
            similar |= (self._norms == 0).cpu().numpy()
        similar[row] = True
        return similar
