"""Identifiers that occur twice, found exactly and in bounded memory.

64 bits of every identifier go to a temporary file (8 bytes a row on disk). They are sorted a portion at
a time: all of a value are in one portion, so two equal ones meet. Equal bits are a suspicion, no proof
(10⁹ different identifiers have a chance of 3% that some two agree), so the suspects' identifiers are
read again and compared as text.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from askance.embedding import Embedding
from askance.errors import ShardError
from askance.pools.ids import Hashes, id_hashes, mixed
from askance.pools.reader import OnError
from askance.pools.source import Source

MEMORY = 256 << 20
_CHUNK = 1 << 20
_SUSPECTS = 200_000
_ROWS = 1 << 16


@dataclass(frozen=True)
class Duplicate:
    """A row whose identifier an earlier row has.

    Args:
        id: the identifier.
        first: the shard of the first row that has it.
        again: the shard of this one.
        position: this one's global position.
    """

    id: str
    first: str
    again: str
    position: int


class IdHashes:
    """64 bits of every identifier of a pool, on disk. Use as a context manager."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115 - closed on leaving
        self._memory = memory
        self.count = 0

    def __enter__(self) -> IdHashes:
        return self

    def __exit__(self, *error: Any) -> None:
        self._file.close()

    def add(self, hashes: Hashes) -> None:
        """Write down the hashes of some rows."""
        self._file.write(np.ascontiguousarray(hashes).data)
        self.count += len(hashes)

    def repeated(self) -> Hashes:
        """The values that occur more than once, ascending."""
        # A portion is held with its mask and while it is sorted.
        portions = max(1, -(-self.count * 8 * 3 // self._memory))
        repeated = [np.empty(0, dtype=np.uint64)]
        for portion in range(portions):
            values = np.concatenate(list(self._portion(portion, portions)))
            values.sort()
            repeated.append(np.unique(values[1:][values[1:] == values[:-1]]))
        return np.sort(np.concatenate(repeated))

    def _portion(self, portion: int, portions: int) -> Iterator[Hashes]:
        yield np.empty(0, dtype=np.uint64)
        self._file.seek(0)
        while chunk := self._file.read(8 * _CHUNK):
            values = np.frombuffer(chunk, np.uint64)
            if portions > 1:
                # Mixed first: whole numbers are their own bits, and may be anything but even.
                values = values[mixed(values) % np.uint64(portions) == portion]
            yield values


def duplicates(
    source: Source, suspects: Hashes, unread: frozenset[int], on_error: OnError
) -> Iterator[Duplicate]:
    """Every row whose identifier an earlier row has, among those with suspected bits.

    Args:
        source: the pool; its identifiers are read once more for every 200,000 suspects.
        suspects: values that occurred more than once.
        unread: indices of shards that were skipped.
        on_error: whether a shard that cannot be read now is an error.
    """
    for start in range(0, len(suspects), _SUSPECTS):
        first: dict[str, str] = {}
        for shard in source.shards:
            if shard.index in unread:
                continue
            try:
                for block in source.read(shard, _ROWS, frozenset()):
                    assert isinstance(block, Embedding)
                    assert block.ids is not None
                    some = suspects[start : start + _SUSPECTS]
                    rows = np.flatnonzero(np.isin(id_hashes(block.ids), some))
                    for row, name in zip(rows, block.ids.take(rows), strict=True):
                        if name in first:
                            place = int(block.positions[row])
                            yield Duplicate(name, first[name], shard.name, place)
                        first.setdefault(name, shard.name)
            except ShardError:
                if on_error == "raise":
                    raise
