"""Points whose distances come from factors: last-layer gradients a ⊗ [h; 1], or features h alone.

    ‖g_i − g_j‖² = ‖g_i‖² + ‖g_j‖² − 2 ⟨a_i, a_j⟩ (⟨h_i, h_j⟩ + 1)

The whole pool is read in float32 alone, for *bounds*. What a pick depends on is computed in float64,
for few rows. Where squares are too large or too small for float32, bounds are float64 too, at twice the
time and memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.gradients.last_layer import LossName, pseudo_residuals, sq_lengths, working

Floats = NDArray[np.float64]
Bounds = NDArray[np.float32] | NDArray[np.float64]
Rows = NDArray[np.int64]
Number = TypeVar("Number", np.float32, np.float64)

# Below this share of ‖g_i‖² + ‖g_j‖² the expanded square has lost its digits: form the difference.
_NEAR = 1e-6
# The same for a pair on its own, where the difference costs no more than a few such products.
_NEAR_PAIR = 1e-2
# Small enough to stay in a core's cache, and in the allocator's hands from one portion to the next.
_PAIR_BYTES = 1 << 19
_ENTRIES = 1 << 20
# NumPy adds longer sums in pieces, which differ between one row and several.
_TERMS = 8192
# Squared norms between these leave float32 room for their sums and products, and for a floor below.
_LOW, _HIGH = 2.0**-80, 2.0**80
# The first bound of a row, before any distance is computed.
_UNKNOWN = {np.dtype(np.float32): 1e38, np.dtype(np.float64): 1e307}


@dataclass(frozen=True, eq=False)
class Vectors:
    """m rank-one vectors a ⊗ [h; 1] in float64; `a` is None for plain vectors h."""

    a: Floats | None
    h: Floats
    sq_norms: Floats
    bias: bool

    @classmethod
    def of(cls, a: Floats | None, h: Floats, bias: bool) -> Vectors:
        """From factors a (m, C) or None and h (m, D)."""
        sq = _sq(h) + bias
        return cls(a, h, sq if a is None else sq * _sq(a), bias)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> Vectors:
        a = None if self.a is None else self.a[rows]
        return Vectors(a, self.h[rows], self.sq_norms[rows], self.bias)

    def inner(self, others: Vectors) -> Floats:
        """⟨g_i, g_j⟩ for every pair, (m, k)."""
        inner = product(self.h, others.h)
        if self.bias:
            inner += 1.0
        if self.a is not None and others.a is not None:
            inner *= product(self.a, others.a)
        return inner

    def sq_dists(self, others: Vectors) -> Floats:
        """‖g_i − g_j‖² for every pair, (m, k), exact zeros between copies."""
        scale = self.sq_norms[:, None] + others.sq_norms
        sq = scale - 2.0 * self.inner(others)
        near = np.flatnonzero(sq.ravel() <= (_NEAR * scale).ravel())
        if len(near):
            i, j = np.divmod(near, sq.shape[1])
            sq.ravel()[near] = self[i]._formed_sq_dists(others[j])
        return sq

    def paired_sq_dists(self, others: Vectors) -> Floats:
        """‖g_i − g_i'‖² row by row, (m,). Each depends on its own pair alone, to the last bit."""
        if self.a is None or others.a is None:
            return self._formed_sq_dists(others)
        inner = (_dots(self.h, others.h) + self.bias) * _dots(self.a, others.a)
        scale = self.sq_norms + others.sq_norms
        sq = scale - 2.0 * inner
        near = np.flatnonzero(~(sq > _NEAR_PAIR * scale))
        if len(near):
            sq[near] = self[near]._formed_sq_dists(others[near])
        return sq

    def _formed_sq_dists(self, others: Vectors) -> Floats:
        """‖g_i − g_i'‖² row by row, (m,), with the differences formed first.

        With δ the difference and ¯ the mean of two factors, g − g' = δa ⊗ h̄ + ā ⊗ δh. Split
        δa = α ā + a⊥ and δh = η h̄ + h⊥; then g − g' = (α + η) ā ⊗ h̄ + a⊥ ⊗ h̄ + ā ⊗ h⊥, three
        orthogonal terms whose squares add up with nothing to cancel.
        """
        dh = self.h - others.h
        if self.a is None or others.a is None:
            return _sq(dh)
        da, ma, mh = self.a - others.a, (self.a + others.a) / 2, (self.h + others.h) / 2
        sq_ma, sq_mh = _sq(ma), _sq(mh) + self.bias
        alpha = _ratio(_dots(da, ma), sq_ma)
        eta = _ratio(_dots(dh, mh), sq_mh)
        sq_da = _sq(da - alpha[:, None] * ma)
        sq_dh = _sq(dh - eta[:, None] * mh) + self.bias * eta**2
        return (alpha + eta) ** 2 * sq_ma * sq_mh + sq_da * sq_mh + sq_ma * sq_dh


