"""Which pairs of rows may be near enough, by one product in the precision that is fastest here.

    ‖x − e‖² < t(e)   ⇔   ⟨x, e⟩ − ‖x‖²/2 + (t(e) − ‖e‖²)/2 > 0

Some processors multiply bfloat16 several times as fast as float32, with 8 bits in place of 24. What the
rounding of a row may change is added to the left side. So no pair is missed, and the few that are given
besides are told apart by distances in float64. The mean row is taken off first, so that rows are short
and rounding matters less. The two terms of one row alone are columns of the product, each cut into
three numbers; so it is the sign that decides, which survives the rounding of the result.

Shapes: M rows e; N rows x, B of a block; D features; K columns of a product, D + 6.
"""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.gradients.last_layer import working
from askance.picking.points import Floats, Rows

_PIECES = 3
# bfloat16 must be so many times as fast, since more pairs are near by it.
_FASTER = 1.5
_PAIR_BYTES = 1 << 19


@cache
def product_dtype() -> torch.dtype:
    """The dtype whose products are fastest here, measured once. It changes no pick."""
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        x, e = (torch.ones(rows, 256, dtype=dtype, device="cpu") for rows in (128, 512))
        times = []
        for _ in range(4):
            start = time.perf_counter()
            torch.mm(x, e.T)
            times.append(time.perf_counter() - start)
        seconds[dtype] = min(times)
    slow = seconds[torch.float32] < _FASTER * seconds[torch.bfloat16]
    return torch.float32 if slow else torch.bfloat16


def low_unit_rows(features_BD: Tensor) -> Tensor:
    """The rows at unit length in float32, (B, D); a zero row stays zero."""
    rows_BD = working(features_BD)
    # The largest number first: squares of what is left neither overflow nor underflow.
    largest_B1 = rows_BD.abs().amax(dim=1, keepdim=True)
    rows_BD = (rows_BD / largest_B1.where(largest_B1 > 0, 1.0)).float()
    length_B1 = rows_BD.norm(dim=1, keepdim=True)
    return rows_BD.div_(length_B1.where(length_B1 > 0, 1.0))


class NearRows:
    """M rows, each with a limit t(e) on the squared distance of what counts as near.

    Args:
        rows_MD: the rows, at unit length or shorter, float64.
        limits_M: t(e).
        dtype: of the product; the fastest when None.
    """

    def __init__(self, rows_MD: Tensor, limits_M: Tensor, dtype: torch.dtype | None = None) -> None:
        self._dtype = dtype or product_dtype()
        # A float32 sum of K terms is off by K·2⁻²⁴ of the terms' size at most, and terms are up to 2;
        # the lengths of the rows make up the rest, twice over.
        self._slack = (rows_MD.shape[1] + 16) * 2.0**-21
        mean_D = rows_MD.mean(dim=0)
        self._mean = mean_D.float()
        centred_MD = (rows_MD - self._mean.double()).float()
        sq_M = centred_MD.square().sum(dim=1).double()
        self._low = self._extended(centred_MD, (limits_M - sq_M) / 2, own_first=False)
        self._longest = float(sq_M.amax().sqrt()) if len(sq_M) else 0.0
        off_M = (centred_MD - self._low[:, : len(mean_D)].float()).norm(dim=1)
        self._off = float(off_M.amax()) if len(off_M) else 0.0

    def pairs(self, unit_BD: Tensor) -> tuple[Rows, Rows]:
        """(places in the block, places among the M): all pairs that are near, and some more."""
        left_BK, margin_B = self._left(unit_BD, own=True)
        left_BK[:, -_PIECES:] = self._pieces(margin_B)
        # Of numbers above zero the bits are, as whole numbers, above zero too.
        near = np.flatnonzero(self._bits(torch.mm(left_BK, self._low.T)) > 0)
        return np.divmod(near, len(self._low))

    def nearest(self, unit_BD: Tensor) -> tuple[Rows, Rows]:
        """(places in the block, places among the M): each row's nearest, and others as near or nearly.

        To be asked where every limit is zero.
        """
        left_BK, margin_B = self._left(unit_BD, own=False)
        product_BM = torch.mm(left_BK, self._low.T)
        order_BM = in_order(self._bits(product_BM))
        place_B = order_BM.argmax(axis=1)
        top_B = product_BM[
            torch.arange(len(left_BK), device="cpu"), torch.from_numpy(place_B)
        ].double()
        rounded = 2.0**-7 if self._dtype == torch.bfloat16 else 2.0**-22
        bar_B = top_B - rounded * (top_B.abs() + 1e-3) - 2 * margin_B
        # Rounded down, so that none is lost.
        low_B = (bar_B - rounded * bar_B.abs()).to(self._dtype)
        near = np.flatnonzero(order_BM >= in_order(self._bits(low_B))[:, None])
        return np.divmod(near, len(self._low))

    @staticmethod
    def _bits(values: Tensor) -> NDArray[np.integer]:
        return values.view(torch.int16 if values.dtype == torch.bfloat16 else torch.int32).numpy()

    def _left(self, unit_BD: Tensor, *, own: bool) -> tuple[Tensor, Tensor]:
        """The rows of a block as the product wants them, and what each one's results may be off by.

        With `own` the latter is less half the row's square.
        """
        centred_BD = unit_BD - self._mean
        zero_B = torch.zeros(len(unit_BD), dtype=torch.float64, device="cpu")
        left_BK = self._extended(centred_BD, zero_B, own_first=True)
        low_BD = left_BK[:, : len(self._mean)].float()
        off_B = (centred_BD - low_BD).norm(dim=1).double()
        margin_B = off_B * self._longest + low_BD.norm(dim=1).double() * self._off + self._slack
        if own:
            margin_B -= centred_BD.square().sum(dim=1).double() / 2
        return left_BK, margin_B

    def _extended(self, rows_ND: Tensor, term_N: Tensor, *, own_first: bool) -> Tensor:
        """Rows with the pieces of their own term and as many ones, or the other way round, (N, K)."""
        N, D = rows_ND.shape
        extended_NK = torch.ones(N, D + 2 * _PIECES, dtype=self._dtype, device="cpu")
        extended_NK[:, :D] = rows_ND
        own = slice(D + _PIECES, None) if own_first else slice(D, D + _PIECES)
        extended_NK[:, own] = self._pieces(term_N)
        return extended_NK

    def _pieces(self, term_N: Tensor) -> Tensor:
        """Three numbers that come to each term, (N, 3)."""
        pieces, left_N = [], term_N
        for _ in range(_PIECES):
            pieces.append(left_N.to(self._dtype))
            left_N = left_N - pieces[-1].double()
        return torch.stack(pieces, dim=1)


def in_order(bits: NDArray[np.integer]) -> NDArray[np.integer]:
    """The bits of floating-point numbers, as whole numbers in the same order. NumPy compares these
    many times as fast as PyTorch compares bfloat16."""
    return bits ^ ((bits >> (8 * bits.itemsize - 1)) & np.iinfo(bits.dtype).max)


def formed_sq_dists(rows: Floats, i: Rows, others: Floats, j: Rows) -> Floats:
    """‖rows_i − others_j‖² of pairs, the differences formed first. Each depends on its pair alone."""
    step = max(1, _PAIR_BYTES // (8 * rows.shape[1]))
    sq = np.empty(len(i))
    for start in range(0, len(i), step):
        view = slice(start, start + step)
        diff = rows[i[view]] - others[j[view]]
        np.einsum("pd,pd->p", diff, diff, out=sq[view])
    return sq
