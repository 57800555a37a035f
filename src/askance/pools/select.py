"""`select_from`: a pool that no memory holds → the points to label next."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from askance import strategies
from askance._checks import check_whole
from askance.embedding import Embedding, positions_array, texts
from askance.encoders import Encoder
from askance.encoders.linear import ONE_CLASS
from askance.errors import InputError, ShardError, StoreError, UnknownError
from askance.picking import TopRows
from askance.pools.cache import EmbeddingCache, ids_at, remove_cache
from askance.pools.constraints import ColumnConstraints
from askance.pools.default import default_for
from askance.pools.duplicates import IdHashes
from askance.pools.encoded import FeatureSource, LinearSource, encoder_of
from askance.pools.engine import Engine, HoldingEngine, LocalEngine
from askance.pools.joined import JoinedSource, with_class_names
from askance.pools.labeled import LabeledItems
from askance.pools.model import ModelSource, as_model_source
from askance.pools.query import PoolQuery
from askance.pools.reader import STORED_ROWS, OnError, Reader, embedded_parts
from askance.pools.reference import reference_of
from askance.pools.regression import Encoding, check_labeled, fitted
from askance.pools.resume import PassLog, cache_path
from askance.pools.scan import PoolScan, Watch
from askance.pools.source import Source, rows_in
from askance.seeding import Draws
from askance.selection.classes import check_width
from askance.selection.clock import Clock
from askance.selection.contents import copies
from askance.selection.excluded import Excluded
from askance.selection.overlap import copies_in_words
from askance.selection.scan import finish_stages, pick_together, scored
from askance.selection.selection import ReadCounts, Selection
from askance.strategies import Batch, Pointwise, ShardedBatch, Strategy, TwoStage

CACHE_LIMIT = 8 << 30
_NAMED = 5

Answer = tuple[TopRows, ReadCounts, str, tuple[str, ...]]
"""The picked rows, what came of reading the pool, and in words what a batch rule picked from and what
limits came to."""


def select_from(
    source: Source,
    n: int,
    *,
    labeled: Source | None = None,
    model: nn.Module | ModelSource | Encoder | str | None = None,
    strategy: str | Strategy | None = None,
    head: str | None = None,
    seed: int | Draws = 0,
    exclude: Iterable[str] = (),
    classes: Sequence[str] | None = None,
    constraints: ColumnConstraints | None = None,
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
    encoding: Encoding | None = None,
) -> Selection:
    """The n rows of a source to label next, in one pass, shard by shard.

    With an encoder for a model there is a pass before it, which encodes what is not in the cache of
    features: a regression on the labelled items' features is the model (`askance.encoders`).

    Args:
        source: the pool.
        n: how many rows.
        labeled: the labelled set, where the rule or the regression needs it; a source with labels.
        model: a module, or how to come by one; an encoder, or its name, of texts or images; None where
            both sources hold embeddings.
        strategy: a rule's name, or an instance with its options. When None, the one that our
            experiments chose of those that stream; without a labelled set, "maxherding".
        head: the model's last linear layer; found when None.
        seed: random seed; `Draws(seed, round)` where the rounds of a run should draw apart.
        exclude: identifiers that are not to be picked. Labels that are joined to the pool by identifier
            exclude theirs.
        classes: names of the classes, in the order of the model's outputs, of which there must be as
            many; the names in the labelled set, in alphabetical order, when None.
        constraints: quotas, minimums, a budget, …; groups and costs are columns of the pool.
        batch_size: rows of a forward pass, or of a block of stored embeddings.
        device: where to compute.
        engine: who works on the shards; this machine's cores when None.
        on_error: "raise" at what cannot be read, or "skip" it, and count it.
        shortlist: let a batch rule pick from this many rows, the best by a pointwise rule.
        cache_limit: the most bytes of disk a batch rule's cache of the pool's embedding may take.
        check_ids: whether identifiers that may occur twice are compared.
        resume: the file that what is done is kept in; a batch rule's cache is beside it. Remove both
            with `pools.resume.forget` once the picks are safe.
        restart: begin anew, whatever `resume` holds.
        watch: called with every shard that is done, and its counts.
        encoding: called with (items encoded or found in the cache, all items) as an encoder works.

    Example:
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> from askance.pools import open_source, select_from
        >>> folder = Path(tempfile.mkdtemp())
        >>> np.save(folder / "logits.npy", np.random.default_rng(0).normal(size=(100, 3)))
        >>> picks = select_from(open_source(str(folder)), 5, strategy="entropy")
        >>> len(picks.ids), picks.read.rows
        (5, 100)
    """
    start = time.perf_counter()
    chosen = ""
    if strategy is None:
        limited = constraints is not None
        taken = default_for(source, labeled, model, shortlist, limited=limited)
        strategy, chosen = taken.name, taken.why
    rule = strategies.of(strategy)
    check_whole("n", n, 1)
    check_whole("batch_size", batch_size, 1, or_none=True)
    if on_error not in ("raise", "skip"):
        raise UnknownError.of("on_error", on_error, ["raise", "skip"])
    draws = seed if isinstance(seed, Draws) else Draws(seed)
    engine = engine or LocalEngine()
    left_out = frozenset(map(str, exclude))
    if isinstance(labeled, JoinedSource):
        left_out |= frozenset(labeled.ids)
    excluded = Excluded(np.empty(0, dtype=np.int64), left_out)
    labeled, names = with_class_names(labeled, classes)
    clock = Clock()
    with ExitStack() as stack:
        by = None
        warned: tuple[str, ...] = ()
        if isinstance(model, (str, Encoder)):
            check_labeled(rule, labeled)
            by = encoder_of(model, batch_size, device, engine, head, stack)
            source = FeatureSource.of(source, by)
            labeled = None if labeled is None else FeatureSource.of(labeled, by)
            model = batch_size = None
        made = as_model_source(model)
        reader = Reader(source, made, head, device, batch_size, on_error)
        answered = None if labeled is None else Reader(labeled, made, head, device, batch_size)
        _check_listing(source, n, on_error)
        limited_by = None if constraints is None else constraints.read(source, on_error, names)
        query = PoolQuery(rule, n, reader, excluded, draws, shortlist, cache_limit, limited_by)
        hashes = None
        if check_ids and not source.unique_ids:
            hashes = stack.enter_context(IdHashes())
        log = None
        if resume is not None:
            described = query.described(labeled, hashed=hashes is not None)
            log = stack.enter_context(PassLog(resume, described, hashes, restart=restart))
        if by is not None and embedded_parts(rule):
            outputs = max(2, len(names or ()))
            reader, answered = fitted(reader, answered, clock, encoding, outputs)
            query = replace(query, reader=reader)
            assert isinstance(reader.source, LinearSource)
            fit = reader.source.fit
            if fit is not None and fit.is_constant and "logits" in rule.needs:
                warned = (ONE_CLASS,)
        with clock.phase("labeled"):
            reference, like = reference_of(rule, answered, engine, draws)
            if like is not None and like.logits is not None:
                check_width(names, like.logits.shape[1])
            known = query.known_of(answered)
        scan = PoolScan(reader.source, engine, clock, log, hashes, watch)
        if query.streamed is not None:
            top, read, how, notes = _streamed(query, scan, reference, like, known)
        elif (
            isinstance(engine, HoldingEngine)
            and isinstance(rule, ShardedBatch)
            and limited_by is None
        ):
            top, read, how, notes = _held(rule, query, scan, engine, reference, like, known)
        else:
            top, read, how, notes = _cached(query, scan, reference, like, known)
        already, said = _already_labeled(source, top, read)
    logits = top.rows.logits
    if names is not None and logits is not None and logits.shape[1] != len(names):
        told = f"{len(names)} names of classes for {logits.shape[1]} outputs of the model"
        notes = (*notes, f"{told}: the picks have the numbers of classes")
        names = None
    seconds = time.perf_counter() - start
    return Selection.of(
        rule, top, reference, clock.seconds,
        read=read, how=how, notes=(*warned, *notes, *said), already_labeled=already,
        engine=engine.name, seconds=seconds, classes=names, chosen=chosen,
    )  # fmt: skip


def _streamed(
    query: PoolQuery,
    scan: PoolScan,
    reference: Any,
    like: Embedding | None,
    known: LabeledItems | None,
) -> Answer:
    """One pass of a pointwise rule, and a batch rule's picks among the best rows by it."""
    job = replace(query.scoring(reference, like, scan.id_hashes is not None), known=known)
    staged, read = scan.staged_rows(job)
    best, limited_by = staged.shortlist, query.constraints
    # Under limits, those are the rows that n picks may reach.
    _check_enough(len(best) if limited_by is None else read.rows - read.excluded, query.n, read)
    if not isinstance(query.rule, Batch):
        if limited_by is None:
            return best, read, "", ()
        top, limits = limited_by.best_of(best.rows, best.scores, query.n)
        return top, read, "", limits.notes()
    if isinstance(query.rule, TwoStage):
        top = finish_stages(query.rule, staged, query.n, reference, query.draws, scan.clock)
        return top, read, query.shortlist_in_words(), ()
    shortlist = best.rows[np.argsort(best.rows.positions)]
    among = None if limited_by is None else limited_by.limits(shortlist, query.n)
    top = pick_together(query.rule, shortlist, query.n, reference, query.draws, scan.clock, among)
    return top, read, query.shortlist_in_words(), () if among is None else among.notes()