def _sq(x: Floats) -> Floats:
    """‖x‖² of each row."""
    return _dots(x, x)


def _dots(x: Floats, y: Floats) -> Floats:
    """⟨x, y⟩ of each row, (m,). Its bits do not depend on the other rows."""
    if x.shape[1] > _TERMS:
        return _dots(x[:, :_TERMS], y[:, :_TERMS]) + _dots(x[:, _TERMS:], y[:, _TERMS:])
    return np.einsum("md,md->m", x, y)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """top / bottom, 0 where the denominator is."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


class Points:
    """N such vectors: float32 factors for bounds over all of them, float64 ones on demand.

    `wide` says that the bounds' factors are float64, since squares would leave float32's range.

    Args:
        features: (N, D).
        residuals: (N, C) float64, or None for plain feature vectors.
        bias: whether [h; 1] has its one.
    """

    def __init__(
        self, features: Tensor, residuals: Tensor | None = None, bias: bool = False
    ) -> None:
        wide = working(features).cpu()
        exact = None if residuals is None else residuals.cpu()
        self.bias = bias
        self.h_exact = wide.numpy()
        self.a_exact = None if exact is None else exact.numpy()
        lengths = sq_lengths(wide, bias).double().numpy()
        norms = lengths if exact is None else lengths * exact.square().sum(dim=1).numpy()
        longest, largest = float(lengths.max(initial=0.0)), float(norms.max(initial=0.0))
        self.wide = max(longest, largest) > _HIGH or 0.0 < largest < _LOW
        dtype = torch.float64 if self.wide else torch.float32
        self.h = wide.to(dtype)
        self.a = None if exact is None else exact.to(dtype)
        self.sq_norms: Bounds = norms if self.wide else norms.astype(np.float32)
        # A float32 dot product of k terms is off by at most k·2⁻²⁴ of its norms' product; two such
        # products, the norms and the final sums make up the rest, twice over.
        columns = self.h.shape[1] + (0 if self.a is None else self.a.shape[1])
        self.slack = (columns + 16) * 2.0**-23
        # What is lost where a residual underflows, times the features it would have met.
        self.floor = max(1e-30, 2.0**-120 * longest)
        if self.wide:
            self.floor = max(1e-290, 2.0**-1000 * longest)

    def __len__(self) -> int:
        return len(self.h)

    def exact(self, rows: Rows) -> Vectors:
        """Some rows in float64."""
        a = None if self.a_exact is None else self.a_exact[rows]
        return Vectors.of(a, self.h_exact[rows].astype(np.float64), self.bias)

    def equal(self, rows: Rows, others: Rows) -> NDArray[np.bool_]:
        """Which pairs of rows have the same numbers: their distance is zero, exactly."""
        same = (self.h_exact[rows] == self.h_exact[others]).all(axis=1)
        if self.a_exact is not None:
            same &= (self.a_exact[rows] == self.a_exact[others]).all(axis=1)
        return same

    def upper_sq_dists(self, rows: slice | Rows, centres: Centres, start: int) -> Bounds:
        """Upper bounds on squared distances to centres from `start` on, (B, k)."""
        upper: Bounds = self._without_own_norm(rows, centres, start).numpy()
        upper += self._own_norm(rows)[:, None]
        return np.maximum(upper, self.floor, out=upper)

    def nearest(self, rows: slice | Rows, centres: Centres) -> tuple[Rows, Bounds]:
        """Each row's nearest centre up to rounding, and an upper bound on its squared distance."""
        least, which = self._without_own_norm(rows, centres, 0).min(dim=1)
        upper = least.numpy() + self._own_norm(rows)
        return which.numpy(), np.maximum(upper, self.floor, out=upper)

    def min_sq_dists(self, rows: Rows, centres: Centres, start: int) -> Floats:
        """Exact squared distances to the nearest of the centres from `start` on, (B,), in float64.

        Bounds leave the few centres that can be the nearest; float64 decides between those.
        """
        columns = centres.count - start
        parts = [self._min_sq_dists(part, centres, start) for part in portions(rows, columns)]
        return np.concatenate(parts)

    def _min_sq_dists(self, rows: Rows, centres: Centres, start: int) -> Floats:
        partial = self._without_own_norm(rows, centres, start)
        largest = float(centres.since(start).sq_norms.max())
        reach = 2.1 * self.slack * (self.sq_norms[rows].astype(np.float64) + largest) + self.floor
        least = partial.amin(dim=1).numpy()
        bar = _next_up((least + reach).astype(least.dtype))
        i, j = (partial <= torch.from_numpy(bar)[:, None]).nonzero().numpy().T
        sq = self._pairs(rows, centres.since(start), i, j)
        # Every row has a pair, and pairs come row by row.
        return np.minimum.reduceat(sq, np.searchsorted(i, np.arange(len(rows))))

    def nearer_sq_dists(self, rows: Rows, centres: Centres, start: int, sq_N: Floats) -> Floats:
        """Squared distances to centres from `start` on, (B, k), where a row's minimum may fall by them.

        A row's minimum begins with its `sq_N`. Where bounds show that a centre is no nearer than an
        earlier one, its entry is infinite. The other distances are computed pair by pair in float64, so
        their bits do not depend on which rows are computed together.
        """
        upper = self._without_own_norm(rows, centres, start).numpy()
        upper += self._own_norm(rows)[:, None]
        # What a bound may exceed the truth by, pair by pair: centres' norms differ by orders.
        norms_K = centres.since(start).sq_norms.astype(upper.dtype)
        reach = 2.1 * self.slack * (self.sq_norms[rows][:, None] + norms_K) + self.floor
        known_bound = _next_up(np.minimum(sq_N, _UNKNOWN[upper.dtype]).astype(upper.dtype))
        before = running_min(np.concatenate([known_bound[:, None], upper[:, :-1]], axis=1))
        i, j = np.nonzero(upper - reach < before)
        sq = np.full(upper.shape, np.inf)
        sq[i, j] = self._pairs(rows, centres.since(start), i, j)
        return sq

    def _pairs(self, rows: Rows, centres: Vectors, i: Rows, j: Rows) -> Floats:
        """Exact squared distances of pairs of places in `rows` and `centres`."""
        vectors = self.exact(rows)
        step = max(1, _PAIR_BYTES // (8 * self.h.shape[1]))
        cuts = range(step, len(i), step)
        return np.concatenate(
            [
                vectors[a].paired_sq_dists(centres[b])
                for a, b in zip(np.split(i, cuts), np.split(j, cuts), strict=True)
            ]
        )

    def _without_own_norm(self, rows: slice | Rows, centres: Centres, start: int) -> Tensor:
        """(1 + slack)·‖g_j‖² − 2⟨g_i, g_j⟩; the slack covers every rounding error of a bound."""
        a_KC, h_KD, sq_norms_K = centres.low(start)
        chosen = rows if isinstance(rows, slice) else torch.from_numpy(rows)
        h_BD = self.h[chosen].to(h_KD.dtype)
        if self.a is None or a_KC is None:
            return torch.addmm(sq_norms_K, h_BD, h_KD.T, alpha=-2)
        inner = torch.mm(h_BD, h_KD.T)
        if self.bias:
            inner += 1.0
        return inner.mul_(torch.mm(self.a[chosen].to(a_KC.dtype), a_KC.T)).mul_(-2).add_(sq_norms_K)

    def _own_norm(self, rows: slice | Rows) -> Bounds:
        return self.sq_norms[rows] * (1 + self.slack)


class Centres:
    """The centres so far, in order, in float64 and float32; room for all is allocated once."""

    def __init__(self, points: Points, capacity: int) -> None:
        classes = None if points.a is None else points.a.shape[1]
        shape = (capacity, points.h.shape[1])
        a = None if classes is None else np.empty((capacity, classes))
        self._exact = Vectors(a, np.empty(shape), np.empty(capacity), points.bias)
        low: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}
        self._a = None if classes is None else torch.empty(capacity, classes, **low)
        self._h = torch.empty(shape, **low)
        self._sq_norms = torch.empty(capacity, **low)
        self._slack = points.slack
        self._wide = points.wide
        self.count = 0

    def add(self, new: Vectors) -> None:
        """More centres, after those so far."""
        view = slice(self.count, self.count + len(new.h))
        # A centre need not be of the pool: one that is labelled, or of another shard, may be longer.
        self._wide |= float((_sq(new.h) + new.bias).max(initial=0.0)) > _HIGH
        if self._exact.a is not None and self._a is not None and new.a is not None:
            self._exact.a[view] = new.a
            self._a[view] = torch.from_numpy(new.a)
        self._exact.h[view] = new.h
        self._h[view] = torch.from_numpy(new.h)
        self._exact.sq_norms[view] = new.sq_norms
        self._sq_norms[view] = torch.from_numpy((1 + self._slack) * new.sq_norms)
        self.count = view.stop

    def since(self, start: int) -> Vectors:
        """Centres from `start` on, in float64."""
        return self._exact[start : self.count]

    def low(self, start: int) -> tuple[Tensor | None, Tensor, Tensor]:
        """(a or None, h, (1 + slack)·‖g‖²) of centres from `start` on, in the bounds' dtype."""
        view = slice(start, self.count)
        if self._wide:
            exact = self.since(start)
            a = None if exact.a is None else torch.from_numpy(exact.a)
            norms = torch.from_numpy((1 + self._slack) * exact.sq_norms)
            return a, torch.from_numpy(exact.h), norms
        return None if self._a is None else self._a[view], self._h[view], self._sq_norms[view]


