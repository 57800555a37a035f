"""The rows that a run begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance import strategies
from askance.embedding import Embedding, sources
from askance.errors import InputError
from askance.seeding import Draws
from askance.selection.select import select
from askance.strategies import Strategy

First = str | Strategy | Sequence[int] | NDArray[np.int64]


def first_batch(
    pool: Any,
    size: int,
    batch: int,
    first: First,
    seed: int,
    exclude: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """The rows that a run begins with, as `askance.loop` says; none of them in `exclude`."""
    if not isinstance(first, (str, Strategy)):
        return checked_batch(first, batch, size)
    if first == "random":
        free = np.arange(size) if exclude is None else np.delete(np.arange(size), exclude)
        start = Draws(seed).generator("start").choice(free, batch, replace=False)
        return start.astype(np.int64)
    rule = strategies.of(first)
    if not rule.needs <= {"features"}:
        raise InputError(
            f"before there is a model and a label, {rule.name} has not what it needs "
            f"({', '.join(sorted(rule.needs))}); begin with 'random' or 'maxherding', or give the rows "
            f"of the first batch"
        )
    rows: Any = pool.features if isinstance(pool, Embedding) else pool
    if not sources.is_array(rows) or rows.ndim < 2:
        raise InputError(
            f"{rule.name} takes each row of the pool as a vector of features, and a "
            f"{type(pool).__name__} has no such rows; give the rows of the first batch, e.g. "
            f"first=askance.select(encoder, None, pool, {batch}).indices"
        )
    features = rows.reshape(len(rows), -1)
    picks = select(None, None, features, batch, strategy=rule, seed=Draws(seed), exclude=exclude)
    return picks.indices


def checked_batch(rows: Any, batch: int, size: int) -> NDArray[np.int64]:
    """Rows of a batch, once they are seen to be one."""
    picks = np.asarray(rows, dtype=np.int64)
    if picks.shape != (batch,) or len(np.unique(picks)) != batch:
        raise InputError(f"a round asks for {batch} different rows, got {picks.tolist()}")
    if int(picks.min()) < 0 or int(picks.max()) >= size:
        raise InputError(f"rows must be between 0 and {size - 1}, got {picks.tolist()}")
    return picks
