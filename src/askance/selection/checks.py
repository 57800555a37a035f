"""Refuse what cannot be answered, and what a rule must not answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askance.embedding import Embedding, check_finite
from askance.errors import InputError, NonFiniteError
from askance.picking import Picks
from askance.picking.eligible import LimitedRows
from askance.strategies import Strategy


def excluded_indices(exclude: Any) -> NDArray[np.int64]:
    """The pool indices of `exclude`, ascending, each once."""
    if exclude is None:
        return np.empty(0, dtype=np.int64)
    given = sorted(exclude) if isinstance(exclude, (set, frozenset)) else exclude
    indices = given.cpu().numpy() if isinstance(given, torch.Tensor) else np.asarray(given)
    if indices.size == 0:
        return np.empty(0, dtype=np.int64)
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        hint = "; pass its .indices" if hasattr(exclude, "indices") else ""
        hint = "; of a mask pass np.flatnonzero(mask)" if indices.dtype == bool else hint
        raise InputError(
            f"exclude must be a list of pool indices, got {indices.dtype} of shape "
            f"{indices.shape}{hint}"
        )
    return np.unique(indices).astype(np.int64)


def check_room(n: int, count: int, excluded: NDArray[np.int64]) -> None:
    """Raise where fewer than n of `count` points may be picked."""
    if count == 0:
        raise InputError("the pool must hold at least one point, it is empty")
    if len(excluded) and (excluded[0] < 0 or excluded[-1] >= count):
        bad = excluded[0] if excluded[0] < 0 else excluded[-1]
        raise InputError(f"exclude must hold pool indices between 0 and {count - 1}, got {bad}")
    free = count - len(excluded)
    if n > free:
        left = f" and {len(excluded)} of them excluded" if len(excluded) else ""
        raise InputError(
            f"n = {n} points were asked for, the pool has {count}{left}; ask for at most {free}"
        )


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
