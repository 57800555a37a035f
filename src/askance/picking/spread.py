"""Farthest-first by the angle between last-layer gradients."""

from __future__ import annotations

import numpy as np
import torch

from askance.picking.kcenter import farthest_first
from askance.picking.points import Floats, Points, Rows, sq_dists_before_picks
from askance.picking.topk import Picks


def farthest_by_angle(a_MC: Floats, h_MD: Floats, n: int, bias: bool = True) -> Picks:
    """n of M gradients a ⊗ [h; 1]: row 0 first, then always the widest 1 − cos to the nearest pick.

    Scores are that 1 − cos, in [0, 2]; 2, the widest there is, for the first. A zero gradient has no
    direction: such rows come last, with score 0. Ties go to the lowest row.
    """
    # Unit factors make unit gradients u, and 1 − cos = ½ ‖u − u'‖²: farthest-first in Euclid's sense.
    h = np.concatenate([h_MD, np.ones((len(h_MD), 1))], axis=1) if bias else h_MD
    a_norms, h_norms = np.linalg.norm(a_MC, axis=1), np.linalg.norm(h, axis=1)
    directed = np.flatnonzero(a_norms * h_norms > 0)
    rest = np.setdiff1d(np.arange(len(h)), directed)
    rows, scores = [rest[:0]], [np.empty(0)]
    if len(directed):
        rows.append(directed[:1])
        scores.append(np.array([2.0]))
    more = min(n, len(directed)) - 1
    if more > 0:
        unit_h = torch.from_numpy(h[directed] / h_norms[directed, None])
        unit_a = torch.from_numpy(a_MC[directed] / a_norms[directed, None])
        first = Points(unit_h[:1], unit_a[:1]).exact(np.array([0]))
        picks = farthest_first(Points(unit_h[1:], unit_a[1:]), first, more)
        rows.append(directed[1 + picks.rows])
        scores.append(picks.scores / 2)
    rows.append(rest)
    scores.append(np.zeros(len(rest)))
    return Picks(np.concatenate(rows)[:n], np.concatenate(scores)[:n])


def angles_before_picks(a_MC: Floats, h_MD: Floats, picks: Rows, bias: bool = True) -> Floats:
    """(n, M): 1 − cos of every row to the nearest pick before each pick, NaN once picked.

    2 before the first; 0 for a zero gradient, which has no direction.
    """
    h = np.concatenate([h_MD, np.ones((len(h_MD), 1))], axis=1) if bias else h_MD
    a_norms, h_norms = np.linalg.norm(a_MC, axis=1), np.linalg.norm(h, axis=1)
    directed = a_norms * h_norms > 0
    units = [
        torch.from_numpy(x / np.where(norms > 0, norms, 1.0)[:, None])
        for x, norms in ((h, h_norms), (a_MC, a_norms))
    ]
    utilities = sq_dists_before_picks(Points(units[0], units[1]), picks, np.full(len(h), 4.0)) / 2
    return np.where(directed | np.isnan(utilities), utilities, 0.0)
