"""Whatever the caller has, as the rule wants it: the model, the labelled set, the pool in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from askance.embedding import (
    Block,
    Embedding,
    Evaluation,
    LogitsCheck,
    check_finite,
    check_logits,
    check_range,
    concatenated,
    sources,
)
from askance.errors import InputError, LabelError
from askance.gradients.discrepancy import check_same_widths
from askance.gradients.last_layer import check_outputs
from askance.seeding import Draws, Positions
from askance.strategies import Batch, Labeled, Strategy

# A block of an embedding that is in memory already: large enough to make calls cheap, small enough
# for a CPU's cache, or for a GPU that what scoring it takes beside it is little.
_BLOCK_BYTES = 12 << 20
_CUDA_BLOCK_BYTES = 1 << 30
# Blocks of a forward pass are joined up to this before a GPU scores them.
_JOINED_BYTES = 64 << 20


def evaluation_for(
    rule: Strategy,
    model: nn.Module | None,
    labeled: Any,
    pool: Any,
    head: str | None,
    device: Any,
    stack: ExitStack,
) -> Evaluation | None:
    """The model under evaluation, where something has to be run through it."""
    embedded = isinstance(pool, Embedding) or is_stream(pool)
    if "inputs" in rule.needs and embedded:
        raise InputError(
            f"{rule.name} with these options differentiates the model itself, so it needs "
            f"the pool's inputs, not an Embedding"
        )
    needs_pool = bool(rule.needs & {"logits", "features"}) and not embedded
    given = labeled is not None and not isinstance(labeled, Embedding) and not _is_embedded(labeled)
    needs_labeled = "labeled" in rule.needs and given
    if not needs_pool and not needs_labeled:
        return None
    if model is None:
        what = "pool" if needs_pool else "labelled set"
        raise InputError(f"a model is needed to embed the {what}; pass one, or pass an Embedding")
    return stack.enter_context(Evaluation(model, head, device))


def labeled_set(
    rule: Strategy,
    labeled: Any,
    evaluation: Evaluation | None,
    batch_size: int,
    device: Any,
    draws: Draws,
) -> Labeled | None:
    """The labelled set as the rule wants it, or None where it wants none."""
    if isinstance(labeled, Embedding):
        raise LabelError("a labelled set comes with its labels: pass (Embedding, y)")
    _check_kind_of_labels(rule, labeled)
    if "labeled" not in rule.needs:
        return None
    if labeled is None:
        raise LabelError(
            f"{rule.name} compares the pool with the labelled set, but labeled is None; "
            f"pass (X, y), or use a rule that needs no labels, such as 'entropy'"
        )
    count = sources.size(labeled[0] if isinstance(labeled, tuple) and labeled else labeled)
    if count == 0:
        raise LabelError(
            f"{rule.name} needs at least one labelled point, the labelled set is empty"
        )
    rows = None if count is None else rule.reference_points(count, draws)
    if _is_embedded(labeled):
        embedding, labels = labeled
        labels = sources.as_labels(labels, len(embedding))
        if "logits" in rule.needs and embedding.logits is not None:
            check_logits(embedding.logits, "the labelled set")
        if device is not None:
            embedding = embedding.to(device)
        if rows is not None:
            embedding, labels = embedding[rows], labels[torch.from_numpy(rows)]
        block = whole(embedding)
        for name in ("logits", "features"):
            if getattr(block, name) is not None:
                check_finite(name, getattr(block, name), block.positions, of="labelled")
        return Labeled(block, labels.to(embedding.device), count or 0)
    assert evaluation is not None
    some = None if rows is None else sources.take(labeled, rows)
    inputs = "inputs" in rule.needs
    block, labels = evaluation.labeled(
        labeled if some is None else some, batch_size, keep_inputs=inputs
    )
    if some is None:
        # The data could not be counted or indexed beforehand: choose among what was read.
        count = len(block)
        rows = rule.reference_points(count, draws)
        if rows is not None:
            index = torch.from_numpy(rows).to(labels.device)
            block = Block(range(len(rows)), **sources.rows_of(contents(block), index))
            labels = labels[index]
    return Labeled(block, labels, count or len(block))


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
    rule: Strategy, pool: Any, evaluation: Evaluation | None, batch_size: int, device: Any
) -> Iterator[Block]:
    if isinstance(pool, Embedding):
        yield from no_probabilities(rule, _embedded_blocks(rule, pool))
    elif is_stream(pool):
        yield from no_probabilities(rule, _stream_blocks(pool, device))
    elif rule.needs & {"logits", "features"}:
        assert evaluation is not None
        yield from evaluation.blocks(pool, batch_size, keep_inputs="inputs" in rule.needs)
    else:
        yield from _position_blocks(pool, batch_size)


def _embedded_blocks(rule: Strategy, pool: Embedding) -> Iterator[Block]:
    if isinstance(rule, Batch):
        yield whole(pool)
        return
    if "logits" in rule.needs and pool.logits is not None:
        check_finite(
            "logits", pool.logits, range(len(pool))
        )  # to count all bad rows, not a block's
    columns = sum(m.shape[1] for m in (pool.logits, pool.features) if m is not None)
    size = _CUDA_BLOCK_BYTES if pool.device.type == "cuda" else _BLOCK_BYTES
    yield from pool.blocks(max(256, size // (4 * columns)))


def _stream_blocks(pool: Iterable[Any], device: Any) -> Iterator[Block]:
    start = 0
    for part in pool:
        if not isinstance(part, Embedding):
            raise InputError(
                f"an iterator as pool must give Embedding blocks, it gave a "
                f"{type(part).__name__}; pass a Dataset or DataLoader for inputs"
            )
        part = part if device is None else part.to(device)
        yield replace(whole(part), positions=range(start, start + len(part)))
        start += len(part)


def no_probabilities(rule: Strategy, blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks of a pool that came as an embedding, seen not to be probabilities."""
    check = LogitsCheck("the pool")
    for block in blocks:
        if "logits" in rule.needs:
            check.see(block.logits)
        yield block
    check.end()


