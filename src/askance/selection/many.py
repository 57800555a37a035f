"""`select_many`: one rule in several pools at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from askance import strategies
from askance.embedding import Embedding
from askance.embedding.guard import full_precision
from askance.seeding import Draws
from askance.selection.clock import Clock
from askance.selection.excluded import Excluded
from askance.selection.inputs import checked, labeled_set, pool_blocks
from askance.selection.scan import picked_rows
from askance.selection.select import select
from askance.selection.selection import ReadCounts, Selection
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
    references, every_draws, blocks = [], [], []
    for seen, pool, seed, out in each:
        draws = seed if isinstance(seed, Draws) else Draws(seed)
        excluded = Excluded.of(out)
        with clock.phase("labeled"), full_precision(clock.device):
            labeled_rows = labeled_set(rule, seen, None, len(pool), None, draws)
            references.append(rule.prepare(labeled_rows, None))
        excluded.check_room(n, len(pool))
        with clock.phase("forward"):
            parts = pool_blocks(rule, pool, None, len(pool), None)
            (whole,) = checked(parts, rule, None if labeled_rows is None else labeled_rows.block)
        with clock.phase("select"):
            blocks.append(excluded.free_rows(whole))
        left_out = len(whole) - len(blocks[-1])
        excluded.check_found(n, len(whole), left_out, ids=whole.ids is not None)
        every_draws.append(draws)
    with clock.phase("select"), full_precision(clock.device):
        picked = rule.pick_many(blocks, n, references, every_draws)
    shares = {phase: seconds / len(each) for phase, seconds in clock.seconds.items()}
    seconds = sum(shares.values())
    return [
        replace(
            Selection.of(
                rule,
                picked_rows(rule, block, picks, n),
                reference,
                shares,
                read=ReadCounts(len(pool), len(pool) - len(block)),
            ),
            seconds=seconds,
        )
        for pool, block, picks, reference in zip(pools, blocks, picked, references, strict=True)
    ]
