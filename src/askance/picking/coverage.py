"""Greedy picks that cover the pool.

M evaluation rows e, a sample of the pool, have weights w(e) ≥ 0. Again and again take the candidate x
with the largest gain, then raise the coverage:

    gain(x) = Σ_e w(e)·(k(x, e) − cov(e))₊,     k(x, e) = exp(−‖ĥ_x − ĥ_e‖² / σ²),
    cov(e) ← max(cov(e), k(x, e)),

ĥ the features at unit length (a zero row stays zero). Coverage only rises, so gains only fall, and a
gain computed long ago is an upper bound on the present one. Hence:

- every candidate has a `bound`, an upper bound on its gain, from one pass of float32 products over all;
- only the candidates with the largest bounds are brought up to date, pick after pick;
- a candidate is picked when its gain, in float64, comes before every other bound.

Of the candidates with the largest bounds, the kernel is kept where it is above the coverage
(`_KEPT_BYTES`), so that bringing those up to date needs no product. The N×M kernel is never kept whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.gradients.last_layer import working
from askance.picking.eligible import Eligible
from askance.picking.points import Centres, Floats, Points, Rows, Vectors
from askance.picking.topk import Picks, smallest

LEAST_SQ_WIDTH = 1e-6
_KEPT_BYTES = 56 << 20
_BLOCK_ENTRIES = 1 << 20
_GROUP = 2048
_FIRST, _MOST, _PROBED = 32, 512, 256
_ENTRY_BYTES = 6
# Float32 sums over more terms than this would lose digits that bounds need.
_TERMS = 512
_LABELED_ROWS = 2048
# Expanded squares under this have lost digits: form the difference.
_NEAR = 1e-2
_FEW = 8
_BITS = 40


@dataclass(frozen=True, eq=False)
class Audience:
    """The evaluation rows: what is to be covered, and how well it is already.

    Args:
        unit_MD: their features at unit length, float64; see `unit_rows`.
        weights_M: w(e) ≥ 0, float64.
        covered_M: cov(e) in [0, 1], float64: the largest k(x, e) over the labelled rows x.
        sq_width: σ².
    """

    unit_MD: Floats
    weights_M: Floats
    covered_M: Floats
    sq_width: float


def unit_rows(features_ND: Tensor) -> Floats:
    """The rows at unit length in float64, (N, D). A row's bits depend on that row alone."""
    rows_ND = features_ND.detach().cpu().double().numpy()
    # Divided by the largest number first, so that no square overflows or underflows.
    largest_N1 = np.abs(rows_ND).max(axis=1, initial=0.0, keepdims=True)
    rows_ND = np.divide(rows_ND, largest_N1, out=np.zeros_like(rows_ND), where=largest_N1 > 0)
    sq_N1 = np.einsum("nd,nd->n", rows_ND, rows_ND)[:, None]
    return np.divide(rows_ND, np.sqrt(sq_N1), out=rows_ND, where=sq_N1 > 0)


def sq_dists_to_nearest(unit_MD: Floats, centres_LD: Tensor) -> Floats:
    """Squared distance from each unit row to the nearest of some rows at unit length, (M,)."""
    points = Points(torch.from_numpy(unit_MD))
    nearest_M = np.full(len(unit_MD), np.inf)
    for part in centres_LD.split(_LABELED_ROWS):
        centres = Centres(points, len(part))
        centres.add(Vectors.of(None, unit_rows(part), False))
        sq_M = points.min_sq_dists(np.arange(len(unit_MD)), centres, 0)
        np.minimum(nearest_M, sq_M, out=nearest_M)
    return nearest_M


