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
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from askance.picking.audience import Audience, unit_rows
from askance.picking.dense_cover import dense_cover
from askance.picking.eligible import Eligible
from askance.picking.kernel import ENTRY_BYTES, KernelBounds, KernelEntries, KernelSlots
from askance.picking.points import Floats, Rows
from askance.picking.sparse_cover import rounded, sparse_cover
from askance.picking.topk import Picks, smallest

_KEPT_BYTES = 34 << 20
_BLOCK_ENTRIES = 1 << 20
_GROUP = 2048
_FIRST, _MOST, _PROBED = 32, 256, 256
# Float32 sums over more terms than this would lose digits that bounds need.
_TERMS = 512
# Expanded squares under this have lost digits: form the difference.
_NEAR = 1e-2
_FEW = 8
_LARGEST = 1e30  # a weight


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
    largest = float(audience.weights_M.max()) if len(audience.weights_M) else 0.0
    if largest > _LARGEST:  # float32, in which bounds are made, could not hold the gains
        scale = 2.0 ** math.frexp(largest)[1]
        smaller = replace(audience, weights_M=audience.weights_M / scale)
        scaled = cover(features_ND, smaller, n, eligible)
        return Picks(scaled.rows, scaled.scores * scale)
    picks = None
    if not features_ND.is_cuda:
        picks = sparse_cover(features_ND, audience, n, eligible)
    elif eligible is None:
        picks = dense_cover(features_ND, audience, n)
    return picks or _Greedy(features_ND, audience, n, eligible).run()


