"""`select_from`: a pool that no memory holds → the points to label next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from torch import nn

from askance import strategies
from askance.embedding.forward import check_batch_size
from askance.errors import InputError, ShardError, UnknownError
from askance.pools.engine import Engine, LocalEngine
from askance.pools.leaders import Leaders, merge, nobody
from askance.pools.recipe import Recipe, as_recipe
from askance.pools.reference import reference_of
from askance.pools.result import PoolSelection
from askance.pools.scorer import OnError, Reader, ShardScorer
from askance.pools.source import Shard, Source, rows_in
from askance.query.checks import check_count
from askance.seeding import Draws
from askance.strategies import Pointwise, Strategy

Watch = Callable[[Shard, Leaders], None]


def select_from(
    source: Source,
    n: int,
    *,
    labeled: Source | None = None,
    model: nn.Module | Recipe | None = None,
    strategy: str | Strategy = "grad",
    head: str | None = None,
    seed: int | Draws = 0,
    exclude: Iterable[str] = (),
    batch_size: int | None = None,
    device: str | None = None,
    engine: Engine | None = None,
    on_error: OnError = "raise",
    watch: Watch | None = None,
) -> PoolSelection:
    """The n rows of a source to label next, in one pass, shard by shard.

    Args:
        source: the pool.
        n: how many rows.
        labeled: the labelled set, where the rule needs it; a source with labels.
        model: a module, or how to come by one; None where both sources hold embeddings.
        strategy: a rule's name, or an instance with its options.
        head: the model's last linear layer; found when None.
        seed: names every random draw.
        exclude: identifiers that are not to be picked.
        batch_size: rows of a forward pass, or of a block of stored embeddings.
        device: where to compute.
        engine: who works on the shards; this machine's cores when None.
        on_error: "raise" at what cannot be read, or "skip" it, and count it.
        watch: told of every shard that is done.
    """
    rule = strategies.get(strategy) if isinstance(strategy, str) else strategy
    check_count(n)
    if batch_size is not None:
        check_batch_size(batch_size)
    if on_error not in ("raise", "skip"):
        raise UnknownError.of("on_error", on_error, ["raise", "skip"])
    start = time.perf_counter()
    draws = seed if isinstance(seed, Draws) else Draws(seed)
    engine = engine or LocalEngine()
    recipe = as_recipe(model)
    reader = Reader(source, recipe, head, device, batch_size, on_error)
    seen = None if labeled is None else Reader(labeled, recipe, head, device, batch_size)
    if not isinstance(rule, Pointwise):
        raise InputError("batch rules: to come")
    reference = reference_of(rule, seen, engine, draws)
    scorer = ShardScorer(reader, rule, reference, n, draws, frozenset(exclude))
    if on_error == "raise":
        for shard in source.shards:
            if shard.fault is not None:
                raise ShardError(shard.fault)
    best = nobody()
    for shard, leaders in engine.map(scorer, source.shards):
        best = merge([best, leaders], n)
        if watch is not None:
            watch(shard, leaders)
    return PoolSelection(best, rule, reference, engine.name, time.perf_counter() - start)


__all__ = ["Path", "rows_in", "select_from"]