def sq_dists_between(unit_MD: Floats) -> Floats:
    """Squared distances between all pairs of different rows, as a flat list."""
    sq = []
    rows_MD = torch.from_numpy(unit_MD).float()
    for start in range(0, len(rows_MD), _TERMS):
        view = slice(start, start + _TERMS)
        own_B = unit_MD[view]
        norms = (own_B**2).sum(1)[:, None] + (unit_MD[start:] ** 2).sum(1)
        sq_BM = norms - 2 * (rows_MD[view] @ rows_MD[start:].T).numpy()
        upper = np.triu(np.ones(sq_BM.shape, dtype=bool), 1)
        sq.append(sq_BM[upper].astype(np.float32))
    return np.concatenate(sq)


def cover(
    features_ND: Tensor, audience: Audience, n: int, eligible: Eligible | None = None
) -> Picks:
    """n rows, each the one with the largest gain given the rows before it; ties to the lowest row.

    Args:
        features_ND: (N, D) the candidates, at any length, on any device.
        audience: what they are to cover.
        n: how many.
        eligible: which rows may be picked, pick after pick; all of them when None.

    Returns:
        Picks with the gain of each when it was picked; fewer where no row is left that may be picked.
    """
    return _Greedy(features_ND, audience, n, eligible).run()


class _Kernel:
    """Upper bounds on k(x, e) in float32 on the candidates' device, for any of the candidates."""

    def __init__(self, features_ND: Tensor, audience: Audience) -> None:
        self.features, self.device = features_ND, features_ND.device
        unit_MD, scale = audience.unit_MD, 1.0 / audience.sq_width
        self.unit_DM = torch.from_numpy(unit_MD).to(self.device, torch.float32).T
        self.scale = 2.0 * scale
        # A float32 product of unit rows is off by D·2⁻²⁴ at most; the lengths and the sums make up the
        # rest, twice over.
        slack = (unit_MD.shape[1] + 16) * 2.0**-23
        self.wide = self.scale * slack > 1.0
        sq_M = torch.from_numpy((unit_MD**2).sum(axis=1))
        offset_M = self.scale * (slack - (1.0 + sq_M) / 2) + 2.0**-20
        self.offset_M = offset_M.to(self.device, torch.float32)

    def rows(self, view: slice | Tensor) -> Tensor:
        """Upper bounds on k(x, e) of some candidates with every evaluation row, (B, M)."""
        block_BD = working(self.features[view])
        # The largest number first: squares of what is left neither overflow nor underflow.
        largest_B1 = block_BD.abs().amax(dim=1, keepdim=True)
        block_BD = (block_BD / largest_B1.where(largest_B1 > 0, 1.0)).float()
        length_B1 = block_BD.norm(dim=1, keepdim=True)
        empty_B1 = length_B1 == 0
        unit_BD = block_BD.mul_(self.scale / length_B1.where(~empty_B1, 1.0))
        kernel_BM = torch.addmm(self.offset_M, unit_BD, self.unit_DM)
        if empty_B1.any():
            kernel_BM += (self.scale / 2) * empty_B1
        if self.wide:
            kernel_BM.clamp_(max=2.0**-20)
        return kernel_BM.exp_()


