"""Refuse what cannot be answered, and what a rule must not answer."""

from __future__ import annotations

import numpy as np
import torch

from askance.embedding import Embedding, check_finite
from askance.errors import InputError, NonFiniteError
from askance.picking import Picks
from askance.picking.eligible import LimitedRows
from askance.strategies import Strategy


def check_scores(rule: Strategy, scores: torch.Tensor, block: Embedding) -> None:
    """Raise unless there is one finite score for each row of the block."""
    if scores.shape != (len(block),):
        raise InputError(
            f"{rule.name} must give one score a point: expected shape ({len(block)},), got "
            f"{tuple(scores.shape)}"
        )
    if torch.isfinite(scores.sum()):
        return
    if block.features is not None and "features" in rule.needs:
        check_finite("features", block.features, block.positions)
    bad = (~torch.isfinite(scores)).nonzero().flatten().tolist()
    if bad:
        raise NonFiniteError(
            f"scores must be finite; {rule.name} gave {len(bad)} of {len(block)} points NaN or "
            f"infinite scores, the first is row {int(block.positions[bad[0]])}"
        )


def check_limits(rule: Strategy, picks: Picks, n: int, limits: LimitedRows) -> None:
    """Raise unless the rule took every pick from the eligible rows, until it had n or none was left."""
    if picks.rows.tolist() != limits.taken:
        raise InputError(
            f"{rule.name} must call eligible.take(row) for each pick, in order; it took "
            f"{limits.taken[:5]} … and picked {picks.rows.tolist()[:5]} …"
        )
    if len(limits.taken) < n and limits.mask.any():
        raise InputError(
            f"{rule.name} must give {n} rows, or all that are eligible; it gave {len(limits.taken)}, "
            f"and {np.count_nonzero(limits.mask)} more may be picked"
        )


def check_picks(rule: Strategy, picks: Picks, n: int, count: int) -> None:
    """Raise unless they are n different rows, each with a finite score."""
    rows, scores = np.asarray(picks.rows), np.asarray(picks.scores)
    different = len(np.unique(rows)) == n and rows.shape == (n,)
    if not different or rows.min() < 0 or rows.max() >= count:
        raise InputError(
            f"{rule.name} must give {n} different rows between 0 and {count - 1}; it gave "
            f"{len(np.unique(rows))} different ones of {rows.size}"
        )
    if scores.shape != (n,):
        raise InputError(f"{rule.name} must give {n} scores, one a pick; it gave {scores.shape}")
    if not np.isfinite(scores).all():
        bad = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise NonFiniteError(
            f"{rule.name} must give every pick a finite score; pick {bad}, row {rows[bad]}, has "
            f"{scores[bad]}"
        )
