"""A pool that is read shard by shard, anywhere, in any order.

A `Source` lists its shards once. Each shard knows the global position of its first row, so whoever
reads it alone, on another machine or after a crash, makes the same draws and gives the same picks.

Sources and shards are pickled to where they are read: they hold addresses and options, no open files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from torch import Tensor

from askance.pools.ids import Ids
from askance.seeding import Positions

Part = Literal["logits", "features", "inputs", "labels"]
Parts = frozenset[Part]
"""What is wanted of the rows beside their identifiers; nothing else is read."""


@dataclass(frozen=True)
class Shard:
    """A run of rows that is read, scored and resumed as one.

    Args:
        index: its place among the source's shards.
        name: what messages and the resume file call it; unique in its source.
        path: the file or folder it is in.
        start: the global position of its first row.
        rows: how many rows it has; None where only reading tells.
        stamp: the file's size and time of change when it was listed; "" where there is no file.
        part: which piece of the file, in the source's own terms.
        fault: why it cannot be read, where the listing found that out already.
    """

    index: int
    name: str
    path: str
    start: int
    rows: int | None
    stamp: str = ""
    part: tuple[Any, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, eq=False)
class PoolBlock:
    """Some rows of a shard: where they stand, what they are called, and what was asked for of them.

    Args:
        positions: the global position of each row.
        ids: the rows' identifiers.
        logits: (B, C), where they are stored and were asked for.
        features: (B, D), likewise.
        inputs: a batch for the model.
        labels: (B,) classes, or (B, C) zeros and ones; of a labelled set only.
        bad: what was wrong with rows that could not be read and are not in the block.
    """

    positions: Positions
    ids: Ids
    logits: Tensor | None = None
    features: Tensor | None = None
    inputs: Any = None
    labels: Tensor | None = None
    bad: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.positions)


@runtime_checkable
class Source(Protocol):
    """Where a pool, or a labelled set, is read from. Picklable."""

    @property
    def address(self) -> str:
        """What the user called it."""
        ...

    @property
    def shards(self) -> Sequence[Shard]:
        """All of it, in order; positions run through."""
        ...

    @property
    def holds(self) -> Parts:
        """What its rows can give."""
        ...

    @property
    def unique_ids(self) -> bool:
        """Whether identifiers differ by construction."""
        ...

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[PoolBlock]:
        """The shard's rows in order, at most `batch_size` at a time.

        A shard that is gone, changed or damaged raises `ShardError`, which names it.
        """
        ...


def rows_in(shards: Sequence[Shard]) -> int | None:
    """How many rows the shards have, where that is known."""
    counts = [shard.rows for shard in shards]
    return None if None in counts else sum(count for count in counts if count is not None)
