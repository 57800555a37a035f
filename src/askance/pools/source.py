"""A pool that is read shard by shard, anywhere, in any order.

A `Source` lists its shards once. Each shard knows the global position of its first row, so whoever
reads it alone, on another machine or after a crash, makes the same draws and gives the same picks.

Sources and shards are pickled to where they are read: they hold addresses and options, no open files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from askance.embedding import Embedding
from askance.selection.selection import Skipped

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

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[Embedding | Skipped]:
        """The shard's rows in order, at most `batch_size` at a time, and the rows that cannot be read.

        A shard that is gone, changed or damaged raises `ShardError`, which names it.
        """
        ...


def rows_in(shards: Sequence[Shard]) -> int | None:
    """How many rows the shards have, where that is known."""
    counts = [shard.rows for shard in shards]
    return None if None in counts else sum(count for count in counts if count is not None)
