"""A source's rows as embeddings, and a job that does something to each of its shards.

A job is a frozen, picklable record. It builds the model once and gives a function from a shard to its
result; an engine needs to know no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import torch

from askance.embedding import Embedding, Evaluation, LogitsCheck
from askance.embedding.device import usable
from askance.errors import AskanceError, InputError, ShardError
from askance.pools.decode import NO_TRANSFORM, Untransformed
from askance.pools.ids import Hashes, id_hashes
from askance.pools.labeled import LabeledItems
from askance.pools.model import ModelSource
from askance.pools.source import Parts, Shard, Source
from askance.selection.clock import Clock
from askance.selection.selection import ReadCounts, Skipped
from askance.strategies import Strategy
from askance.strategies.base import check_one_model

T = TypeVar("T")
OnError = Literal["raise", "skip"]

# Rows of a block whose embedding is stored: calls are cheap, and it is some 9 MB at 128 features, near
# what a CPU's cache holds.
STORED_ROWS = 1 << 14
FORWARD_ROWS = 256


@dataclass(frozen=True, eq=False)
class Reader:
    """A source's rows as embeddings: stored ones, or the model's.

    Args:
        source: where the rows are.
        model: how to come by the model; None where the embedding is stored.
        head: the model's last linear layer; found when None.
        device: where to compute; the CPU, or the model's own, when None.
        batch_size: rows of a block; of a forward pass, where there is a model.
        on_error: whether a row that cannot be read is an error, or skipped.
    """

    source: Source
    model: ModelSource | None = None
    head: str | None = None
    device: str | None = None
    batch_size: int | None = None
    on_error: OnError = "raise"

    @contextmanager
    def opened(self, needs: Parts) -> Iterator[Callable[..., Iterator[Embedding | Skipped]]]:
        """A function that reads a shard; `needs` are the parts a rule looks at.

        It may be given what is to be shown the rows before a model is, see `_blocks`.
        """
        if self.device is not None:
            usable(self.device)
        with ExitStack() as stack:
            model = None
            embedded = needs & {"logits", "features"}
            if self.model is not None and embedded:
                if isinstance(getattr(self.source, "transform", None), Untransformed):
                    raise InputError(NO_TRANSFORM)
                model = stack.enter_context(
                    Evaluation(
                        self.model.build(), self.head, self.device, features="features" in needs
                    )
                )
            wanted: Parts = needs & {"labels"} | (embedded if model is None else {"inputs"})
            missing = wanted - self.source.holds
            if missing:
                raise InputError(_lacking(self.source, missing, model is not None))
            size = self.batch_size or (STORED_ROWS if model is None else FORWARD_ROWS)
            yield lambda shard, look=None: self._blocks(shard, size, wanted, model, look)

    def _blocks(
        self,
        shard: Shard,
        size: int,
        wanted: Parts,
        model: Evaluation | None,
        look: Callable[[Embedding], None] | None = None,
    ) -> Iterator[Embedding | Skipped]:
        stored = LogitsCheck(shard.name)
        for rows in self.source.read(shard, size, wanted):
            if look is not None and not isinstance(rows, Skipped):
                look(rows)
            if isinstance(rows, Skipped):
                if self.on_error == "raise":
                    raise ShardError(
                        f"{rows.what}; correct or remove it, or skip what cannot be read"
                    )
                yield rows
            elif model is not None and len(rows):
                logits, features = _answer(model, rows.inputs, shard)
                if len(logits) != len(rows):
                    raise InputError(
                        f"{shard.name}: the model gave {len(logits)} rows of logits for {len(rows)} "
                        f"points; it must give one for each"
                    )
                if model.headless:
                    stored.see(logits)
                yield Embedding(logits, features, rows.positions, rows.ids, labels=rows.labels)
            elif len(rows):
                stored.see(rows.logits)
                yield rows if self.device is None else rows.to(self.device)
        stored.end()


def _answer(
    model: Evaluation, inputs: Any, shard: Shard
) -> tuple[torch.Tensor, torch.Tensor | None]:
    try:
        return model(model.prepare(inputs))
    except AskanceError:
        raise
    except Exception as error:
        reason = "; ".join([str(error).strip(), *getattr(error, "__notes__", ())])
        raise InputError(
            f"{shard.name}: the model cannot take these rows ({type(error).__name__}: {reason}); are "
            f"the columns, the transform and the image size those it was trained with?"
        ) from error


def _lacking(source: Source, missing: Parts, model: bool) -> str:
    what = " and ".join(sorted(missing))
    has = ", ".join(sorted(source.holds)) or "nothing but identifiers"
    remedy = "; name the column that holds them, or give a model or an encoder that makes them"
    hint = "" if model else remedy
    return f"{source.address}: its rows have no {what}, they have {has}{hint}"


def embedded_parts(rule: Strategy) -> Parts:
    """What a rule looks at of a pool's rows."""
    check_one_model(rule)
    if "inputs" in rule.needs:
        raise InputError(
            f"{rule.name} with these options differentiates the model itself; a pool that is read in "
            f"shards is scored by its head alone: leave parameters='last', or use askance.select"
        )
    parts: Parts = frozenset({"logits", "features"})
    return frozenset(part for part in parts if part in rule.needs)


