"""Farthest-first by the angle between last-layer gradients."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.picking.eligible import Eligible, LimitedRows, best_eligible
from askance.picking.kcenter import farthest_first
from askance.picking.points import Floats, Points, Rows, sq_dists_before_picks
from askance.picking.topk import Picks


def farthest_by_angle(
    a_MC: Floats, h_MD: Floats, n: int, bias: bool = True, eligible: Eligible | None = None
) -> Picks:
    """n of M gradients a ⊗ [h; 1]: row 0 first, then always the largest 1 − cos to the nearest pick.

    Under limits, the first eligible row first, and fewer than n where no eligible row is left.

    The score is that 1 − cos, in [0, 2]; it is 2, the largest value, for the first. A zero gradient has
    no direction: such rows come last, with score 0. Ties go to the lowest row.
    """
    unit_a, unit_h, directed_M = _unit_factors(a_MC, h_MD, bias)
    if eligible is None:
        eligible = LimitedRows(len(h_MD), n)
    directed = np.flatnonzero(directed_M)
    rows = best_eligible(directed, 1, eligible)
    scores = np.full(len(rows), 2.0)
    if n > 1 and len(directed) > 1 and len(rows):
        first = Points(unit_h[rows], unit_a[rows]).exact(np.array([0]))
        others = directed[directed != rows[0]]
        points = Points(unit_h[others], unit_a[others])
        picks = farthest_first(points, first, min(n - 1, len(others)), eligible.among(others))
        rows = np.append(rows, others[picks.rows])
        scores = np.append(scores, picks.scores / 2)
    last = best_eligible(np.flatnonzero(~directed_M), n - len(rows), eligible)
    return Picks(np.append(rows, last), np.append(scores, np.zeros(len(last))))


def angles_before_picks(a_MC: Floats, h_MD: Floats, picks: Rows, bias: bool = True) -> Floats:
    """(n, M): 1 − cos of every row to the nearest pick before each pick, NaN once picked.

    2 before the first; 0 for a zero gradient, which has no direction.
    """
    unit_a, unit_h, directed_M = _unit_factors(a_MC, h_MD, bias)
    farthest = np.full(len(h_MD), 4.0)
    utilities = sq_dists_before_picks(Points(unit_h, unit_a), picks, farthest) / 2
    return np.where(directed_M | np.isnan(utilities), utilities, 0.0)


def _unit_factors(
    a_MC: Floats, h_MD: Floats, bias: bool
) -> tuple[Tensor, Tensor, NDArray[np.bool_]]:
    """(a, h) of length 1, and which gradients are not zero.

    Unit factors make unit gradients u, and 1 − cos = ½ ‖u − u'‖²: farthest-first in Euclidean distance.
    """
    h = np.concatenate([h_MD, np.ones((len(h_MD), 1))], axis=1) if bias else h_MD
    norms = np.linalg.norm(a_MC, axis=1), np.linalg.norm(h, axis=1)
    unit_a, unit_h = (
        torch.from_numpy(x / np.where(norms_M > 0, norms_M, 1.0)[:, None])
        for x, norms_M in zip((a_MC, h), norms, strict=True)
    )
    return unit_a, unit_h, norms[0] * norms[1] > 0
