"""What a coverage is measured on: the evaluation rows, how wide the kernel is, what labels cover.

Everything is float64, on the device of the features. On a CPU a row's bits depend on that row alone;
a GPU takes whole products.

Shapes: M evaluation rows; L labelled rows; D features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from askance.picking.near import NearRows, formed_sq_dists
from askance.picking.points import Floats

LEAST_SQ_WIDTH = 1e-6
# Squared lengths between these have lost nothing to overflow or underflow.
_LEAST_SQ, _MOST_SQ = 1e-250, 1e250
_LABELED_ROWS = 8192
_PRODUCT_ENTRIES = 1 << 21
# Float32 sums over more terms than this would lose digits that a median needs.
_ROWS = 512


@dataclass(frozen=True, eq=False)
class Audience:
    """The evaluation rows: what is to be covered, and how well it is already.

    Args:
        unit_MD: their features at unit length, float64; see `unit_rows`.
        weights_M: w(e) ≥ 0, float64.
        covered_M: cov(e) in [0, 1], float64: the largest k(x, e) over the labelled rows x.
        sq_width: σ².
    """

    unit_MD: Tensor
    weights_M: Tensor
    covered_M: Tensor
    sq_width: float


def unit_rows(features_ND: Tensor) -> Tensor:
    """The rows at unit length in float64, (N, D); a zero row stays zero."""
    rows_ND = features_ND.detach().double()
    if rows_ND.is_cuda:
        largest_N1 = rows_ND.abs().amax(dim=1, keepdim=True)
        rows_ND = rows_ND / largest_N1.where(largest_N1 > 0, 1.0)
        length_N1 = rows_ND.norm(dim=1, keepdim=True)
        return rows_ND.div_(length_N1.where(length_N1 > 0, 1.0))
    return torch.from_numpy(_unit(rows_ND.numpy()))


def _unit(rows: Floats) -> Floats:
    sq = np.einsum("nd,nd->n", rows, rows)
    if not ((sq > _LEAST_SQ) & (sq < _MOST_SQ)).all():
        # Squares overflow, or underflow, or all are zero: those rows' largest number comes to 1 first.
        some = np.flatnonzero(~((sq > _LEAST_SQ) & (sq < _MOST_SQ)))
        largest = np.abs(rows[some]).max(axis=1, initial=0.0)
        rows = rows.copy()
        rows[some] /= np.where(largest > 0, largest, 1.0)[:, None]
        sq[some] = np.einsum("nd,nd->n", rows[some], rows[some])
    return rows / np.sqrt(np.where(sq > 0, sq, 1.0))[:, None]


def sq_dists_to_nearest(unit_MD: Tensor, centres_LD: Tensor) -> Tensor:
    """Squared distance from each unit row to the nearest of some rows at unit length, (M,)."""
    nearest_M = unit_MD.new_full((len(unit_MD),), torch.inf)
    for part in centres_LD.split(_LABELED_ROWS):
        others_LD = unit_rows(part.to(unit_MD.device))
        if unit_MD.is_cuda:
            sq_M = sq_dists(unit_MD, others_LD).amin(dim=1)
        else:
            sq_M = torch.from_numpy(_nearest(unit_MD, others_LD))
        torch.minimum(nearest_M, sq_M, out=nearest_M)
    return nearest_M


def _nearest(unit_MD: Tensor, others_LD: Tensor) -> Floats:
    near = NearRows(others_LD, others_LD.new_zeros(len(others_LD)))
    parts = []
    step = max(1, _PRODUCT_ENTRIES // len(others_LD))
    for start in range(0, len(unit_MD), step):
        block_BD = unit_MD[start : start + step]
        i, j = near.nearest(block_BD.float())
        sq = formed_sq_dists(block_BD.numpy(), i, others_LD.numpy(), j)
        # Every row has a pair, and pairs come row by row.
        parts.append(np.minimum.reduceat(sq, np.searchsorted(i, np.arange(len(block_BD)))))
    return np.concatenate([np.empty(0), *parts])


def sq_dists(unit_MD: Tensor, others_KD: Tensor) -> Tensor:
    """All squared distances, (M, K), from one product: good to 2⁻⁵⁰ or so, not relative to each."""
    sq_MK = torch.mm(unit_MD, others_KD.T).mul_(-2.0)
    sq_MK += unit_MD.square().sum(dim=1, keepdim=True)
    sq_MK += others_KD.square().sum(dim=1)
    return sq_MK.clamp_min_(0.0)


def sq_dists_between(unit_MD: Tensor) -> Tensor:
    """Squared distances between all pairs of different rows, as a flat list."""
    M, used = len(unit_MD), 0
    if unit_MD.is_cuda:
        above = torch.ones(M, M, dtype=torch.bool, device=unit_MD.device).triu_(1)
        return sq_dists(unit_MD, unit_MD)[above]
    sq = np.empty(M * (M - 1) // 2, np.float32)
    rows_MD, norms_M = unit_MD.float(), unit_MD.square().sum(dim=1).numpy()
    for start in range(0, M, _ROWS):
        inner_BM = (rows_MD[start : start + _ROWS] @ rows_MD[start:].T).numpy()
        for place, inner in enumerate(inner_BM):
            other = start + place + 1
            view = slice(used, used + M - other)
            sq[view] = norms_M[other - 1] + norms_M[other:] - 2.0 * inner[place + 1 :]
            used = view.stop
    return torch.from_numpy(sq)


def median(values: Tensor) -> float:
    """The median, 0 of none. Values on a CPU are put in another order: there may be millions."""
    if not len(values):
        return 0.0
    if values.is_cuda:
        ordered = values.sort().values
        return float(ordered[[(len(values) - 1) // 2, len(values) // 2]].mean())
    return float(np.median(values.numpy(), overwrite_input=True))
