"""The n best of a stream, ties to the lowest index; and sampling without replacement by top-k."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding, concatenated, positions_array
from askance.errors import InputError


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


@dataclass(frozen=True, eq=False)
class TopRows:
    """The best rows of a pool or of a part of it, best first; equal scores by position.

    Args:
        rows: (k,) the rows.
        scores: (k,) float64.
    """

    rows: Embedding
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, index: NDArray[np.int64]) -> TopRows:
        """Some of them, in that order."""
        return TopRows(self.rows[index], self.scores[index])

    @classmethod
    def empty(cls) -> TopRows:
        """No rows at all."""
        return cls(Embedding.empty(), np.empty(0))

    @classmethod
    def best_of(cls, parts: Iterable[TopRows], n: int) -> TopRows:
        """The n best of several parts; the same whatever the order of the parts."""
        full = [part for part in parts if len(part)]
        if not full:
            return cls.empty()
        rows = concatenated([part.rows for part in full])
        scores = np.concatenate([part.scores for part in full])
        return cls(rows, scores)[np.lexsort((positions_array(rows.positions), -scores))[:n]]


# A GPU that is asked for an answer at each block waits for its host: so many rows are buffered there.
_GPU_ROWS = 16384


class StreamingTopK:
    """The k best rows of a stream of blocks in O(k + block) memory.

    A block whose rows may be among the best is kept as it is, a view of it where it can be, and
    thinned out with others when more than 2k rows wait.

    Args:
        k: how many rows.
        buffered: how many rows more may wait; 0 on a CPU, thousands on a GPU, when None.
    """

    def __init__(self, k: int, buffered: int | None = None) -> None:
        self.k, self._buffered = k, buffered
        self._parts: list[tuple[Embedding, Tensor]] = []
        self._waiting = 0
        self._bar: float | None = None  # the k-th best score when it was last looked at

    def push(self, rows: Embedding, scores_B: Tensor) -> None:
        """Offer the rows of a block; positions must be ascending from block to block."""
        if self._buffered is None:
            self._buffered = _GPU_ROWS if scores_B.is_cuda else 0
        if self._bar is not None and not self._buffered:
            # Equal scores go to the lower position, which was there before.
            above = (scores_B > self._bar).nonzero().flatten()
            if not len(above):
                return
            rows, scores_B = rows[above], scores_B[above]
        self._parts.append((rows, scores_B))
        self._waiting += len(scores_B)
        if self._waiting > 2 * self.k + self._buffered:
            self._thin_out()

    def result(self) -> TopRows:
        """The k best, best first; fewer where fewer were offered."""
        if not self._waiting:
            return TopRows.empty()
        if len(self._parts) > 1 or self._waiting > self.k:
            self._thin_out()
        ((rows, scores_K),) = self._parts
        order = scores_K.sort(descending=True, stable=True).indices
        return TopRows(rows[order], scores_K[order].double().cpu().numpy())

    def _thin_out(self) -> None:
        lengths = [len(scores) for _, scores in self._parts]
        scores_W = torch.cat([scores for _, scores in self._parts])
        # Kept in the order of the stream, so that ties still go to the lowest position.
        kept_K = top_k(scores_W, self.k).sort().values
        kept, starts = kept_K.cpu().numpy(), np.cumsum([0, *lengths])
        cuts = np.searchsorted(kept, starts)
        rows = [
            part[kept[low:high] - start]
            for (part, _), low, high, start in zip(
                self._parts, cuts[:-1], cuts[1:], starts[:-1], strict=True
            )
            if low < high
        ]
        scores_K = scores_W[kept_K]
        self._parts, self._waiting = [(concatenated(rows), scores_K)], len(kept)
        if not self._buffered and len(kept) == self.k:
            self._bar = float(scores_K.min())


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


def power_scores(scores_B: Tensor, beta: float, gumbel_B: NDArray[np.float64]) -> Tensor:
    """`gumbel_keys` of a rule's scores; one that is not finite is passed on, to be refused."""
    keys_B = gumbel_keys(scores_B, beta, gumbel_B)
    return keys_B.where(scores_B.isfinite(), scores_B.double())


def check_beta(beta: float) -> None:
    """Raise unless β is a power to sample by."""
    if not (isinstance(beta, (int, float)) and 0 <= beta < math.inf):
        raise InputError(f"beta must be a finite number ≥ 0, got {beta!r}")


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
