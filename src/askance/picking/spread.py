"""Farthest-first by the angle between last-layer gradients."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.picking.kcenter import farthest_first
from askance.picking.points import Floats, Points, Rows, sq_dists_before_picks
from askance.picking.topk import Picks


def farthest_by_angle(a_MC: Floats, h_MD: Floats, n: int, bias: bool = True) -> Picks:
    """n of M gradients a ⊗ [h; 1]: row 0 first, then always the largest 1 − cos to the nearest pick.

    The score is that 1 − cos, in [0, 2]; it is 2, the largest value, for the first. A zero gradient has
    no direction: such rows come last, with score 0. Ties go to the lowest row.
    """
    unit_a, unit_h, directed_M = _unit_factors(a_MC, h_MD, bias)
    directed, rest = np.flatnonzero(directed_M), np.flatnonzero(~directed_M)
    rows, scores = [directed[:1], rest], [np.full(len(directed[:1]), 2.0), np.zeros(len(rest))]
    more = min(n, len(directed)) - 1
    if more > 0:
        first = Points(unit_h[directed[:1]], unit_a[directed[:1]]).exact(np.array([0]))
        others = Points(unit_h[directed[1:]], unit_a[directed[1:]])
        picks = farthest_first(others, first, more)
        rows.insert(1, directed[1 + picks.rows])
        scores.insert(1, picks.scores / 2)
    return Picks(np.concatenate(rows)[:n], np.concatenate(scores)[:n])


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