class ShardRows:
    """The blocks of a shard, to be gone through once; what came of reading it is known then.

    Args:
        shard: which it is.
        blocks: the shard as a `Reader` reads it.
        hash_ids: whether 64 bits of every identifier are kept.
    """

    def __init__(self, shard: Shard, blocks: Iterator[Embedding | Skipped], hash_ids: bool) -> None:
        self.shard, self._blocks, self._hash_ids = shard, blocks, hash_ids
        self._hashes = [np.empty(0, dtype=np.uint64)]
        self.rows = self.excluded = 0
        self.skipped: list[Skipped] = []

    def __iter__(self) -> Iterator[Embedding]:
        for block in self._blocks:
            if isinstance(block, Skipped):
                self.skipped.append(block)
                continue
            self.rows += len(block)
            if self._hash_ids and block.ids is not None:
                self._hashes.append(id_hashes(block.ids))
            yield block

    @property
    def counts(self) -> ReadCounts:
        """Of what has been read so far."""
        return ReadCounts(self.rows, self.excluded, tuple(self.skipped))

    @property
    def hashes(self) -> Hashes | None:
        """64 bits of each identifier read so far, where they are kept."""
        return np.concatenate(self._hashes) if self._hash_ids else None


@dataclass(frozen=True, eq=False)
class ShardResult(Generic[T]):
    """What came of one shard.

    Args:
        value: what was made of its rows; None where the whole shard was skipped.
        read: how many rows were read, excluded and skipped.
        hashes: 64 bits of every row's identifier, in order, where they are to be compared.
        seconds: in each phase; see `Selection.timings`.
    """

    value: T | None
    read: ReadCounts
    hashes: Hashes | None = None
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ShardJob(Generic[T]):
    """Something done to the rows of each shard.

    Args:
        reader: reads the shards.
        parts: what is read of each row.
        work: what is done; it sets `ShardRows.excluded` where it leaves rows out.
        hash_ids: whether to give 64 bits of every identifier back.
        known: the labelled items, which are looked for among the rows.
    """

    reader: Reader
    parts: Parts
    work: Callable[[ShardRows, Clock], T]
    hash_ids: bool = False
    known: LabeledItems | None = None

    @property
    def device(self) -> str | None:
        """Where it computes; the CPU when None."""
        return self.reader.device

    @contextmanager
    def opened(self) -> Iterator[Callable[[Shard], ShardResult[T]]]:
        """Build the model; inside, a function from a shard to its result."""
        with self.reader.opened(self.parts) as read:
            yield lambda shard: self._result(shard, read)

    def _result(self, shard: Shard, read: Any) -> ShardResult[T]:
        found = None if self.known is None else self.known.fresh()
        blocks = read(shard, None if found is None else found.look)
        rows, clock = ShardRows(shard, blocks, self.hash_ids), Clock()
        try:
            value = self.work(rows, clock)
        except ShardError as error:
            if self.reader.on_error == "raise":
                raise
            skipped = Skipped(str(error), shard.rows, True)
            return ShardResult(None, ReadCounts(skipped=(skipped,)))
        counts = rows.counts if found is None else replace(rows.counts, labeled=found.rows)
        return ShardResult(value, counts, rows.hashes, clock.seconds)
