"""Whatever the caller has, as the rule wants it: the model, the labelled set, the pool in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from askance.embedding import (
    Embedding,
    Evaluation,
    LogitsCheck,
    check_finite,
    check_logits,
    check_range,
    concatenated,
    sources,
)
from askance.embedding.committee import Committee, CommitteeEvaluation
from askance.embedding.device import scoring_device
from askance.errors import InputError, LabelError
from askance.gradients.discrepancy import check_same_widths
from askance.gradients.last_layer import check_outputs
from askance.seeding import Draws
from askance.strategies import Batch, Labeled, Strategy
from askance.strategies.base import Need

# A block of an embedding that is in memory already: large enough to make calls cheap, small enough
# for a CPU's cache, or for a GPU that what scoring it takes beside it is little.
_BLOCK_BYTES = 12 << 20
_CUDA_BLOCK_BYTES = 1 << 30
# Blocks of a forward pass are joined up to this before a GPU scores them.
_JOINED_BYTES = 64 << 20


def as_features(rule: Strategy, pool: Any) -> Any:
    """A pool without a model, for a rule that looks at features alone: a matrix holds just those."""
    if rule.needs != {"features"} or not sources.is_array(pool) or pool.ndim != 2:
        return pool
    matrix = pool if isinstance(pool, torch.Tensor) else sources.as_tensor(pool)
    return Embedding(features=matrix if matrix.is_floating_point() else matrix.double())


def evaluation_for(
    rule: Strategy,
    model: nn.Module | Committee | None,
    labeled: Any,
    pool: Any,
    head: str | None,
    device: Any,
    stack: ExitStack,
    needs: frozenset[Need] | None = None,
) -> Evaluation | None:
    """The model under evaluation, where something has to be run through it.

    `needs` is what must be known of the pool where that is more than the rule needs.
    """
    needs = rule.needs if needs is None else needs
    embedded = isinstance(pool, Embedding) or is_stream(pool)
    if "inputs" in rule.needs and embedded:
        raise InputError(
            f"{rule.name} with these options differentiates the model itself, so it needs "
            f"the pool's inputs, not an Embedding"
        )
    needs_pool = bool(needs & {"logits", "features"}) and not embedded
    has_inputs = (
        labeled is not None and not isinstance(labeled, Embedding) and not is_embedded(labeled)
    )
    needs_labeled = "labeled" in rule.uses and has_inputs
    if not needs_pool and not needs_labeled:
        return None
    if model is None:
        what = "pool" if needs_pool else "labelled set"
        raise InputError(f"a model is needed to embed the {what}; pass one, or pass an Embedding")
    features = bool(needs & {"features", "inputs"})
    if isinstance(model, Committee):
        if features or head is not None:
            what = f"{rule.name} needs features" if features else "head= names a layer of one model"
            raise InputError(
                f"{what}, and a committee's members have each their own; pass one model, or take a "
                f"rule that needs logits alone, such as 'bald' or 'margin'"
            )
        return stack.enter_context(CommitteeEvaluation(model, device))
    evaluation = stack.enter_context(Evaluation(model, head, device, features=features))
    if "inputs" in rule.needs and scoring_device(evaluation.device) != evaluation.device:
        raise InputError(
            f"{rule.name} with these options differentiates the model in float64, which "
            f"{evaluation.device} does not have; pass device='cpu'"
        )
    return evaluation


def labeled_set(
    rule: Strategy,
    labeled: Any,
    evaluation: Evaluation | None,
    batch_size: int,
    device: Any,
    draws: Draws,
    watch: Callable[[Any], None] | None = None,
) -> Labeled | None:
    """The labelled set as the rule wants it, or None where it wants none.

    `watch` is shown the items as they are read for that, batch by batch.
    """
    if isinstance(labeled, Embedding):
        raise LabelError("a labelled set comes with its labels: pass (Embedding, y)")
    _check_kind_of_labels(rule, labeled)
    if "labeled" not in rule.uses or (labeled is None and "labeled" in rule.optional):
        return None
    if labeled is None:
        raise LabelError(
            f"{rule.name} compares the pool with the labelled set, but labeled is None; "
            f"pass (X, y), or use a rule that needs no labels, such as 'entropy' with a model, or "
            f"'maxherding' for a first batch"
        )
    count = sources.size(labeled[0] if isinstance(labeled, tuple) and labeled else labeled)
    if count == 0 and "labeled" in rule.optional:
        return None
    if count == 0:
        raise LabelError(
            f"{rule.name} needs at least one labelled point, the labelled set is empty"
        )
    chosen = None if count is None else rule.reference_points(count, draws)
    if is_embedded(labeled):
        whole = _with_labels(rule, *labeled)
        whole = whole if device is None else whole.to(scoring_device(device))
    else:
        assert evaluation is not None
        some = None if chosen is None else sources.take(labeled, chosen)
        whole = evaluation.labeled(
            labeled if some is None else some,
            batch_size,
            keep_inputs="inputs" in rule.needs,
            watch=watch,
        )
        if some is None:
            # The data could not be counted or indexed beforehand: choose among what was read.
            count = len(whole)
            chosen = rule.reference_points(count, draws)
        else:
            chosen = None
    return reference_rows(whole, count or len(whole), chosen)


def _with_labels(rule: Strategy, embedding: Embedding, labels: Any) -> Embedding:
    if "logits" in rule.needs and embedding.logits is not None:
        check_logits(embedding.logits, "the labelled set")
    return replace(embedding, labels=sources.as_labels(labels, len(embedding)).to(embedding.device))


def reference_rows(
    whole: Embedding, count: int, chosen: NDArray[np.int64] | None = None
) -> Labeled:
    """A labelled set of `count` points, of which the rule sees those that are chosen."""
    rows = (whole if chosen is None else whole[chosen]).renumbered()
    for name, matrix in rows.matrices.items():
        check_finite(name, matrix, rows.positions, of="labelled")
    assert rows.labels is not None
    return Labeled(rows, rows.labels, count)


def _check_kind_of_labels(rule: Strategy, labeled: Any) -> None:
    """Refuse labels of several classes a point where one is needed, even if they are not read."""
    if rule.multilabel is None or not isinstance(labeled, tuple) or len(labeled) != 2:
        return
    try:
        shape = tuple(np.shape(labeled[1]))
    except ValueError:  # ragged: refused where the labels are read
        return
    if len(shape) == 2 and not rule.multilabel:
        hint = "pass y.ravel()" if shape[1] == 1 else "where they are one-hot, pass y.argmax(1)"
        raise LabelError(
            f"{rule.name} is for one class a point, the labels have shape {shape}; {hint}; for "
            f"several labels a point use a rule with loss='multilabel', e.g. Grad(loss='multilabel')"
        )


def pool_blocks(
    rule: Strategy,
    pool: Any,
    evaluation: Evaluation | None,
    batch_size: int,
    device: Any,
    needs: frozenset[Need] | None = None,
    watch: Callable[[Any], None] | None = None,
) -> Iterator[Embedding]:
    """The pool in blocks, in its own order, with what the rule needs, or more of it.

    `watch` is shown the items that a model is called with, batch by batch.
    """
    if isinstance(pool, Embedding):
        return not_probabilities(rule, _embedded_blocks(rule, pool.renumbered()), "the pool")
    if is_stream(pool):
        return not_probabilities(rule, _stream_blocks(pool, device, watch), "the pool")
    if (rule.needs if needs is None else needs) & {"logits", "features"}:
        assert evaluation is not None
        return evaluation.blocks(pool, batch_size, keep_inputs="inputs" in rule.needs, watch=watch)
    return _position_blocks(pool, batch_size)


def _embedded_blocks(rule: Strategy, pool: Embedding) -> Iterator[Embedding]:
    if isinstance(rule, Batch):
        yield pool
        return
    if "logits" in rule.needs and pool.logits is not None:
        # Of the whole pool, so that all bad rows are counted.
        check_finite("logits", pool.logits, pool.positions)
    columns = sum(matrix.shape[1] for matrix in pool.matrices.values())
    size = _CUDA_BLOCK_BYTES if pool.device.type == "cuda" else _BLOCK_BYTES
    yield from pool.blocks(max(256, size // (4 * max(1, columns))))


def _stream_blocks(
    pool: Iterable[Any], device: Any, watch: Callable[[Any], None] | None
) -> Iterator[Embedding]:
    start = 0
    for part in pool:
        if not isinstance(part, Embedding):
            raise InputError(
                f"an iterator as pool must give Embedding blocks, it gave a "
                f"{type(part).__name__}; pass a Dataset or DataLoader for inputs"
            )
        if watch is not None:
            watch(part)
        part = part if device is None else part.to(scoring_device(device))
        yield replace(part, positions=range(start, start + len(part)))
        start += len(part)


def not_probabilities(rule: Strategy, blocks: Iterator[Embedding], of: str) -> Iterator[Embedding]:
    """The same blocks of a stored embedding, whose logits are seen not to be probabilities."""
    check = LogitsCheck(of)
    for block in blocks:
        if "logits" in rule.needs:
            members = block.members
            check.see(block.logits if members is None else members.flatten(0, 1))
        yield block
    check.end()


def _position_blocks(pool: Any, batch_size: int) -> Iterator[Embedding]:
    """Blocks for a rule that looks at nothing but positions."""
    count = sources.size(pool)
    if count is None:
        count = sum(sources.rows_in(inputs) for inputs, _ in sources.batches(pool, batch_size))
    for start in range(0, count, 1 << 16):
        yield Embedding(positions=range(start, min(count, start + (1 << 16))))


def checked(
    blocks: Iterator[Embedding],
    rule: Strategy,
    labeled: Embedding | None,
    needs: frozenset[Need] | None = None,
) -> Iterator[Embedding]:
    """The same blocks, each seen to hold what the rule needs, in numbers, as the labelled set does.

    What limits on the picks need besides (`needs` less the rule's) has to be there as well.
    """
    for block in blocks:
        for name in sorted((needs or rule.needs) - rule.needs):
            matrix = block.matrices.get(name)
            if matrix is None:
                what = "groups='predicted'" if name == "logits" else "max_similarity"
                raise InputError(f"{what} needs {name}, the pool's Embedding has none")
            check_finite(name, matrix, block.positions)
        for name in sorted(rule.needs & {"logits", "features"}):
            matrix = block.matrices.get(name)
            if matrix is None:
                raise InputError(f"{rule.name} needs {name}, the pool's Embedding has none")
            # Features that are not finite show in a pointwise rule's scores, at no cost of a pass of
            # their own; squares that are lost to float64 may not.
            if name == "logits" or isinstance(rule, Batch):
                check_finite(name, matrix, block.positions)
            else:
                check_range(matrix, block.positions)
            if name == "logits" and rule.multilabel is False:
                check_outputs(matrix.shape[1])
        if "members" in rule.needs:
            if block.members is None:
                raise InputError(
                    f"{rule.name} needs the answers of several models; pass askance.committee(model) "
                    f"as the model, or an Embedding whose logits are (M, N, C), one model's after the "
                    f"other's"
                )
            check_finite("logits", block.members.flatten(1), block.positions)
        if labeled is not None:
            check_same_widths(block, labeled)
        yield block


def joined_for(device: torch.device | None, blocks: Iterator[Embedding]) -> Iterator[Embedding]:
    """The same rows in fewer blocks for a GPU, which waits for its host at each block."""
    if device is None or device.type != "cuda":
        yield from blocks
        return
    waiting: list[Embedding] = []
    size = 0
    for block in blocks:
        if block.inputs is not None or not block.matrices:
            yield block
            continue
        waiting.append(block)
        size += sum(matrix.nbytes for matrix in block.matrices.values())
        if size >= _JOINED_BYTES:
            yield concatenated(waiting)
            waiting, size = [], 0
    if waiting:
        yield concatenated(waiting)


def is_embedded(labeled: Any) -> bool:
    """Whether a labelled set is (Embedding, y)."""
    return isinstance(labeled, tuple) and len(labeled) == 2 and isinstance(labeled[0], Embedding)


def is_stream(pool: Any) -> bool:
    """An iterator of Embedding blocks: anything iterable that is none of the other kinds of data."""
    if isinstance(pool, (Embedding, Mapping, str, bytes)) or sources.is_array(pool):
        return False
    return isinstance(pool, Iterator) and not hasattr(pool, "__getitem__")
