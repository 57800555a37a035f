"""`select`: model + labelled set + pool → the n points to label next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from askance import strategies
from askance.embedding import Block, Embedding, concatenated, sources
from askance.embedding.forward import check_batch_size
from askance.embedding.guard import full_precision
from askance.errors import InputError
from askance.picking import StreamingTopK
from askance.query.checks import (
    check_count,
    check_picks,
    check_room,
    check_scores,
    excluded_indices,
)
from askance.query.clock import Clock, progress_bar
from askance.query.inputs import (
    checked,
    contents,
    evaluation_for,
    is_stream,
    labeled_set,
    pool_blocks,
    positions_of,
)
from askance.query.selection import Selection, explainer
from askance.seeding import Draws
from askance.strategies import Batch, Pointwise, Strategy


def select(
    model: nn.Module | None,
    labeled: Any,
    pool: Any,
    n: int,
    *,
    strategy: str | Strategy = "grad",
    head: str | None = None,
    seed: int | Draws = 0,
    exclude: Any = None,
    batch_size: int = 256,
    device: torch.device | str | None = None,
    keep_scores: bool = False,
    progress: bool = False,
) -> Selection:
    """The n pool points to label next.

    Args:
        model: any `nn.Module` with a linear head; it comes back as it was. None where pool and
            labelled set are given as `Embedding`, or the rule needs no model.
        labeled: (X, y), a Dataset or DataLoader of (x, y), or (Embedding, y); None where the rule
            needs no labelled set.
        pool: X, a Dataset or DataLoader of x or (x, ignored), an `Embedding`, or an iterator of
            `Embedding` blocks. Whatever comes with an x is dropped, never read.
        n: how many points.
        strategy: a rule's name (`askance.strategies.names()`), or an instance with its options.
        head: the name of the model's last linear layer; found and verified when None.
        seed: names every random draw; the same seed gives the same picks. `Draws(seed, round)` where
            the rounds of a run should draw apart.
        exclude: pool indices never to be picked.
        batch_size: rows of a forward pass (a DataLoader brings its own).
        device: where to compute; the model's own device when None.
        keep_scores: keep every point's score in `Selection.pool_scores` (pointwise rules).
        progress: show a progress bar.

    Example:
        >>> import askance, torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        >>> X, y = torch.randn(12, 4), torch.randint(3, (12,))
        >>> picks = askance.select(model, (X, y), torch.randn(50, 4), 5)
        >>> len(picks.indices)
        5
    """
    rule = strategies.get(strategy) if isinstance(strategy, str) else strategy
    if not isinstance(rule, (Pointwise, Batch)):
        raise InputError(f"strategy must be a name or a Strategy instance, got {strategy!r}")
    check_count(n)
    check_batch_size(batch_size)
    draws = seed if isinstance(seed, Draws) else Draws(seed)
    excluded = excluded_indices(exclude)
    known = None if is_stream(pool) else sources.size(pool)
    if known is not None:
        check_room(n, known, excluded)

    if device is not None and isinstance(pool, Embedding):
        pool = pool.to(device)

    clock = Clock()
    with ExitStack() as stack:
        evaluation = evaluation_for(rule, model, labeled, pool, head, device, stack)
        if evaluation is not None:
            clock.device = evaluation.device
        elif isinstance(pool, Embedding):
            clock.device = pool.device
        with clock.phase("labeled"):
            seen = labeled_set(rule, labeled, evaluation, batch_size, device, draws)
            with full_precision(clock.device):
                reference = rule.prepare(seen, evaluation)
        blocks = pool_blocks(rule, pool, evaluation, batch_size, device)
        blocks = checked(clock.timing("forward", blocks), rule, seen)
        if progress:
            blocks = stack.enter_context(progress_bar(blocks, known, rule.name))
        question = _Question(rule, n, reference, draws, excluded, clock)
        if isinstance(rule, Pointwise):
            answer = question.stream(blocks, pool, keep_scores)
        else:
            answer = question.gather(blocks)
        with full_precision(clock.device):
            explain = explainer(rule, answer.rows, answer.scores, reference)
    return Selection(
        indices=np.asarray(answer.rows.positions),
        scores=answer.scores,
        pool_scores=answer.pool_scores,
        timings=clock.seconds,
        strategy=rule,
        explainer=explain,
    )


@dataclass(frozen=True, eq=False)
class _Answer:
    """The picked rows, best first, and their scores; every point's score where it was kept."""

    rows: Block
    scores: NDArray[np.float64]
    pool_scores: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class _Question:
    """All that is asked of the pool's blocks."""

    rule: Strategy
    n: int
    reference: Any
    draws: Draws
    excluded: NDArray[np.int64]
    clock: Clock

    def stream(self, blocks: Iterator[Block], pool: Any, keep_scores: bool) -> _Answer:
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
        return _Answer(block, scores.double().cpu().numpy(), pool_scores)

    def gather(self, blocks: Iterator[Block]) -> _Answer:
        """The whole pool's embedding, then n points together by a batch rule."""
        assert isinstance(self.rule, Batch)
        parts = list(blocks)
        count = sum(map(len, parts))
        check_room(self.n, count, self.excluded)
        with self.clock.phase("forward"):
            pool = concatenated(parts)
            del parts
        with self.clock.phase("select"):
            positions: Any = range(count)
            if len(self.excluded):
                positions = np.setdiff1d(np.arange(count), self.excluded)
                pool = pool[positions]
            whole = Block(positions, pool.logits, pool.features)
            with full_precision(self.clock.device):
                picks = self.rule.pick(whole, self.n, self.reference, self.draws)
            check_picks(self.rule, picks, self.n, len(positions))
            where = np.asarray(positions)[picks.rows]
            return _Answer(Block(where, **contents(pool[picks.rows])), picks.scores)
