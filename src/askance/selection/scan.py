"""Score a pool's blocks and keep the best, or let a batch rule pick.

What is done to a whole pool in memory is what is done to one shard of a larger one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding
from askance.embedding.guard import full_precision
from askance.picking import Picks, StreamingTopK, TopRows
from askance.picking.eligible import LimitedRows
from askance.seeding import Draws
from askance.selection.checks import check_limits, check_picks, check_scores
from askance.selection.clock import Clock
from askance.selection.constraints import ConstrainedTop, Constraints
from askance.strategies import Batch, Pointwise, Strategy

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Excluded:
    """Rows that may not be picked.

    Args:
        positions: their positions in the pool, ascending.
        ids: identifiers of more of them.
    """

    positions: Rows
    ids: frozenset[str] = frozenset()

    def among(self, block: Embedding) -> Rows:
        """Which rows of a block are excluded, ascending."""
        by_id = np.empty(0, dtype=np.int64)
        if self.ids and block.ids is not None:
            by_id = block.ids.find(self.ids)
        if not len(self.positions):
            return by_id
        if isinstance(block.positions, range):
            first, last = block.positions.start, block.positions.stop
            low, high = np.searchsorted(self.positions, [first, last])
            by_position = self.positions[low:high] - first
        else:
            by_position = np.flatnonzero(np.isin(block.positions, self.positions))
        return np.union1d(by_id, by_position) if len(by_id) else by_position

    def free(self, block: Embedding) -> Rows | None:
        """The rows of a block that may be picked; None for all of them."""
        excluded = self.among(block)
        if not len(excluded):
            return None
        free = np.ones(len(block), dtype=bool)
        free[excluded] = False
        return np.flatnonzero(free)

    def free_rows(self, pool: Embedding) -> Embedding:
        """The pool without what is excluded."""
        free = self.free(pool)
        return pool if free is None else pool[free]


@dataclass(frozen=True, eq=False)
class ScanResult:
    """The best rows of some blocks, how many rows there were, and how many of them are excluded."""

    top: TopRows
    rows: int
    excluded: int


def scored(
    rule: Pointwise, blocks: Iterable[Embedding], reference: Any, draws: Draws, clock: Clock
) -> Iterator[tuple[Embedding, Tensor]]:
    """Each block with the score of each of its rows."""
    for block in blocks:
        with clock.phase("score"), full_precision(block.device):
            scores = rule.score(block, reference, draws)
            check_scores(rule, scores, block)
        yield block, scores


def best_rows(
    scored_blocks: Iterable[tuple[Embedding, Tensor]],
    n: int,
    excluded: Excluded,
    clock: Clock,
    constraints: Constraints | None = None,
) -> ScanResult:
    """The n best of the rows that may be picked; under limits, every row that n picks may reach."""
    best = StreamingTopK(n) if constraints is None else ConstrainedTop(constraints, n)
    rows, left_out = 0, 0
    for block, scores in scored_blocks:
        with clock.phase("select"):
            rows += len(block)
            free = excluded.free(block)
            if free is not None:
                left_out += len(block) - len(free)
                block, scores = block[free], scores[free]
            best.push(block, scores)
    with clock.phase("select"):
        return ScanResult(best.result(), rows, left_out)


def pick_together(
    rule: Batch,
    pool: Embedding,
    n: int,
    reference: Any,
    draws: Draws,
    clock: Clock,
    limits: LimitedRows | None = None,
) -> TopRows:
    """n rows of the pool, chosen together by a batch rule; under limits, n at most."""
    with clock.phase("select"), full_precision(pool.device):
        if limits is None:
            return picked_rows(rule, pool, rule.pick(pool, n, reference, draws), n)
        picks = rule.pick(pool, n, reference, draws, limits)
    check_limits(rule, picks, n, limits)
    return picked_rows(rule, pool, picks, len(limits.taken))


def picked_rows(rule: Strategy, pool: Embedding, picks: Picks, n: int) -> TopRows:
    """The rows a rule picked, once they are seen to be an answer."""
    check_picks(rule, picks, n, len(pool))
    return TopRows(pool[picks.rows], picks.scores)