class _Greedy:
    """N candidates, their bounds, and the coverage so far."""

    def __init__(
        self, features_ND: Tensor, audience: Audience, n: int, eligible: Eligible | None = None
    ) -> None:
        self.features, self.n, self.eligible = features_ND, n, eligible
        self.unit_MD, self.weights = audience.unit_MD, audience.weights_M
        self.sq_width = audience.sq_width
        self.covered = audience.covered_M.copy()
        self.kernel = _Kernel(features_ND, audience)
        N = len(features_ND)
        # Rounded up, so that bounds stay bounds.
        low_M = torch.from_numpy(self.weights * (1 + 2.0**-20))
        self.low_weights = low_M.to(self.kernel.device, torch.float32)
        self._lower_coverage()
        self.bound = np.full(N, np.inf)
        # How many picks the bound reflects, and how many the float64 gain does that it then is.
        self.bounded = np.full(N, -1)
        self.exact = np.full(N, -1)
        self.kept = self._store()
        self.rows: list[int] = []
        self.scores: list[float] = []

    def _store(self) -> _Entries | _Slots:
        """All of the kernel that matters if some rows say that there is room for it; else some rows."""
        N, M = len(self.bound), len(self.unit_MD)
        some = np.unique(np.linspace(0, N - 1, _PROBED).astype(np.int64))
        kernel_BM = self.kernel.rows(torch.from_numpy(some).to(self.kernel.device))
        share = float((kernel_BM > self.low_covered).double().mean())
        room = int(1.05 * share * N * M) + _PROBED * M
        if room * _ENTRY_BYTES <= _KEPT_BYTES:
            return _Entries(N, M, room)
        return _Slots(self.bound, M, self.kernel.device)

    def run(self) -> Picks:
        """The n picks, with their gains."""
        step = max(1, _BLOCK_ENTRIES // len(self.unit_MD))
        for start in range(0, len(self.bound), step):
            self._bring_up_to_date(np.arange(start, min(start + step, len(self.bound))))
        if self.eligible is not None:
            self.bound[~self.eligible.mask] = -np.inf
        while len(self.rows) < self.n:
            group, outside = smallest(-self.bound, _GROUP)
            if self.bound[group].max() == -np.inf:
                break
            while len(self.rows) < self.n and self._pick_from(group, outside):
                pass
        return Picks(np.array(self.rows, dtype=np.int64), np.array(self.scores))

    def _pick_from(self, group: Rows, outside: tuple[float, int]) -> bool:
        """Make the next pick, if it is in the group; False where a row outside may come before it."""
        picks, width = len(self.rows), _FIRST
        gains: dict[int, tuple[Rows, Floats]] = {}
        while True:
            x = int(group[self.bound[group].argmax()])
            if self.bound[x] == -np.inf or not (-self.bound[x], x) < outside:
                return False
            if self.exact[x] == picks:
                self._take(x, *(gains[x] if x in gains else self._nearer(x)))
                return True
            if self.bounded[x] == picks:
                nearer, kernel = gains[x] = self._nearer(x)
                gain = self.weights[nearer] * (kernel - self.covered[nearer])
                self.bound[x], self.exact[x] = _rounded(float(gain.sum())), picks
                continue
            behind = group[self.bounded[group] < picks]
            order = np.argsort(-self.bound[behind], kind="stable")[:width]
            self._bring_up_to_date(behind[order])
            width = min(2 * width, _MOST)

    def _take(self, x: int, nearer: Rows, kernel: Floats) -> None:
        self.rows.append(x)
        self.scores.append(float(self.bound[x]))
        self.covered[nearer] = kernel
        self._lower_coverage()
        # Below every bound, so that it is never picked again.
        self.bound[x] = -np.inf
        if self.eligible is not None:
            self.bound[self.eligible.take(x)] = -np.inf

    def _lower_coverage(self) -> None:
        """The coverage in float32, rounded down."""
        low_M = torch.from_numpy(self.covered * (1 - 2.0**-20))
        self.low_covered = low_M.to(self.kernel.device, torch.float32)

    def _bring_up_to_date(self, rows: Rows) -> None:
        """New bounds of some candidates."""
        known = self.kept.has(rows)
        for part, is_kept in ((rows[known], True), (rows[~known], False)):
            if not len(part):
                continue
            if is_kept and isinstance(self.kept, _Entries):
                bounds = self._bounds_of_entries(*self.kept.of(part))
            else:
                kernel_BM = self._kernel_rows(part)
                bounds = self._bounds(kernel_BM)
            self.bound[part] = np.minimum(self.bound[part], bounds)
            self.bounded[part] = len(self.rows)
            if isinstance(self.kept, _Slots) and not is_kept:
                self.kept.add(part, kernel_BM)
            elif isinstance(self.kept, _Entries) and not self.rows:
                self.kept.add(part, kernel_BM, self.low_covered)

    def _kernel_rows(self, rows: Rows) -> Tensor:
        if isinstance(self.kept, _Slots) and self.kept.has(rows).all():
            return self.kept.of(rows)
        return self.kernel.rows(torch.from_numpy(rows).to(self.kernel.device))

    def _bounds(self, kernel_BM: Tensor) -> Floats:
        gains_BM = (kernel_BM - self.low_covered).relu_()
        total_B = torch.zeros(len(gains_BM), dtype=torch.float64, device=gains_BM.device)
        for gains_BT, weights_T in zip(
            gains_BM.split(_TERMS, dim=1), self.low_weights.split(_TERMS), strict=True
        ):
            total_B += gains_BT @ weights_T
        return (total_B * (1 + _TERMS * 2.0**-23)).cpu().numpy()

    def _bounds_of_entries(self, counts: Rows, columns: Rows, kernel: Floats) -> Floats:
        gains = np.maximum(kernel - self.covered[columns], 0.0) * self.weights[columns]
        # Differences of one running sum, since a row may have no entry.
        sums = np.append(0.0, np.cumsum(gains))[np.append(0, np.cumsum(counts))]
        return np.diff(sums) + 1e-12 * sums[-1]

    def _nearer(self, x: int) -> tuple[Rows, Floats]:
        """The evaluation rows that x is nearer to than all before it, and k(x, e), in float64."""
        row = np.array([x])
        if isinstance(self.kept, _Entries) and self.kept.has(row)[0]:
            _, some, kernel = self.kept.of(row)
            some = some[kernel > self.covered[some]]
        else:
            some = (self._kernel_rows(row)[0] > self.low_covered).nonzero()[:, 0].cpu().numpy()
        own_D = unit_rows(self.features[row])[0]
        kernel = np.exp(-self._sq_dists(own_D, some) / self.sq_width)
        nearer = kernel > self.covered[some]
        return some[nearer], kernel[nearer]

    def _sq_dists(self, own_D: Floats, some: Rows) -> Floats:
        """‖own − ĥ_e‖² of some evaluation rows. The bits of each do not depend on the others."""
        if _FEW * len(some) <= len(self.unit_MD):
            diff = self.unit_MD[some] - own_D
            return np.einsum("md,md->m", diff, diff)
        inner_M = torch.mv(torch.from_numpy(self.unit_MD), torch.from_numpy(own_D)).numpy()
        sq_M = self.unit_MD[some].any(axis=1) + float(own_D.any()) - 2.0 * inner_M[some]
        near = np.flatnonzero(sq_M < _NEAR)
        diff = self.unit_MD[some[near]] - own_D
        sq_M[near] = np.einsum("md,md->m", diff, diff)
        return sq_M


def _rounded(gain: float) -> float:
    """The gain to 40 bits. Two rows that are each other's nearest have equal gains by symmetry, and a
    last digit must not decide between them."""
    mantissa, exponent = math.frexp(gain)
    return math.ldexp(round(math.ldexp(mantissa, _BITS)), exponent - _BITS)


class _Slots:
    """Kernel rows of the candidates with the largest bounds, as many as there is room for.

    Args:
        bound: (N,) the candidates' bounds.
        M: how many evaluation rows.
        device: where the rows are kept.
    """

    def __init__(self, bound: Floats, M: int, device: torch.device) -> None:
        room = min(len(bound), max(1, _KEPT_BYTES // (4 * M)))
        self.bound = bound
        self.kernel = torch.empty(room, M, dtype=torch.float32, device=device)
        self.owner, self.slot = np.full(room, -1), np.full(len(bound), -1)

    def has(self, rows: Rows) -> NDArray[np.bool_]:
        """Which candidates' rows are kept."""
        return self.slot[rows] >= 0

    def of(self, rows: Rows) -> Tensor:
        """The kernel rows of candidates that are kept."""
        return self.kernel[torch.from_numpy(self.slot[rows]).to(self.kernel.device)]

    def add(self, rows: Rows, kernel_BM: Tensor) -> None:
        """Keep those of these rows whose bounds are larger than those of rows that are kept."""
        value = np.where(self.owner >= 0, self.bound[self.owner], -np.inf)
        count = min(len(rows), len(value))
        slots, _ = smallest(value, count)
        slots = slots[np.argsort(value[slots], kind="stable")]
        order = np.argsort(-self.bound[rows], kind="stable")[:count]
        better = self.bound[rows[order]] > value[slots]
        slots, order = slots[better], order[better]
        out = self.owner[slots]
        self.slot[out[out >= 0]] = -1
        self.owner[slots], self.slot[rows[order]] = rows[order], slots
        into, places = (torch.from_numpy(each).to(kernel_BM.device) for each in (slots, order))
        self.kernel[into] = kernel_BM[places]


class _Entries:
    """The kernel of all candidates where it is above the starting coverage; the rest adds nothing.

    Args:
        N: how many candidates there are.
        M: how many evaluation rows.
        room: how many entries are kept at most.
    """

    def __init__(self, N: int, M: int, room: int) -> None:
        self.columns = np.empty(room, np.uint16 if M <= 1 << 16 else np.int32)
        self.kernel = np.empty(room, np.float32)
        self.start, self.count, self.used = np.full(N, -1), np.zeros(N, dtype=np.int64), 0

    def has(self, rows: Rows) -> NDArray[np.bool_]:
        """Which candidates' rows are kept: all, but where there were more entries than expected."""
        return self.start[rows] >= 0

    def of(self, rows: Rows) -> tuple[Rows, Rows, Floats]:
        """Each row's number of entries, and all their columns and values, row after row."""
        counts = self.count[rows]
        offsets = np.repeat(self.start[rows] - (np.cumsum(counts) - counts), counts)
        places = np.arange(len(offsets)) + offsets
        return counts, self.columns[places].astype(np.int64), self.kernel[places].astype(np.float64)

    def add(self, rows: Rows, kernel_BM: Tensor, covered_M: Tensor) -> None:
        """Keep the entries of some more rows that are above the coverage."""
        row_K, column_K = (kernel_BM > covered_M).nonzero(as_tuple=True)
        counts = np.bincount(row_K.cpu().numpy(), minlength=len(rows))
        if self.used + len(row_K) > len(self.columns):
            return
        view = slice(self.used, self.used + len(row_K))
        self.columns[view] = column_K.cpu().numpy()
        self.kernel[view] = kernel_BM[row_K, column_K].cpu().numpy()
        self.start[rows] = self.used + np.cumsum(counts) - counts
        self.count[rows] = counts
        self.used = view.stop


def gains_before_picks(features_ND: Tensor, audience: Audience, picks: Rows) -> Floats:
    """(n, N): every row's gain before each pick, NaN once picked.

    Every gain is computed in float64 at every pick: this is for showing, not for picking.
    """
    unit_ND, covered_M = unit_rows(features_ND), audience.covered_M.copy()
    gains = np.empty((len(picks), len(unit_ND)))
    step = max(1, _BLOCK_ENTRIES // len(covered_M))

    def kernel(rows_BD: Floats) -> Floats:
        sq_BM = (rows_BD**2).sum(1)[:, None] + (audience.unit_MD**2).sum(1)
        sq_BM -= 2.0 * rows_BD @ audience.unit_MD.T
        return np.exp(-sq_BM.clip(0.0) / audience.sq_width)

    for place, pick in enumerate(picks):
        for start in range(0, len(unit_ND), step):
            more_BM = (kernel(unit_ND[start : start + step]) - covered_M).clip(0.0)
            gains[place, start : start + step] = more_BM @ audience.weights_M
        gains[place, picks[:place]] = np.nan
        np.maximum(covered_M, kernel(unit_ND[[pick]])[0], out=covered_M)
    return gains