def _cached(
    query: PoolQuery,
    scan: PoolScan,
    reference: Any,
    like: Embedding | None,
    known: LabeledItems | None,
) -> Answer:
    """A rule's picks among all rows, whose embedding is put on disk."""
    count = rows_in(scan.source.shards) or 0
    rule, n, limited_by = query.rule, query.n, query.constraints
    with _cache(scan.log, count, query.cache_limit) as cache:
        job = replace(query.embedding(like, scan.id_hashes is not None), known=known)
        unpickable, read = scan.fill(job, cache)
        how = (
            f"from the embedding of all {count:,} rows, cached on disk in float32 "
            f"({cache.size / 2**20:,.1f} MiB)"
        )
        _check_enough(count - len(unpickable), query.n, read)
        rows = cache.rows(unpickable)
        limits = None if limited_by is None else limited_by.limits(rows, n)
        if isinstance(rule, Batch):
            top = pick_together(rule, rows, n, reference, query.draws, scan.clock, limits)
        else:
            assert isinstance(rule, Pointwise)
            assert limited_by is not None
            blocks = rows.blocks(STORED_ROWS)
            pairs = scored(rule, blocks, reference, query.draws, scan.clock)
            scores = np.concatenate([scores.double().cpu().numpy() for _, scores in pairs])
            top, limits = limited_by.best_of(rows, scores, n)
    notes = () if limits is None else limits.notes()
    return _with_ids(scan.source, top), read, how, notes


