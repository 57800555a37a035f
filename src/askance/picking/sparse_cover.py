"""Greedy coverage where few pairs of candidate and evaluation row matter.

Of the kernel only what is above the coverage that labels give can ever count: of 25,000 candidates and
2,500 labelled rows ten entries for each evaluation row. One pass finds them (`near`), and then every
gain is kept in float64; a pick changes those of a few candidates.

Shapes: N candidates; M evaluation rows; E entries; n picks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.picking.audience import Audience, unit_rows
from askance.picking.eligible import Eligible
from askance.picking.near import NearRows, formed_sq_dists, low_unit_rows
from askance.picking.points import Floats, Rows
from askance.picking.topk import Picks, smallest

_MOST_PAIRS = 1 << 20
_PROBED = 256
_BLOCK = 512
_GROUP, _AHEAD = 2048, 16
_BITS = 40


@dataclass(frozen=True, eq=False)
class Entries:
    """The kernel of N candidates and M evaluation rows where it is above the coverage, row after row.

    Args:
        starts: (N + 1,) where each candidate's entries begin.
        columns: (E,) the evaluation rows, ascending for each candidate.
        kernel: (E,) k(x, e).
    """

    starts: Rows
    columns: Rows
    kernel: Floats

    @classmethod
    def of(cls, features_ND: Tensor, audience: Audience) -> Entries | None:
        """Those of a pool; None where there are too many."""
        limits_M = audience.covered_M.log().mul_(-audience.sq_width)
        near = NearRows(audience.unit_MD, limits_M)
        N = len(features_ND)
        some = torch.from_numpy(np.linspace(0, N - 1, min(N, _PROBED)).astype(np.int64))
        probed, _ = near.pairs(low_unit_rows(features_ND[some]))
        if len(probed) * (N / len(some)) > _MOST_PAIRS:
            return None
        parts = []
        for start in range(0, N, _BLOCK):
            block_BD = features_ND[start : start + _BLOCK]
            i, j = near.pairs(low_unit_rows(block_BD))
            there, place = np.unique(i, return_inverse=True)
            own = unit_rows(block_BD[torch.from_numpy(there)]).numpy()
            sq = formed_sq_dists(own, place, audience.unit_MD.numpy(), j)
            kernel = np.exp(-sq / audience.sq_width)
            above = kernel > audience.covered_M.numpy()[j]
            parts.append((start + i[above], j[above], kernel[above]))
        rows, columns, kernel = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(np.searchsorted(rows, np.arange(N + 1)), columns, kernel)


def sparse_cover(
    features_ND: Tensor, audience: Audience, n: int, eligible: Eligible | None = None
) -> Picks | None:
    """n picks, see `cover`; None where too much of the kernel is above the coverage."""
    if not bool((audience.covered_M > 0).all()):
        return None
    entries = Entries.of(features_ND, audience)
    return None if entries is None else _SparseGreedy(entries, audience, n, eligible).run()


class _SparseGreedy:
    """Every candidate's gain, and the coverage so far."""

    def __init__(
        self, entries: Entries, audience: Audience, n: int, eligible: Eligible | None
    ) -> None:
        self._entries, self._n, self._eligible = entries, n, eligible
        self._covered = audience.covered_M.numpy().copy()
        self._weights = audience.weights_M.numpy()
        owners = np.repeat(np.arange(len(entries.starts) - 1), np.diff(entries.starts))
        by_column = np.argsort(entries.columns, kind="stable")
        self._owners = owners[by_column]
        counts = np.bincount(entries.columns, minlength=len(self._covered))
        self._edges = np.append(0, np.cumsum(counts))
        more = self._more(entries.columns, entries.kernel)
        self._gains = rounded(np.bincount(owners, more, minlength=len(entries.starts) - 1))
        if eligible is not None:
            self._gains[~eligible.mask] = -np.inf
        self._first = np.zeros(len(self._covered), dtype=np.int64)
        self._rows: list[int] = []
        self._scores: list[float] = []

    def run(self) -> Picks:
        while len(self._rows) < self._n:
            group, outside = smallest(-self._gains, _GROUP)
            if self._gains[group].max(initial=-np.inf) == -np.inf:
                break
            while len(self._rows) < self._n and self._pick_from(group, outside):
                pass
        return Picks(np.array(self._rows, dtype=np.int64), np.array(self._scores))

    def _pick_from(self, group: Rows, outside: tuple[float, int]) -> bool:
        """Make the next picks, if they are in the group; False where a row outside may come first.

        Gains only fall, so of the best rows those come next that share no column with a better one.
        """
        ahead = 1 if self._eligible is not None else min(_AHEAD, self._n - len(self._rows))
        best = group[smallest(-self._gains[group], ahead)[0]]
        gains = self._gains[best]
        order = np.lexsort((best, -gains))
        best, gains = best[order], gains[order]
        first = (-gains < outside[0]) | ((-gains == outside[0]) & (best < outside[1]))
        count = _leading(first & (gains > -np.inf))
        if not count:
            return False
        owner, columns, kernel = self._of(best[:count])
        raised = kernel > self._covered[columns]
        owner, columns, kernel = owner[raised], columns[raised], kernel[raised]
        # Of a column that several would raise, the first has it; the others wait.
        self._first[columns[::-1]] = owner[::-1]
        shared = owner[self._first[columns] < owner]
        count = int(shared.min(initial=count))
        own = owner < count
        self._take(best[:count], columns[own], kernel[own])
        return True

    def _take(self, rows: Rows, columns: Rows, kernel: Floats) -> None:
        self._rows += rows.tolist()
        self._scores += self._gains[rows].tolist()
        self._gains[rows] = -np.inf
        self._covered[columns] = kernel
        touched = self._owners[_runs(self._edges[columns], self._edges[columns + 1])]
        touched = touched[self._gains[touched] > -np.inf]
        owner, columns, kernel = self._of(touched)
        more = self._more(columns, kernel)
        self._gains[touched] = rounded(np.bincount(owner, more, minlength=len(touched)))
        if self._eligible is not None:
            self._gains[self._eligible.take(int(rows[0]))] = -np.inf

    def _of(self, rows: Rows) -> tuple[Rows, Rows, Floats]:
        """(place in `rows`, column, kernel) of all entries of some candidates."""
        starts, stops = self._entries.starts[rows], self._entries.starts[rows + 1]
        places = _runs(starts, stops)
        owner = np.repeat(np.arange(len(rows)), stops - starts)
        return owner, self._entries.columns[places], self._entries.kernel[places]

    def _more(self, columns: Rows, kernel: Floats) -> Floats:
        return np.maximum(kernel - self._covered[columns], 0.0) * self._weights[columns]


def _leading(flags: NDArray[np.bool_]) -> int:
    """How many are true before the first that is not."""
    return len(flags) if flags.all() else int(flags.argmin())


def _runs(starts: Rows, stops: Rows) -> Rows:
    """start, …, stop − 1 of each, one after the other."""
    counts = stops - starts
    return np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)


def rounded(gains: NDArray[Any]) -> Floats:
    """Gains to 40 bits. Two rows that are each other's nearest have equal gains by symmetry, and a last
    digit must not decide between them."""
    mantissa, exponent = np.frexp(gains)
    return np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS)