def _next_up(x: Bounds) -> Bounds:
    return np.nextafter(x, x.dtype.type(np.inf))


def product(x: Floats, y: Floats) -> Floats:
    """x yᵀ, (m, k), by PyTorch: NumPy's threads would compete with PyTorch's."""
    return torch.mm(torch.from_numpy(x), torch.from_numpy(y).T).numpy()


def running_min(x_BK: NDArray[Number]) -> NDArray[Number]:
    """The running minimum of each row, (B, K); `np.minimum.accumulate` takes three times as long."""
    return torch.from_numpy(x_BK).cummin(dim=1).values.numpy()


def portions(rows: Rows, columns: int) -> list[Rows]:
    """Rows in portions, so that matrices of that many columns stay in cache."""
    step = max(1, _ENTRIES // max(1, columns))
    return np.split(rows, range(step, len(rows), step))


def gradient_points(
    logits_NC: Tensor, features_ND: Tensor, *, bias: bool = False, loss: LossName = "cross-entropy"
) -> Points:
    """Pseudo-labelled last-layer gradients as points."""
    return Points(features_ND, pseudo_residuals(logits_NC.double(), loss), bias)


def feature_points(features_ND: Tensor) -> Points:
    """Head inputs as points."""
    return Points(features_ND)


def sq_dists_before_picks(points: Points, picks: Rows, start_N: Floats) -> Floats:
    """(n, N): every row's squared distance to the nearest centre before each pick, NaN once picked.

    `start_N` is what it was before the first. The whole pool is computed in float64 at every pick: this
    is for showing, not for picking.
    """
    every, least = points.exact(np.arange(len(points))), start_N.copy()
    utilities = np.empty((len(picks), len(points)))
    for place, pick in enumerate(picks):
        utilities[place] = least
        utilities[place, picks[:place]] = np.nan
        np.minimum(least, every.sq_dists(every[np.array([pick])])[:, 0], out=least)
    return utilities