def _held(
    rule: ShardedBatch,
    query: PoolQuery,
    scan: PoolScan,
    engine: HoldingEngine,
    reference: Any,
    like: Embedding | None,
    known: LabeledItems | None,
) -> Answer:
    """A batch rule's picks among all rows, which stay with the workers that read them.

    Nothing of it can be resumed.
    """
    with engine.holding() as held:
        job = replace(query.embedding(like, scan.id_hashes is not None), known=known)
        unpickable, read = replace(scan, engine=held, log=None).fill(job, held)
        _check_enough((rows_in(scan.source.shards) or 0) - len(unpickable), query.n, read)
        top = held.pick(rule, query.n, reference, query.draws, unpickable)
    how = f"from the embedding of all {read.rows:,} rows, held by the workers of {held.name}"
    return _with_ids(scan.source, top), read, how, ()


def _already_labeled(
    source: Source, top: TopRows, read: ReadCounts
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The rows of the pool that equal labelled ones; in words those, and copies among the picks."""
    already, twice = np.array(read.labeled, dtype=np.int64), copies(top.rows)
    notes = [copies_in_words(twice, len(top))] if twice else []
    if not len(already):
        return already, tuple(notes)
    picked = int(np.isin(positions_array(top.rows.positions), already).sum())
    some = ", ".join(texts(ids_at(source, already[:_NAMED])))
    more = ", …" if len(already) > _NAMED else ""
    notes.append(
        f"rows of the pool that equal labelled ones: {len(already)}, picked again: {picked}; name "
        f"them as identifiers to exclude ({some}{more})"
    )
    return already, tuple(notes)


def _with_ids(source: Source, top: TopRows) -> TopRows:
    positions = np.asarray(top.rows.positions)
    return replace(top, rows=replace(top.rows, ids=ids_at(source, positions)))


@contextmanager
def _cache(log: PassLog | None, count: int, limit: int) -> Iterator[EmbeddingCache]:
    """A cache that goes with the file of what is done (`forget`), or with this process."""
    if log is None:
        with tempfile.TemporaryDirectory(prefix="askance-") as folder:
            yield EmbeddingCache(Path(folder), count, limit)
        return
    beside = cache_path(log.path)
    if not log.done:  # of a pass that was given up
        remove_cache(beside)
    cache = EmbeddingCache(beside, count, limit)
    if any(result.read.rows for result in log.done.values()) and not cache.size:
        raise StoreError(
            f"{beside}: the embeddings of what is done are gone; begin anew with --restart"
        )
    yield cache


def _check_listing(source: Source, n: int, on_error: OnError) -> None:
    """Refuse what the listing shows already to be no answer."""
    faults = [shard.fault for shard in source.shards if shard.fault is not None]
    if faults and on_error == "raise":
        more = f" (and {len(faults) - 1} more shards cannot be read)" if len(faults) > 1 else ""
        raise ShardError(faults[0] + more)
    count = rows_in(source.shards)
    if count is not None and n > count:
        raise InputError(f"n = {n} points were asked for, the pool has {count}")


def _check_enough(pickable: int, n: int, read: ReadCounts) -> None:
    """Refuse once reading has shown that fewer than n rows are left."""
    if pickable >= n:
        return
    lost = sum(skip.rows or 0 for skip in read.skipped)
    raise InputError(
        f"n = {n} points were asked for, and {pickable} are there to be picked: {read.rows} rows "
        f"were read, {read.excluded} of them excluded, {lost} skipped"
    )
