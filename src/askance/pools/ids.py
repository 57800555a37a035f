"""Identifiers of a block's rows, as text only where somebody asks for them.

A pool of 10⁷ rows would spend more time making identifiers than scoring, so a block holds them as they
are stored (an Arrow column, a file's name and a row number) and gives out those of a few rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from askance.embedding import Ids, texts
from askance.embedding.ids import Rows
from askance.errors import InputError

Hashes = NDArray[np.uint64]

_WORD = 8
# Odd constants of a multiply–xorshift mixer (the finaliser of SplitMix64).
_FIRST, _SECOND, _STEP = (
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
    np.uint64(0x9E3779B97F4A7C15),
)


@dataclass(frozen=True)
class Numbered:
    """`name:row`, unique by construction: names of files differ, and so do rows of one."""

    name: str
    start: int
    count: int

    def __len__(self) -> int:
        return self.count

    def take(self, rows: Rows) -> list[str]:
        return [f"{self.name}:{self.start + int(row)}" for row in rows]

    def find(self, wanted: frozenset[str]) -> Rows:
        rows = []
        for text in wanted:
            name, _, number = text.rpartition(":")
            if name == self.name and number.isascii() and number.isdigit():
                row = int(number) - self.start
                # `str` of the number again: "a:007" is no identifier of row 7.
                if 0 <= row < self.count and str(int(number)) == number:
                    rows.append(row)
        return np.array(sorted(rows), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Column:
    """Identifiers in an Arrow column of texts or whole numbers without nulls."""

    values: Any

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Rows) -> list[str]:
        return [str(value) for value in self.values.take(pa.array(rows)).to_pylist()]

    def find(self, wanted: frozenset[str]) -> Rows:
        if not wanted:
            return np.empty(0, dtype=np.int64)
        values: list[Any] = list(wanted)
        if pa.types.is_integer(self.values.type):
            limits = np.iinfo(self.values.type.to_pandas_dtype())
            numbers = [int(text) for text in wanted if _is_whole(text)]
            values = [number for number in numbers if limits.min <= number <= limits.max]
        inside = pc.is_in(self.values, value_set=pa.array(values, self.values.type))
        return np.flatnonzero(inside.to_numpy(zero_copy_only=False))


def id_hashes(ids: Ids) -> Hashes:
    """64 bits of each identifier; equal identifiers give equal ones."""
    if not isinstance(ids, Column):
        return text_hashes(pa.array(texts(ids), pa.large_string()))
    if pa.types.is_integer(ids.values.type):
        # One to one, so that equal words are equal numbers.
        wide = ids.values.to_numpy(zero_copy_only=False)
        return wide.astype(np.uint64 if wide.dtype.kind == "u" else np.int64).view(np.uint64)
    return text_hashes(ids.values)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdigit() and str(int(text)) == text


def text_hashes(texts: Any) -> Hashes:
    """64 bits of each text of an Arrow array, a length at a time and no text by itself."""
    try:
        texts = texts.cast(pa.large_string())
    except pa.ArrowException as error:
        raise InputError(
            f"identifiers must be texts or whole numbers, got {texts.type} ({error})"
        ) from error
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    data = texts.buffers()[2]
    letters = np.frombuffer(data if data is not None else b"", np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashes = np.empty(len(texts), dtype=np.uint64)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        words = -(-int(length) // _WORD)
        padded = np.zeros((len(rows), max(1, words) * _WORD), dtype=np.uint8)
        if length:
            padded[:, :length] = letters[starts[rows, None] + np.arange(length)]
        state = np.full(len(rows), length, dtype=np.uint64)
        for word in padded.view(np.uint64).T:
            state = mixed((state ^ word) + _STEP)
        hashes[rows] = state
    return hashes


def mixed(x: Hashes) -> Hashes:
    """Each value sent to another, one to one, with all its bits stirred."""
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))
