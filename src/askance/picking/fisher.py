"""Greedy picks that lower tr(A⁻¹F) most, by rank-one updates.

With u = A⁻¹v of a pick v, s = 1 + vᵀu and w = A⁻¹Fu, and for every row x of the pool a = xᵀu, b = xᵀw:

    xᵀA'⁻¹x        = xᵀA⁻¹x − a²/s
    xᵀA'⁻¹FA'⁻¹x   = xᵀA⁻¹FA⁻¹x − 2ab/s + (uᵀFu) a²/s²

So a pick needs a and b of every row. Reading the pool for each would be slow: several picks are made
from a *front*, the rows that are ahead, and then one pass brings all other rows up to date. Where that
shows that a row outside would have been among those ahead, that pick and the later ones are made again.
The pass is in the own dtype of the features, and its rounding adds up. So the rows ahead are computed
anew in float64 before each pick, and all rows whenever those have drifted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from askance.errors import InputError
from askance.picking.eligible import Eligible
from askance.picking.points import Floats, Rows
from askance.picking.topk import Picks, smallest

# Rows computed anew before each pick, and how far a score may be from the truth before all of them are.
_AHEAD, _DRIFT = 32, 1e-3
# Picks between two passes over the pool, and the rows that they are made from.
_TOGETHER, _FRONT = 16, 1024
_ENTRIES = 1 << 22
_BLOCK = 8192
# Of ‖v‖² to λ: beyond this the inverse in float64 has no digits left.
_LARGEST = 1e12


class WeightedRows:
    """The vectors √w·[h; 1] of a pool, never stored."""

    def __init__(self, features_ND: Tensor, weights_N: Tensor) -> None:
        self.h, self.weights = features_ND, weights_N.double()
        self.root = self.weights.sqrt()

    def __len__(self) -> int:
        return len(self.h)

    def __getitem__(self, rows: Rows) -> WeightedRows:
        chosen = torch.from_numpy(rows)
        return WeightedRows(self.h[chosen], self.weights[chosen])

    def exact(self, rows: Rows | slice) -> Tensor:
        """Some of them in float64, (B, D + 1)."""
        chosen = rows if isinstance(rows, slice) else torch.from_numpy(rows)
        h_BD = self.h[chosen].double()
        one_B1 = h_BD.new_ones(len(h_BD), 1)
        return torch.cat([h_BD, one_B1], dim=1) * self.root[chosen, None]

    def sum_of_squares(self) -> Tensor:
        """Σ vvᵀ, (D + 1, D + 1) in float64."""
        width = self.h.shape[1] + 1
        total = self.root.new_zeros(width, width)
        step = max(1, _ENTRIES // width)
        for start in range(0, len(self), step):
            v_BD = self.exact(slice(start, start + step))
            total.addmm_(v_BD.T, v_BD)
        return total

    def along(self, vectors_KD: Tensor, rows: slice = slice(None)) -> Floats:
        """vᵀu of some rows for each u, (K, B), from products in the features' dtype."""
        inner_KB = torch.mm(vectors_KD[:, :-1].to(self.h.dtype), self.h[rows].T).double()
        return inner_KB.add_(vectors_KD[:, -1:]).mul_(self.root[rows]).numpy()

    def sq_lengths(self, matrix_DD: Tensor) -> Floats:
        """‖vᵀM‖² of each row, (N,)."""
        parts = []
        matrix_DD = matrix_DD.to(self.h.dtype)
        step = max(1, _ENTRIES // len(matrix_DD))
        for start in range(0, len(self), step):
            rows = slice(start, start + step)
            along_BD = torch.addmm(matrix_DD[-1], self.h[rows], matrix_DD[:-1]).double()
            parts.append((along_BD * self.root[rows, None]).square_().sum(dim=1))
        return torch.cat(parts).numpy()


def lower_trace(
    pool: WeightedRows,
    start_DD: Tensor,
    ridge: float,
    n: int,
    eligible: Eligible | None = None,
) -> Picks:
    """n rows, each the one whose vvᵀ, added to A, lowers tr(A⁻¹F) most; F is the pool's mean vvᵀ.

    Args:
        pool: the vectors v.
        start_DD: A before the first pick, less the ridge.
        ridge: λ, which is added to its diagonal.
        n: how many.
        eligible: which rows may be picked, pick after pick; all of them when None.

    Returns:
        Picks, and by how much each lowers the trace: vᵀA⁻¹FA⁻¹v / (1 + vᵀA⁻¹v).
    """
    _check_range(pool, start_DD, ridge)
    return _LowerTrace(pool, start_DD, ridge, eligible).run(n)


@dataclass(frozen=True, eq=False)
class _Pick:
    """A pick, what it takes off the trace, and what it changes.

    Args:
        row: which row.
        score: what it takes off.
        bar: the least score of those that were ahead, it among them.
        v_D: its vector.
        u_D: A⁻¹v.
        w_D: A⁻¹Fu.
        s: 1 + vᵀu.
        uFu: uᵀFu.
    """

    row: int
    score: float
    bar: float
    v_D: Tensor
    u_D: Tensor
    w_D: Tensor
    s: float
    uFu: float

    def lower(self, q: Floats, r: Floats, a: Floats, b: Floats) -> None:
        """Bring q = xᵀA⁻¹x and r = xᵀA⁻¹FA⁻¹x of some rows up to date, in place."""
        a_s = a / self.s
        r -= (2 * b - self.uFu * a_s) * a_s
        q -= a * a_s
        np.maximum(q, 0.0, out=q)
        np.maximum(r, 0.0, out=r)


class _LowerTrace:
    def __init__(
        self, pool: WeightedRows, start_DD: Tensor, ridge: float, eligible: Eligible | None
    ) -> None:
        self.pool, self._eligible = pool, eligible
        self._free = np.ones(len(pool), dtype=bool) if eligible is None else eligible.mask.copy()
        self._eye = torch.eye(len(start_DD), dtype=torch.float64, device="cpu")
        self.A = start_DD + ridge * self._eye
        self.F = pool.sum_of_squares() / len(pool)
        values, vectors = torch.linalg.eigh(self.F)
        self._root_F = vectors * values.clamp(min=0.0).sqrt()
        self.q: Floats
        self.r: Floats
        self.inverse: Tensor
        self._new: bool  # whether all rows have been computed anew, and no pick made since
        self._renew()

    def run(self, n: int) -> Picks:
        rows: list[int] = []
        scores: list[float] = []
        while len(rows) < n and self._free.any():
            together = min(_TOGETHER, n - len(rows)) if self._eligible is None else 1
            with np.errstate(over="ignore", invalid="ignore"):  # such rows are computed anew
                picks = self._next(together)
            for pick in picks:
                rows.append(pick.row)
                scores.append(pick.score)
        return Picks(np.array(rows, dtype=np.int64), np.array(scores))

    def _next(self, most: int) -> list[_Pick]:
        """The next picks, up to so many."""
        if not _finite(self.q, self.r):
            self._renew()
        scores_N = np.where(self._free, self.r / (1 + self.q), -np.inf)
        front, _ = smallest(-scores_N, min(_FRONT, int(self._free.sum())))
        A, inverse = self.A.clone(), self.inverse.clone()
        picks = self._from_front(front, most)
        if not picks:  # those ahead had drifted
            self._renew()
            return []
        valid = self._settle(front, picks)
        if valid < len(picks):
            picks, self.A, self.inverse = picks[:valid], A, inverse
            for pick in picks:
                self._add(pick)
        for pick in picks:
            self._free[pick.row] = False
            if self._eligible is not None:
                self._free[self._eligible.take(pick.row)] = False
        return picks

    def _from_front(self, front: Rows, most: int) -> list[_Pick]:
        """Picks from some rows, until there are so many, or those ahead have drifted."""
        pool, q, r = self.pool[front], self.q[front], self.r[front]
        free = np.ones(len(front), dtype=bool)
        picks: list[_Pick] = []
        while len(picks) < most and free.any():
            if picks and not _finite(q, r):
                break
            scores = np.where(free, r / (1 + q), -np.inf)
            ahead, _ = smallest(-scores, min(_AHEAD, int(free.sum())))
            v_BD = pool.exact(ahead)
            u_BD = v_BD @ self.inverse
            q_B, r_B = (u_BD * v_BD).sum(dim=1), ((u_BD @ self.F) * u_BD).sum(dim=1)
            exact_B = (r_B / (1 + q_B)).numpy()
            off = np.abs(exact_B - scores[ahead]).max()
            if off > _DRIFT * exact_B.max() and not self._new:
                break
            q[ahead], r[ahead] = q_B.numpy(), r_B.numpy()
            best = int(exact_B.argmax())
            v_D, u_D = v_BD[best], u_BD[best]
            Fu_D = self.F @ u_D
            pick = _Pick(
                int(front[ahead[best]]), float(exact_B[best]), float(scores[ahead].min()),
                v_D, u_D, self.inverse @ Fu_D, float(1 + v_D @ u_D), float(u_D @ Fu_D),
            )  # fmt: skip
            picks.append(pick)
            self._add(pick)
            pick.lower(q, r, *pool.along(torch.stack([pick.u_D, pick.w_D])))
            free[ahead[best]] = False
        return picks

    def _settle(self, front: Rows, picks: list[_Pick]) -> int:
        """Bring all rows up to date with picks from the front; how many of these hold.

        A pick holds if no row outside the front was above the least of those ahead of it.
        """
        vectors_KD = torch.stack([pick.u_D for pick in picks] + [pick.w_D for pick in picks])
        outside = self._free.copy()
        outside[front] = False
        q, r, valid = self.q.copy(), self.r.copy(), len(picks)
        for start in range(0, len(q), _BLOCK):
            view = slice(start, start + _BLOCK)
            along_KB = self.pool.along(vectors_KD, view)
            others = np.where(outside[view], 0.0, -np.inf)
            for place, pick in enumerate(picks[:valid]):
                if (r[view] / (1 + q[view]) + others).max() > pick.bar:
                    valid = place
                    break
                pick.lower(q[view], r[view], along_KB[place], along_KB[len(picks) + place])
        if valid < len(picks):
            # The first pick always holds: the front is of the best rows.
            return self._settle(front, picks[: max(1, valid)])
        self.q, self.r, self._new = q, r, False
        return valid

    def _add(self, pick: _Pick) -> None:
        self.A.addr_(pick.v_D, pick.v_D)
        self.inverse.addr_(pick.u_D, pick.u_D, alpha=-1 / pick.s)

    def _renew(self) -> None:
        """A⁻¹, and q = xᵀA⁻¹x and r = xᵀA⁻¹FA⁻¹x of every row, from A."""
        factor = torch.linalg.cholesky(self.A)
        self.inverse = torch.cholesky_inverse(factor)
        # As squared lengths, so that nothing cancels: A⁻¹ = RRᵀ with R = L⁻ᵀ.
        root = torch.linalg.solve_triangular(factor, self._eye, upper=False).T
        self.q = self.pool.sq_lengths(root)
        self.r = self.pool.sq_lengths(self.inverse @ self._root_F)
        for length_N in (self.q, self.r):  # 0 × ∞: a row of weight 0 whose product overflowed
            np.nan_to_num(length_N, copy=False)
        self._new = True


def _finite(q: Floats, r: Floats) -> bool:
    """Whether no product of a row with a pick left the range of the features' dtype."""
    return bool(np.isfinite(q.sum() + r.sum()))


def _check_range(pool: WeightedRows, start_DD: Tensor, ridge: float) -> None:
    low_N, high_N = torch.aminmax(pool.h, dim=1)
    lengths = pool.root * (torch.maximum(high_N, -low_N).double() + 1)
    largest = max(float(lengths.amax()) ** 2, float(start_DD.diagonal().amax()))
    if not largest <= _LARGEST * ridge:
        raise InputError(
            f"features must be small enough for λ = {ridge:g} to count beside their squares, which are "
            f"up to {largest:.1e}: bait inverts a sum of them. Standardise the features, of pool and "
            f"labelled set alike, or raise λ with ridge="
        )
