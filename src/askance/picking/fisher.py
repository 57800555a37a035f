"""Greedy picks that lower tr(A⁻¹F) most, by rank-one updates.

With u = A⁻¹v of a pick v, s = 1 + vᵀu and w = A⁻¹Fu, and for every row x of the pool a = xᵀu, b = xᵀw:

    xᵀA'⁻¹x        = xᵀA⁻¹x − a²/s
    xᵀA'⁻¹FA'⁻¹x   = xᵀA⁻¹FA⁻¹x − 2ab/s + (uᵀFu) a²/s²

So a pick costs one pass over the pool, for a and b. The pass is in the features' own dtype, and its
rounding adds up. So the rows that are ahead are computed anew in float64 before each pick, and all rows
whenever those have drifted.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from askance.errors import InputError
from askance.picking.eligible import Eligible, LimitedRows
from askance.picking.points import Floats, Rows
from askance.picking.topk import Picks, smallest

# Rows computed anew before each pick, and how far a score may be from the truth before all of them are.
_AHEAD, _DRIFT = 32, 1e-3
_ENTRIES = 1 << 22
_CACHED = 1 << 19
# Of ‖v‖² to λ: beyond this the inverse in float64 has no digits left.
_LARGEST = 1e12


class WeightedRows:
    """The vectors √w·[h; 1] of a pool, never stored."""

    def __init__(self, features_ND: Tensor, weights_N: Tensor) -> None:
        self.h, self.root = features_ND, weights_N.double().sqrt()

    def __len__(self) -> int:
        return len(self.h)

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

    def along(self, *vectors: Tensor) -> list[Floats]:
        """vᵀu of each row, (N,), for each u, from products in the features' dtype."""
        h_ND, root_N = self.h.numpy(), self.root.numpy()
        along = [np.empty(len(h_ND), h_ND.dtype) for _ in vectors]
        low = [u_D.to(self.h.dtype).numpy()[:-1] for u_D in vectors]
        # The pool is read once for all of them, a part that stays in cache at a time. NumPy's product
        # of a matrix and a vector takes a half to an eighth of PyTorch's time.
        step = max(1, _CACHED // h_ND[:1].nbytes)
        for start in range(0, len(h_ND), step):
            part = slice(start, start + step)
            for out, u in zip(along, low, strict=True):
                np.dot(h_ND[part], u, out=out[part])
        return [(x + float(u_D[-1])) * root_N for x, u_D in zip(along, vectors, strict=True)]

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
    return _LowerTrace(pool, start_DD, ridge, eligible or LimitedRows(len(pool), n)).run(n)


class _LowerTrace:
    def __init__(
        self, pool: WeightedRows, start_DD: Tensor, ridge: float, eligible: Eligible
    ) -> None:
        self.pool, self._eligible = pool, eligible
        self._eye = torch.eye(len(start_DD), dtype=torch.float64, device="cpu")
        self.A = start_DD + ridge * self._eye
        self.F = pool.sum_of_squares() / len(pool)
        values, vectors = torch.linalg.eigh(self.F)
        self._root_F = vectors * values.clamp(min=0.0).sqrt()
        self._renew()

    def run(self, n: int) -> Picks:
        rows: list[int] = []
        scores: list[float] = []
        while len(rows) < n and self._eligible.mask.any():
            row, v, score = self._best()
            self._eligible.take(row)
            rows.append(row)
            scores.append(score)
            self._add(v)
        return Picks(np.array(rows, dtype=np.int64), np.array(scores))

    def _best(self) -> tuple[int, Tensor, float]:
        """(the row that lowers the trace most, its vector, by how much)."""
        free_N = self._eligible.mask
        for renewed in (False, True):
            scores_N = np.where(free_N, self.r / (1 + self.q), -np.inf)
            ahead, _ = smallest(-scores_N, min(_AHEAD, int(free_N.sum())))
            v_BD = self.pool.exact(ahead)
            u_BD = v_BD @ self.inverse
            q_B, r_B = (u_BD * v_BD).sum(dim=1), ((u_BD @ self.F) * u_BD).sum(dim=1)
            exact_B = (r_B / (1 + q_B)).numpy()
            off = np.abs(exact_B - scores_N[ahead]).max()
            if renewed or off <= _DRIFT * exact_B.max():
                break
            self._renew()
        self.q[ahead], self.r[ahead] = q_B.numpy(), r_B.numpy()
        best = int(exact_B.argmax())
        return int(ahead[best]), v_BD[best], float(exact_B[best])

    def _add(self, v_D: Tensor) -> None:
        u_D = self.inverse @ v_D
        s = float(1 + v_D @ u_D)
        Fu_D = self.F @ u_D
        a_N, b_N = self.pool.along(u_D, self.inverse @ Fu_D)
        self.q -= a_N**2 / s
        self.r -= (2 * b_N - float(u_D @ Fu_D) / s * a_N) * a_N / s
        np.maximum(self.q, 0.0, out=self.q)
        np.maximum(self.r, 0.0, out=self.r)
        self.A += torch.outer(v_D, v_D)
        self.inverse -= torch.outer(u_D, u_D) / s

    def _renew(self) -> None:
        """A⁻¹, and q = xᵀA⁻¹x and r = xᵀA⁻¹FA⁻¹x of every row, from A."""
        factor = torch.linalg.cholesky(self.A)
        self.inverse = torch.cholesky_inverse(factor)
        # As squared lengths, so that nothing cancels: A⁻¹ = RRᵀ with R = L⁻ᵀ.
        root = torch.linalg.solve_triangular(factor, self._eye, upper=False).T
        self.q = self.pool.sq_lengths(root)
        self.r = self.pool.sq_lengths(self.inverse @ self._root_F)


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
