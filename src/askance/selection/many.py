"""`select_many`: one rule in several pools at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from askance import strategies
from askance.embedding import Embedding, concatenated
from askance.embedding.guard import full_precision
from askance.seeding import Draws
from askance.selection.checks import check_room, excluded_indices
from askance.selection.clock import Clock
from askance.selection.inputs import checked, labeled_set, no_probabilities, whole
from askance.selection.question import Question
from askance.selection.select import select
from askance.selection.selection import Selection, explainer
from askance.strategies import Batch, Strategy


def select_many(
    labeled: Sequence[tuple[Embedding, Any]],
    pools: Sequence[Embedding],
    n: int,
    *,
    strategy: str | Strategy,
    seeds: Sequence[int | Draws],
    exclude: Sequence[Any],
) -> list[Selection]:
    """`select` by one rule in several pools, given as embeddings: one Selection each.

    On a GPU a batch rule picks in all of them at once; the picks are those of `select`.
    """
    rule = strategies.of(strategy)
    each = list(zip(labeled, pools, seeds, exclude, strict=True))
    if not isinstance(rule, Batch) or len({(len(p), p.device) for p in pools}) > 1 or len(each) < 2:
        return [
            select(None, seen, pool, n, strategy=rule, seed=seed, exclude=out)
            for seen, pool, seed, out in each
        ]
    clock = Clock()
    clock.device = pools[0].device
    questions, blocks = [], []
    for seen, pool, seed, out in each:
        draws = seed if isinstance(seed, Draws) else Draws(seed)
        with clock.phase("labeled"), full_precision(clock.device):
            known = labeled_set(rule, seen, None, len(pool), None, draws)
            reference = rule.prepare(known, None)
        check_room(n, len(pool), excluded_indices(out))
        question = Question(rule, n, reference, draws, excluded_indices(out), clock)
        with clock.phase("forward"):
            parts = no_probabilities(rule, iter([whole(pool)]))
            seen_pool = concatenated(list(checked(parts, rule, known)))
        with clock.phase("select"):
            blocks.append(question.free(seen_pool))
        questions.append(question)
    with clock.phase("select"), full_precision(clock.device):
        picked = rule.pick_many(
            blocks, n, [q.reference for q in questions], [q.draws for q in questions]
        )
    shares = {phase: seconds / len(each) for phase, seconds in clock.seconds.items()}
    selections = []
    for question, block, picks in zip(questions, blocks, picked, strict=True):
        answer = question.taken(block, picks)
        explain = explainer(rule, answer.rows, answer.scores, question.reference)
        selections.append(
            Selection(
                indices=np.asarray(answer.rows.positions),
                scores=answer.scores,
                pool_scores=None,
                timings=shares,
                strategy=rule,
                explainer=explain,
            )
        )
    return selections
