"""`select`: model + labelled set + pool → the n points to label next."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import nn

from askance import strategies
from askance.embedding import Embedding, sources
from askance.embedding.device import usable
from askance.embedding.forward import check_batch_size
from askance.embedding.guard import full_precision
from askance.seeding import Draws
from askance.selection.checks import (
    check_count,
    check_room,
    excluded_indices,
)
from askance.selection.clock import Clock, progress_bar
from askance.selection.inputs import (
    checked,
    evaluation_for,
    is_stream,
    joined_for,
    labeled_set,
    pool_blocks,
)
from askance.selection.question import Question
from askance.selection.selection import Selection, explainer
from askance.strategies import Pointwise, Strategy


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
        strategy: a rule's name (`askance.strategies.names()`), or an instance with its options. The
            paper's own where none is given; "powergrad", its sampled form, did better in most of our
            experiments (docs/findings.md).
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
    rule = strategies.of(strategy)
    check_count(n)
    check_batch_size(batch_size)
    device = None if device is None else usable(device)
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
        if progress:
            blocks = stack.enter_context(progress_bar(blocks, known, rule.name))
        blocks = clock.timing("forward", joined_for(clock.device, blocks))
        blocks = checked(blocks, rule, seen)
        question = Question(rule, n, reference, draws, excluded, clock)
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