def _position_blocks(pool: Any, batch_size: int) -> Iterator[Block]:
    """Blocks for a rule that looks at nothing but positions."""
    count = sources.size(pool)
    if count is None:
        count = sum(sources.rows_in(inputs) for inputs, _ in sources.batches(pool, batch_size))
    for start in range(0, count, 1 << 16):
        yield Block(range(start, min(count, start + (1 << 16))))


def checked(blocks: Iterator[Block], rule: Strategy, seen: Labeled | None) -> Iterator[Block]:
    """The same blocks, each seen to hold what the rule needs, in numbers."""
    for block in blocks:
        for name in sorted(rule.needs & {"logits", "features"}):
            matrix = getattr(block, name)
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
        if seen is not None:
            check_same_widths(block, seen.block)
        yield block


def joined_for(device: torch.device | None, blocks: Iterator[Block]) -> Iterator[Block]:
    """The same rows in fewer blocks for a GPU: looked at little and often, it waits for its host."""
    if device is None or device.type != "cuda":
        yield from blocks
        return
    held: list[Block] = []
    size = 0
    for block in blocks:
        if block.inputs is not None or (block.logits is None and block.features is None):
            yield block
            continue
        held.append(block)
        size += sum(m.nbytes for m in (block.logits, block.features) if m is not None)
        if size >= _JOINED_BYTES:
            yield _joined(held)
            held, size = [], 0
    if held:
        yield _joined(held)


def _joined(blocks: list[Block]) -> Block:
    first, last = blocks[0].positions, blocks[-1].positions
    positions: Positions
    if isinstance(first, range) and isinstance(last, range):
        positions = range(first.start, last.stop)
    else:
        positions = np.concatenate([np.asarray(block.positions) for block in blocks])
    return replace(whole(concatenated(blocks)), positions=positions)


def whole(embedding: Embedding) -> Block:
    return Block(range(len(embedding)), embedding.logits, embedding.features)


def contents(rows: Block | Embedding) -> dict[str, Any]:
    """What a block holds besides positions, by field name."""
    inputs = rows.inputs if isinstance(rows, Block) else None
    held = {"logits": rows.logits, "features": rows.features, "inputs": inputs}
    return {name: value for name, value in held.items() if value is not None}


def positions_of(block: Block, device: torch.device) -> torch.Tensor:
    if isinstance(block.positions, range):
        return torch.arange(block.positions.start, block.positions.stop, device=device)
    return torch.from_numpy(block.positions).to(device)


def _is_embedded(labeled: Any) -> bool:
    return isinstance(labeled, tuple) and len(labeled) == 2 and isinstance(labeled[0], Embedding)


def is_stream(pool: Any) -> bool:
    """An iterator of Embedding blocks: anything iterable that is none of the other kinds of data."""
    if isinstance(pool, (Embedding, Mapping, str, bytes)) or sources.is_array(pool):
        return False
    return isinstance(pool, Iterator) and not hasattr(pool, "__getitem__")
