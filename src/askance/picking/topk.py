"""The n best of a stream, ties to the lowest index; and sampling without replacement by top-k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding.sources import joined, rows_of


@dataclass(frozen=True, eq=False)
class Picks:
    """Chosen rows, best first, and the rule's own score of each when it was picked."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]


def top_k(scores_N: Tensor, k: int) -> Tensor:
    """Indices of the k highest scores, best first; equal scores go to the lowest index.

    `torch.topk` breaks ties as it likes, so only its k-th value is taken from it.
    """
    if k < len(scores_N):
        kth = scores_N.topk(k, sorted=False).values.amin()
        above = (scores_N > kth).nonzero().flatten()
        level = (scores_N == kth).nonzero().flatten()[: k - len(above)]
        chosen = torch.cat([above, level]).sort().values
    else:
        chosen = torch.arange(len(scores_N), device=scores_N.device)
    order = scores_N[chosen].sort(descending=True, stable=True).indices
    return chosen[order]


class StreamingTopK:
    """The k best rows of a stream of blocks in O(k + block) memory.

    Rows may carry data along (any structure of tensors; what explains a pick later). Blocks are
    buffered and thinned out only now and then, so a device is not asked for an answer at each.
    """

    def __init__(self, k: int, buffered: int = 16384) -> None:
        self.k = k
        self._limit = 2 * k + buffered
        self._parts: list[tuple[Tensor, Tensor, Any]] = []
        self._held = 0

    def push(self, positions: Tensor, scores: Tensor, carried: Any) -> None:
        """Offer the rows of a block; positions must be ascending from block to block."""
        self._parts.append((positions, scores, carried))
        self._held += len(scores)
        if self._held > self._limit:
            self._compact()

    def result(self) -> tuple[Tensor, Tensor, Any]:
        """(positions, scores, carried) of the k best, best first; fewer where fewer were offered."""
        positions, scores, carried = self._compact()
        order = top_k(scores, self.k)
        return positions[order], scores[order], rows_of(carried, order)

    def _compact(self) -> tuple[Tensor, Tensor, Any]:
        positions = torch.cat([part[0] for part in self._parts])
        scores = torch.cat([part[1] for part in self._parts])
        # Kept in the order of the stream, so that ties still go to the lowest position.
        kept = top_k(scores, self.k).sort().values
        carried = rows_of(joined([part[2] for part in self._parts]), kept)
        compact = positions[kept], scores[kept], carried
        self._parts, self._held = [compact], len(kept)
        return compact


def gumbel_keys(scores_N: Tensor, beta: float, gumbel_N: NDArray[np.float64]) -> Tensor:
    """β·log s + Gumbel noise: the k largest keys are k draws without replacement ∝ s^β.

    A weight s^β of 0 is taken as the limit of equal small weights: such points come after all others,
    in an order of chance.
    """
    scores_N = scores_N.double()
    gumbel = torch.from_numpy(gumbel_N).to(scores_N.device)
    if beta == 0:
        return gumbel
    # Gumbel draws span less than 50, so that these keys are below every other.
    lowest = beta * math.log(5e-324) - 50
    return torch.where(scores_N > 0, beta * scores_N.log(), lowest) + gumbel


def smallest(values_N: NDArray[Any], k: int) -> tuple[NDArray[np.int64], tuple[float, int]]:
    """The k smallest values' indices, ascending, and the (value, index) of the next smallest one.

    Both follow (value, index) order, so equal values are taken from the lowest index on.
    """
    if k >= len(values_N):
        return np.arange(len(values_N)), (np.inf, len(values_N))
    bar = np.partition(values_N, k)[k]
    below = values_N < bar
    count = int(np.count_nonzero(below))
    level = np.flatnonzero(values_N == bar)
    below[level[: k - count]] = True
    return np.flatnonzero(below), (float(bar), int(level[k - count]))
