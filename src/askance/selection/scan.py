"""Score a pool's blocks and keep the best, or let a batch rule pick.

What is done to a whole pool in memory is what is done to one shard of a larger one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from askance.embedding import Embedding, positions_array
from askance.embedding.guard import full_precision
from askance.picking import Picks, StreamingTopK, TopRows
from askance.picking.eligible import LimitedRows
from askance.seeding import Draws
from askance.selection.checks import check_limits, check_picks, check_scores
from askance.selection.clock import Clock
from askance.selection.constraints import ConstrainedTop, Constraints
from askance.selection.excluded import Excluded, Rows
from askance.strategies import Batch, Pointwise, Strategy, TwoStage
from askance.strategies.base import sample_keys


@dataclass(frozen=True, eq=False)
class ScanResult:
    """The best rows of some blocks, how many rows there were, and how many of them are excluded.

    `ids` says whether every row had an identifier.
    """

    top: TopRows
    rows: int
    excluded: int
    ids: bool = True


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
    times: int = 1,
) -> ScanResult:
    """The n best of the rows that may be picked; under limits, every row that n picks may reach.

    `times` as many rows of each kind for a shortlist under limits.
    """
    best = StreamingTopK(n) if constraints is None else ConstrainedTop(constraints, n, times)
    rows, left_out, ids = 0, 0, True
    for block, scores in scored_blocks:
        with clock.phase("select"):
            rows += len(block)
            ids &= block.ids is not None
            free = excluded.free(block)
            if free is not None:
                left_out += len(block) - len(free)
                block, scores = block[free], scores[free]
            best.push(block, scores)
    with clock.phase("select"):
        return ScanResult(best.result(), rows, left_out, ids)


@dataclass(frozen=True, eq=False)
class StagedRows:
    """What a two-stage rule looks at of a pool, or of a part of it.

    Args:
        shortlist: the best rows by the rule that makes the shortlist.
        sample: a uniform sample; the scores are minus the numbers of `sample_keys`.
    """

    shortlist: TopRows
    sample: TopRows

    @classmethod
    def empty(cls) -> StagedRows:
        """No rows at all."""
        return cls(TopRows.empty(), TopRows.empty())

    @classmethod
    def best_of(cls, parts: Sequence[StagedRows], n: int, sampled: int) -> StagedRows:
        """Of several parts, the n best and a sample; the same whatever the order of the parts."""
        return cls(
            TopRows.best_of([part.shortlist for part in parts], n),
            TopRows.best_of([part.sample for part in parts], sampled),
        )

    def among(self, others: StagedRows) -> StagedRows:
        """Those of these rows that are among others."""
        pairs = ((self.shortlist, others.shortlist), (self.sample, others.sample))
        return StagedRows(
            *(
                top[np.flatnonzero(np.isin(top.rows.positions, all.rows.positions))]
                for top, all in pairs
            )
        )

    def holds(self, positions: Rows) -> bool:
        """Whether one of these positions is among the rows."""
        return any(
            np.isin(top.rows.positions, positions).any() for top in (self.shortlist, self.sample)
        )


def staged_rows(
    scored_blocks: Iterable[tuple[Embedding, Tensor]],
    n: int,
    sampled: int,
    draws: Draws,
    excluded: Excluded,
    clock: Clock,
    constraints: Constraints | None = None,
    times: int = 1,
) -> tuple[StagedRows, ScanResult]:
    """`best_rows`, and a uniform sample of the rows that may be picked, in one pass."""
    sample = StreamingTopK(max(1, sampled))

    def sampling() -> Iterator[tuple[Embedding, Tensor]]:
        for block, scores in scored_blocks:
            yield block, scores
            if sampled:
                with clock.phase("select"):
                    free = excluded.free_rows(block)
                    keys = torch.from_numpy(-sample_keys(free.positions, draws))
                    sample.push(free, keys.to(block.device))

    scan = best_rows(sampling(), n, excluded, clock, constraints, times)
    with clock.phase("select"):
        return StagedRows(scan.top, sample.result()), scan


def finish_stages(
    rule: TwoStage, staged: StagedRows, n: int, reference: Any, draws: Draws, clock: Clock
) -> TopRows:
    """n rows of a shortlist, chosen by a two-stage rule."""
    shortlist, sample = (
        top.rows[np.argsort(positions_array(top.rows.positions))]
        for top in (staged.shortlist, staged.sample)
    )
    with clock.phase("select"), full_precision(shortlist.device):
        picks = rule.finish(shortlist, sample, n, reference, draws)
    return picked_rows(rule, shortlist, picks, n)


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
