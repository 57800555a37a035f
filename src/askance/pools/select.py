"""`select_from`: a pool that no memory holds → the points to label next."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from torch import nn

from askance import strategies
from askance.embedding.forward import check_batch_size
from askance.errors import InputError, ShardError, UnknownError
from askance.pools.duplicates import SeenIds
from askance.pools.engine import Engine, LocalEngine
from askance.pools.leaders import Leaders
from askance.pools.passes import Passage, Watch
from askance.pools.plan import CACHE_LIMIT, Plan, question
from askance.pools.recipe import Recipe, as_recipe
from askance.pools.reference import reference_of
from askance.pools.result import PoolSelection
from askance.pools.resume import Ledger
from askance.pools.scorer import OnError, Reader
from askance.pools.source import Source, rows_in
from askance.seeding import Draws
from askance.selection.checks import check_count
from askance.strategies import Strategy


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
    shortlist: int | None = None,
    cache_limit: int = CACHE_LIMIT,
    check_ids: bool = True,
    resume: Path | None = None,
    restart: bool = False,
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
        shortlist: let a batch rule pick from this many rows, the best by a pointwise rule.
        cache_limit: the most bytes of disk a batch rule's cache of the pool's embedding may take.
        check_ids: whether identifiers that may occur twice are compared.
        resume: the file that what is done is kept in; `finished()` of the selection removes it.
        restart: begin anew, whatever `resume` holds.
        watch: told of every shard that is done.

    Example:
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> from askance.pools import open_source, select_from
        >>> folder = Path(tempfile.mkdtemp())
        >>> np.save(folder / "logits.npy", np.random.default_rng(0).normal(size=(100, 3)))
        >>> picks = select_from(open_source(str(folder)), 5, strategy="entropy")
        >>> len(picks.ids), picks.leaders.rows
        (5, 100)
    """
    start = time.perf_counter()
    rule = strategies.of(strategy)
    check_count(n)
    if batch_size is not None:
        check_batch_size(batch_size)
    if on_error not in ("raise", "skip"):
        raise UnknownError.of("on_error", on_error, ["raise", "skip"])
    draws = seed if isinstance(seed, Draws) else Draws(seed)
    engine = engine or LocalEngine()
    recipe = as_recipe(model)
    reader = Reader(source, recipe, head, device, batch_size, on_error)
    excluded = frozenset(map(str, exclude))
    plan = Plan.of(rule, n, reader, excluded, draws, shortlist, cache_limit)
    _check_listing(source, n, on_error)
    with ExitStack() as stack:
        seen = None
        if check_ids and not source.unique_ids:
            seen = stack.enter_context(SeenIds())
        ledger = None
        if resume is not None:
            asked = question(plan, labeled, hashed=seen is not None)
            ledger = stack.enter_context(Ledger(resume, asked, seen, restart=restart))
        known = None if labeled is None else Reader(labeled, recipe, head, device, batch_size)
        reference = reference_of(rule, known, engine, draws)
        passage = Passage(source, engine, ledger, seen, watch)
        picked, how = plan.run(passage, reference, resume)
    _check_enough(picked, n)
    seconds = time.perf_counter() - start
    return PoolSelection(picked, rule, reference, engine.name, seconds, how, resume)


def _check_listing(source: Source, n: int, on_error: OnError) -> None:
    """Refuse what the listing shows already to be no answer."""
    faults = [shard.fault for shard in source.shards if shard.fault is not None]
    if faults and on_error == "raise":
        raise ShardError(faults[0] + _more(len(faults) - 1))
    count = rows_in(source.shards)
    if count is not None and n > count:
        raise InputError(f"n = {n} points were asked for, the pool has {count}")


def _check_enough(picked: Leaders, n: int) -> None:
    if len(picked) == n:
        return
    lost = sum(skip.rows or 0 for skip in picked.skipped)
    raise InputError(
        f"n = {n} points were asked for, and {len(picked)} are there to be picked: {picked.rows} rows "
        f"were read, {picked.excluded} of them excluded, {lost} skipped"
    )


def _more(count: int) -> str:
    return f" (and {count} more shards cannot be read)" if count else ""