class _Greedy:
    """N candidates, their bounds, and the coverage so far."""

    def __init__(
        self, features_ND: Tensor, audience: Audience, n: int, eligible: Eligible | None = None
    ) -> None:
        self.features, self.n, self.eligible = features_ND, n, eligible
        self.unit_MD = audience.unit_MD.cpu().numpy()
        self.weights = audience.weights_M.cpu().numpy()
        self.sq_width = audience.sq_width
        self.covered = audience.covered_M.cpu().numpy().copy()
        self.kernel = KernelBounds(features_ND, self.unit_MD, self.sq_width)
        N = len(features_ND)
        # Rounded up, so that bounds stay bounds.
        low_M = torch.from_numpy(self.weights * (1 + 2.0**-20))
        self.low_weights = low_M.to(self.kernel.device, torch.float32)
        self._low_covered: Tensor | None = None
        self.bound = np.full(N, np.inf)
        # Whether the bound reflects every pick so far, and whether it is the gain in float64.
        self.fresh, self.exact = np.zeros(N, dtype=bool), np.zeros(N, dtype=bool)
        self.kept = self._store()
        self.rows: list[int] = []
        self.scores: list[float] = []

    def _store(self) -> KernelEntries | KernelSlots:
        """All of the kernel that matters if some rows say that there is room for it; else some rows."""
        N, M = len(self.bound), len(self.unit_MD)
        some = np.unique(np.linspace(0, N - 1, _PROBED).astype(np.int64))
        kernel_BM = self.kernel.rows(torch.from_numpy(some).to(self.kernel.device))
        share = float((kernel_BM > self.low_covered).double().mean())
        room = int(1.05 * share * N * M) + _FIRST * M
        if room * ENTRY_BYTES <= _KEPT_BYTES:
            return KernelEntries(N, M, room)
        rows = max(1, _KEPT_BYTES // (4 * M))
        return KernelSlots(self.bound, M, rows, self.kernel.device)

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
        width = _FIRST
        gains: dict[int, tuple[Rows, Floats]] = {}
        while True:
            x = int(group[self.bound[group].argmax()])
            if self.bound[x] == -np.inf or not (-self.bound[x], x) < outside:
                return False
            if self.exact[x]:
                self._take(x, *(gains[x] if x in gains else self._nearer(x)))
                return True
            if self.fresh[x]:
                nearer, kernel = gains[x] = self._nearer(x)
                gain = self.weights[nearer] * (kernel - self.covered[nearer])
                self.bound[x], self.exact[x] = float(rounded(gain.sum())), True
                continue
            behind = group[~self.fresh[group]]
            if len(behind) > width:
                behind = behind[np.argpartition(-self.bound[behind], width)[:width]]
            self._bring_up_to_date(behind)
            width = min(2 * width, _MOST)

    def _take(self, x: int, nearer: Rows, kernel: Floats) -> None:
        self.rows.append(x)
        self.scores.append(float(self.bound[x]))
        self.covered[nearer] = kernel
        self._low_covered = None
        touched = self.kept.touching(nearer) if isinstance(self.kept, KernelEntries) else None
        self.fresh[slice(None) if touched is None else touched] = False
        self.exact &= self.fresh
        # Below every bound, so that it is never picked again.
        self.bound[x] = -np.inf
        if self.eligible is not None:
            self.bound[self.eligible.take(x)] = -np.inf

    @property
    def low_covered(self) -> Tensor:
        """The coverage in float32 on the candidates' device, rounded down."""
        if self._low_covered is None:
            low_M = torch.from_numpy(self.covered * (1 - 2.0**-20))
            self._low_covered = low_M.to(self.kernel.device, torch.float32)
        return self._low_covered

    def _bring_up_to_date(self, rows: Rows) -> None:
        """New bounds of some candidates."""
        known = self.kept.has(rows)
        for part, is_kept in ((rows[known], True), (rows[~known], False)):
            if not len(part):
                continue
            if is_kept and isinstance(self.kept, KernelEntries):
                bounds = self._bounds_of_entries(*self.kept.of(part))
            else:
                kernel_BM = self._kernel_rows(part)
                bounds = self._bounds(kernel_BM)
            self.bound[part] = np.minimum(self.bound[part], bounds)
            self.fresh[part], self.exact[part] = True, False
            if isinstance(self.kept, KernelSlots) and not is_kept:
                self.kept.add(part, kernel_BM)
            elif isinstance(self.kept, KernelEntries) and not self.rows:
                self.kept.add(part, kernel_BM, self.low_covered)

    def _kernel_rows(self, rows: Rows) -> Tensor:
        if isinstance(self.kept, KernelSlots) and self.kept.has(rows).all():
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
        running = np.zeros(len(gains) + 1)
        np.cumsum(gains, out=running[1:])
        stops = np.cumsum(counts)
        return running[stops] - running[stops - counts] + 1e-12 * running[-1]

    def _nearer(self, x: int) -> tuple[Rows, Floats]:
        """The evaluation rows that x is nearer to than all before it, and k(x, e), in float64."""
        row = np.array([x])
        if isinstance(self.kept, KernelEntries) and self.kept.has(row)[0]:
            _, some, kernel = self.kept.of(row)
            some = some[kernel > self.covered[some]]
        else:
            some = (self._kernel_rows(row)[0] > self.low_covered).nonzero()[:, 0].cpu().numpy()
        own_D = unit_rows(self.features[row].cpu())[0].numpy()
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


def gains_before_picks(features_ND: Tensor, audience: Audience, picks: Rows) -> Floats:
    """(n, N): every row's gain before each pick, NaN once picked.

    Every gain is computed in float64 at every pick: this is for showing, not for picking.
    """
    unit_ND, unit_MD = unit_rows(features_ND.cpu()).numpy(), audience.unit_MD.cpu().numpy()
    covered_M = audience.covered_M.cpu().numpy().copy()
    weights_M = audience.weights_M.cpu().numpy()
    gains = np.empty((len(picks), len(unit_ND)))
    step = max(1, _BLOCK_ENTRIES // len(covered_M))

    def kernel(rows_BD: Floats) -> Floats:
        sq_BM = (rows_BD**2).sum(1)[:, None] + (unit_MD**2).sum(1)
        sq_BM -= 2.0 * rows_BD @ unit_MD.T
        return np.exp(-sq_BM.clip(0.0) / audience.sq_width)

    for place, pick in enumerate(picks):
        for start in range(0, len(unit_ND), step):
            more_BM = (kernel(unit_ND[start : start + step]) - covered_M).clip(0.0)
            gains[place, start : start + step] = more_BM @ weights_M
        gains[place, picks[:place]] = np.nan
        np.maximum(covered_M, kernel(unit_ND[[pick]])[0], out=covered_M)
    return gains
