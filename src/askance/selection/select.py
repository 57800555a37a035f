"""`select`: model + labelled set + pool → the n points to label next."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from askance._checks import check_whole
from askance.embedding import Embedding, concatenated, sources
from askance.embedding.committee import Committee
from askance.embedding.device import scoring_device, usable
from askance.embedding.guard import full_precision
from askance.embedding.items import check_labels
from askance.errors import InputError
from askance.picking.eligible import LimitedRows
from askance.seeding import Draws
from askance.selection.classes import class_names, named_blocks, numbered, without_targets
from askance.selection.clock import Clock, progress_bar
from askance.selection.constraints import Constraints
from askance.selection.default import rule_of
from askance.selection.excluded import Excluded
from askance.selection.inputs import (
    as_features,
    checked,
    evaluation_for,
    is_stream,
    joined_for,
    labeled_set,
    pool_blocks,
)
from askance.selection.overlap import Overlap
from askance.selection.probabilities import GivesProbabilities, is_estimator, predicted
from askance.selection.scan import (
    best_rows,
    finish_stages,
    pick_together,
    scored,
    staged_rows,
)
from askance.selection.selection import ReadCounts, Selection
from askance.selection.tables import picked_items, without_frames
from askance.strategies import Batch, Pointwise, Strategy, TwoStage

if TYPE_CHECKING:
    from askance.encoders import Encoder

log = logging.getLogger(__name__)


def select(
    model: nn.Module | Committee | GivesProbabilities | str | Encoder | None,
    labeled: Any,
    pool: Any,
    n: int,
    *,
    strategy: str | Strategy | None = None,
    head: str | None = None,
    seed: int | Draws = 0,
    exclude: Any = None,
    classes: Sequence[str] | None = None,
    groups: Any = None,
    at_most: int | Mapping[Any, int] | None = None,
    at_least: int | Mapping[Any, int] | None = None,
    costs: Any = None,
    budget: float | None = None,
    max_similarity: float | None = None,
    batch_size: int = 256,
    device: torch.device | str | None = None,
    keep_scores: bool = False,
    progress: bool = False,
) -> Selection:
    """The n pool points to label next.

    Args:
        model: any `nn.Module`; it comes back as it was. Rules that need features or gradients want a
            linear head on it, the others (`entropy`, `margin`, `least-confidence`) do not. For those,
            also a fitted classifier with `predict_proba`, as scikit-learn's, or several models as
            `askance.committee(...)`. An encoder, or its name (`askance.encoders`): a regression on its
            features is the model. A `transformers.Trainer`: its model and its collator. None where
            pool and labelled set are given as `Embedding`, or the rule needs no model; without a
            labelled set the pool may then also be an array of features, (N, D).
        labeled: (X, y), a Dataset or DataLoader of (x, y), a frame with a column "label", or
            (Embedding, y); None where there is
            none, or the rule needs none.
        pool: X, a Dataset or DataLoader of x or (x, ignored), an `Embedding`, or an iterator of
            `Embedding` blocks. Whatever comes with an x is dropped, never read. For a model with
            `predict_proba`, rows as it takes them: an array, a DataFrame, a sparse matrix, a list.
            Frames and series of pandas and Polars, and `datasets.Dataset`, are taken by every model:
            columns of numbers by a network, the one column of texts or images by an encoder.
        n: how many points.
        strategy: a rule's name (`askance.strategies.names()`), or an instance with its options. When
            None, the one that our experiments chose of those that can be used here: with features,
            logits and labels; without a label, "maxherding"; with probabilities alone; or, for an
            iterator and for more than 1,000,000 rows, one that streams. `Selection.strategy` is what
            was taken, and `Selection.chosen` says why; `askance.advise()` says it beforehand.
        head: the name of the model's last linear layer; found and verified when None.
        seed: names every random draw; the same seed gives the same picks. `Draws(seed, round)` where
            the rounds of a run should draw apart.
        exclude: what is not to be picked: pool indices, a mask of the pool, or identifiers where the
            pool has them.
        classes: names of the classes, in the order of the model's outputs. Labels may then be names,
            and groups and explanations have them. A classifier with `classes_`, and an encoder with
            names as labels, need not be told.
        groups: what `at_most` and `at_least` count: "predicted" for the class that the model predicts,
            or one value for each row of the pool.
        at_most: the most picks of each group: a number, or a mapping from groups to numbers.
        at_least: the fewest picks of each group, likewise; a number asks for no more than a group has.
        costs: what labelling each row of the pool costs.
        budget: what the picks together may cost; there may then be fewer than n. `Selection.notes`
            says what limits came to.
        max_similarity: no two picks have features whose cosine reaches this; 1 rules out copies alone.
        batch_size: rows of a forward pass (a DataLoader brings its own), or of a call of
            `predict_proba`.
        device: where to compute; the model's own device when None.
        keep_scores: keep every point's score in `Selection.pool_scores`. A batch rule has none, and
            refuses.
        progress: show a progress bar.

    Example:
        >>> import askance, torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        >>> X, y = torch.randn(12, 4), torch.randint(3, (12,))
        >>> picks = askance.select(model, (X, y), torch.randn(50, 4), 5)
        >>> len(picks.indices)
        5

        A first batch, with no label and no model, from features alone:

        >>> first = askance.select(None, None, torch.randn(50, 4), 5)
        >>> first.strategy.name
        'maxherding'
    """
    start = time.perf_counter()
    rule, chosen = rule_of(strategy, model, labeled, pool)
    check_whole("n", n, 1)
    check_whole("batch_size", batch_size, 1)
    if keep_scores and isinstance(rule, Batch):
        raise InputError(
            f"keep_scores=True keeps each point's own score, and {rule.name} picks points together; "
            f"leave it out (Selection.scores has the scores of the picks), or name a pointwise rule"
        )
    given, told = pool, model if isinstance(model, str) else type(model).__name__
    model, labeled, pool, own = without_frames(model, labeled, pool)
    if isinstance(labeled, tuple) and len(labeled) == 2:
        check_labels(labeled[1])
    labeled = without_targets(rule, labeled)
    names = class_names(model, labeled, own if classes is None else classes)
    limited_by = Constraints.of(
        groups=groups, at_most=at_most, at_least=at_least,
        costs=costs, budget=budget, max_similarity=max_similarity,
    )  # fmt: skip
    needs = rule.needs
    if limited_by is not None:
        limited_by = replace(limited_by, classes=names)
        limited_by.check_rule(rule)
        needs |= limited_by.needs
    device = None if device is None else usable(device)
    draws = seed if isinstance(seed, Draws) else Draws(seed)
    excluded = Excluded.of(exclude)
    overlap = Overlap(labeled, pool, excluded)
    size: int | None = None
    if not is_estimator(model):
        labeled = numbered(labeled, names)
    if is_estimator(model):
        if head is not None:
            raise InputError(f"head= names a layer of a module; a {type(model).__name__} has none")
        labeled, pool, size = predicted(rule, model, labeled, pool, batch_size, needs)
        model = None
    elif model is not None and not isinstance(model, (nn.Module, Committee)):
        # Imported here, since reading images and fitting take libraries that nothing else needs.
        from askance.selection.encoded import embedded_by

        if head is not None:
            raise InputError("the head of a regression on an encoder's features is found by itself")
        labeled, pool = embedded_by(model, labeled, pool, device, rule, needs, names, progress)
        if not overlap.at_hand:
            overlap = Overlap(labeled, pool, excluded)
        model = None
    elif model is None and labeled is None:
        pool = as_features(rule, pool)
    if not is_stream(pool):
        size = sources.size(pool)
    if size is not None:
        excluded.check_room(n, size)
        if limited_by is not None:
            limited_by.check_size(size)
    if isinstance(pool, Embedding):
        place = scoring_device(pool.device if device is None else device)
        pool = pool if place == pool.device else pool.to(place)

    clock = Clock()
    every: list[NDArray[np.float64]] | None = [] if keep_scores else None
    with ExitStack() as stack:
        evaluation = evaluation_for(rule, model, labeled, pool, head, device, stack, needs)
        if evaluation is not None:
            clock.device = scoring_device(evaluation.device)
        elif isinstance(pool, Embedding):
            clock.device = pool.device
        with clock.phase("labeled"):
            labeled_rows = labeled_set(
                rule, labeled, evaluation, batch_size, device, draws, overlap.watch_labeled
            )
            with full_precision(clock.device):
                reference = rule.prepare(labeled_rows, evaluation)
        log.debug(
            "%s needs %s; model %s on %s, head %s, batches of %d",
            rule.name, ", ".join(sorted(needs)) or "nothing", told, clock.device,
            None if evaluation is None else evaluation.head, batch_size,
        )  # fmt: skip
        blocks = pool_blocks(rule, pool, evaluation, batch_size, device, needs, overlap.watch_pool)
        if progress:
            blocks = stack.enter_context(progress_bar(blocks, size, rule.name))
        blocks = clock.timing("forward", joined_for(clock.device, blocks))
        blocks = checked(blocks, rule, None if labeled_rows is None else labeled_rows.block, needs)
        blocks = named_blocks(blocks, names)
        limits: LimitedRows | None = None
        if isinstance(rule, Pointwise):
            pairs = scored(rule, blocks, reference, draws, clock)
            scan = best_rows(_kept(pairs, every), n, excluded, clock, limited_by)
            top, rows, left_out = scan.top, scan.rows, scan.excluded
            excluded.check_found(n, rows, left_out, ids=scan.ids)
            if limited_by is not None:
                limited_by.check_size(rows)
                with clock.phase("select"):
                    top, limits = limited_by.best_of(top.rows, top.scores, n)
        elif isinstance(rule, TwoStage) and limited_by is None:
            scorer, kept = rule.shortlisted(n)
            pairs = scored(scorer, blocks, reference, draws, clock)
            staged, scan = staged_rows(pairs, kept, rule.sampled, draws, excluded, clock)
            rows, left_out = scan.rows, scan.excluded
            excluded.check_found(n, rows, left_out, ids=scan.ids)
            top = finish_stages(rule, staged, n, reference, draws, clock)
        else:
            parts = list(blocks)
            rows = sum(map(len, parts))
            excluded.check_room(n, rows)
            with clock.phase("forward"):
                whole = concatenated(parts)
                del parts
            with clock.phase("select"):
                free = excluded.free_rows(whole)
                left_out = rows - len(free)
                excluded.check_found(n, rows, left_out, ids=whole.ids is not None)
                if limited_by is not None:
                    limited_by.check_size(rows)
                    limits = limited_by.limits(free, n)
            top = pick_together(rule, free, n, reference, draws, clock, limits)
        # Inside, since explaining may need the model.
        already = overlap.already_labeled()
        notes = () if limits is None else limits.notes()
        selection = Selection.of(
            rule, top, reference, clock.seconds,
            read=ReadCounts(rows, left_out),
            notes=(*notes, *overlap.notes(already, top)), already_labeled=already, classes=names,
            chosen=chosen,
        )  # fmt: skip
    pool_scores = np.concatenate(every) if every else None
    items = picked_items(given, selection.indices)
    seconds = time.perf_counter() - start
    log.info(
        "%s picked %d of %d rows in %.2f s%s",
        rule.name, len(selection), selection.read.rows, seconds,
        f", {selection.read.excluded} of them excluded" if selection.read.excluded else "",
    )  # fmt: skip
    log.debug("%s: %s", rule, ", ".join(f"{k} {s:.3f} s" for k, s in clock.seconds.items()))
    return replace(selection, pool_scores=pool_scores, items=items, seconds=seconds)


def _kept(
    pairs: Iterator[tuple[Embedding, torch.Tensor]], every: list[NDArray[np.float64]] | None
) -> Iterator[tuple[Embedding, torch.Tensor]]:
    """The same blocks and scores; the scores are put aside where they are to be kept."""
    for block, scores in pairs:
        if every is not None:
            every.append(scores.double().cpu().numpy())
        yield block, scores
