"""What is asked of a pool's blocks, by either kind of rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askance.embedding import Block, Embedding, concatenated, sources
from askance.embedding.guard import full_precision
from askance.picking import Picks, StreamingTopK
from askance.seeding import Draws
from askance.selection.checks import check_picks, check_room, check_scores
from askance.selection.clock import Clock
from askance.selection.inputs import contents, positions_of
from askance.strategies import Batch, Pointwise, Strategy


@dataclass(frozen=True, eq=False)
class Answer:
    """The picked rows, best first, and their scores; every point's score where it was kept."""

    rows: Block
    scores: NDArray[np.float64]
    pool_scores: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Question:
    """All that is asked of the pool's blocks."""

    rule: Strategy
    n: int
    reference: Any
    draws: Draws
    excluded: NDArray[np.int64]
    clock: Clock

    def stream(self, blocks: Iterator[Block], pool: Any, keep_scores: bool) -> Answer:
        """One pass of a pointwise rule: score a block, keep the best n so far."""
        assert isinstance(self.rule, Pointwise)
        best = StreamingTopK(self.n)
        kept: list[NDArray[np.float64]] = []
        count = 0
        for block in blocks:
            with self.clock.phase("score"), full_precision(self.clock.device):
                scores = self.rule.score(block, self.reference, self.draws)
                check_scores(self.rule, scores, block)
            with self.clock.phase("select"):
                count += len(block)
                if keep_scores:
                    kept.append(scores.double().cpu().numpy())
                positions = positions_of(block, scores.device)
                # An embedding in memory can be asked later for the rows that were picked.
                carried = {} if isinstance(pool, Embedding) else contents(block)
                if len(self.excluded):
                    taken = torch.from_numpy(self.excluded).to(positions.device)
                    free = (~torch.isin(positions, taken)).nonzero().flatten()
                    positions, scores = positions[free], scores[free]
                    carried = sources.rows_of(carried, free)
                best.push(positions, scores, carried)
        check_room(self.n, count, self.excluded)
        with self.clock.phase("select"):
            positions, scores, carried = best.result()
            where = positions.cpu().numpy()
            rows = pool[where] if isinstance(pool, Embedding) else None
            block = Block(where, **(carried if rows is None else contents(rows)))
            pool_scores = np.concatenate(kept) if keep_scores else None
        return Answer(block, scores.double().cpu().numpy(), pool_scores)

    def gather(self, blocks: Iterator[Block]) -> Answer:
        """The whole pool's embedding, then n points together by a batch rule."""
        assert isinstance(self.rule, Batch)
        parts = list(blocks)
        check_room(self.n, sum(map(len, parts)), self.excluded)
        with self.clock.phase("forward"):
            pool = concatenated(parts)
            del parts
        with self.clock.phase("select"):
            free = self.free(pool)
            with full_precision(self.clock.device):
                picks = self.rule.pick(free, self.n, self.reference, self.draws)
            return self.taken(free, picks)

    def free(self, pool: Embedding) -> Block:
        """The points that may be picked."""
        positions: Any = range(len(pool))
        if len(self.excluded):
            positions = np.setdiff1d(np.arange(len(pool)), self.excluded)
            pool = pool[positions]
        return Block(positions, pool.logits, pool.features)

    def taken(self, free: Block, picks: Picks) -> Answer:
        check_picks(self.rule, picks, self.n, len(free))
        rows = torch.from_numpy(picks.rows)
        where = np.asarray(free.positions)[picks.rows]
        return Answer(Block(where, **sources.rows_of(contents(free), rows)), picks.scores)
