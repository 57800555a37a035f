"""Rows of a pool that have a label already, known by their content or their identifier.

Contents are compared to the bit, as they come, before a model sees them. A row is looked at closely
only where some of its numbers, spread over it, are those of a labelled item; then its digest decides.
So this costs little beside reading the pool.

A labelled item of which some row is excluded is taken care of: other rows of the same content are
copies of it, which may be labelled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from copy import copy
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding, Ids, positions_array, sources, texts
from askance.embedding.items import named_inputs
from askance.errors import SelectionWarning
from askance.picking import TopRows
from askance.seeding import Positions
from askance.selection.excluded import Excluded

Rows = NDArray[np.int64]

_SAMPLED_BYTES = 32
_FEWEST = 8
_BITS = 18
_SHIFT = np.uint64(64 - _BITS)
_BLOCK = 1 << 16
_ODD = np.uint64(0x9E3779B97F4A7C15)


class AlreadyLabeled:
    """The contents of labelled items, and the rows of a pool that have them.

    Args:
        excluded: what is not to be picked.
    """

    def __init__(self, excluded: Excluded) -> None:
        self._excluded = excluded
        self._left_out = set(excluded.positions.tolist())
        self._learned: list[tuple[Part, NDArray[np.uint64]]] = []
        self._digests: set[bytes] = set()
        self._samples = np.empty(0, dtype=np.uint64)
        self._may_be = np.zeros(1 << _BITS, dtype=bool)  # by a sample's first bits
        self._ids: frozenset[str] = frozenset()
        self._by_id: list[tuple[int, bytes | str]] = []
        self._close: list[tuple[int, bytes]] = []
        self._close_samples: set[int] = set()
        self._seen = 0

    def learn(self, items: Any, *, ids: Ids | None = None, keep: bool = False) -> None:
        """Remember the contents of some labelled items; of those that are kept, no more than needed.

        Their identifiers are `ids`, or those of an Embedding.
        """
        ids = items.ids if ids is None and isinstance(items, Embedding) else ids
        if ids is not None:
            self._ids |= frozenset(texts(ids))
        for part in _portions(items):
            samples = _samples(part)
            self._samples = np.union1d(self._samples, samples)
            self._may_be[samples >> _SHIFT] = True
            if keep:
                self._learned.append((part, samples))
            else:
                self._digests.update(_digests(part, np.arange(_count(part))))

    def fresh(self) -> AlreadyLabeled:
        """The same labelled items, and no row of the pool looked at yet."""
        twin = copy(self)
        twin._by_id, twin._close, twin._close_samples, twin._seen = [], [], set(), 0
        twin._left_out, twin._digests = set(self._left_out), set(self._digests)
        return twin

    def look(
        self, items: Any, *, ids: Ids | None = None, positions: Positions | None = None
    ) -> None:
        """Look for labelled contents among the next rows of the pool.

        Args:
            items: the rows, in order.
            ids: their identifiers; those of an Embedding when None.
            positions: where they stand in the pool; they follow the rows before when None.
        """
        ids = items.ids if ids is None and isinstance(items, Embedding) else ids
        by_id = ids is not None and bool(self._ids)
        start, count = self._seen, len(items) if isinstance(items, Embedding) else 0
        close, digests = [np.empty(0, dtype=np.int64)], list[bytes]()
        if len(self._samples) and not by_id:
            count = 0
            for part in _portions(items):
                samples = _samples(part)
                alike = np.flatnonzero(self._may_be[samples >> _SHIFT])
                alike = alike[np.isin(samples[alike], self._samples)]
                digests += _digests(part, alike)
                self._close_samples.update(samples[alike].tolist())
                close.append(count + alike)
                count += _count(part)
        self._seen += count

        def places(rows: Rows) -> list[int]:
            each = start + rows if positions is None else positions_array(positions)[rows]
            return each.tolist()

        self._close += zip(places(np.concatenate(close)), digests, strict=True)
        if ids is not None:
            self._left_out.update(places(ids.find(self._excluded.ids)))
        if ids is not None and by_id:
            rows = ids.find(self._ids)
            self._by_id += zip(places(rows), ids.take(rows), strict=True)

    def rows(self) -> Rows:
        """The labelled rows among those looked at that are not taken care of, ascending."""
        close = np.array(sorted(self._close_samples), dtype=np.uint64)
        for part, samples in self._learned:
            self._digests.update(_digests(part, np.flatnonzero(np.isin(samples, close))))
        found = [*self._by_id, *((row, d) for row, d in self._close if d in self._digests)]
        covered = {content for row, content in found if row in self._left_out}
        rows = [row for row, content in found if content not in covered]
        return np.array(sorted(rows), dtype=np.int64)


class Overlap:
    """What a labelled set and a pool have in common, as far as their contents are at hand.

    Args:
        labeled: the labelled set as `select` is given it.
        pool: the pool likewise.
        excluded: what is not to be picked.
    """

    def __init__(self, labeled: Any, pool: Any, excluded: Excluded) -> None:
        self._known = AlreadyLabeled(excluded)
        self._labeled, self._pool = plain(labeled), plain(pool)
        if self._labeled is not None:
            self._known.learn(self._labeled, keep=True)

    @property
    def at_hand(self) -> bool:
        """Whether both can be compared without a pass over them."""
        return self._labeled is not None and self._pool is not None

    def watch_labeled(self, items: Any) -> None:
        """Some labelled items, as they are read."""
        if self._labeled is None:
            self._known.learn(items)

    def watch_pool(self, items: Any) -> None:
        """The next items of the pool, as they are read."""
        if self._pool is None:
            self._known.look(items)

    def already_labeled(self) -> Rows:
        """The rows of the pool that are in the labelled set, and not excluded."""
        if self._pool is not None:
            self._known.look(self._pool)
        return self._known.rows()

    def copies(self, top: TopRows) -> int:
        """How many picks have the content of an earlier one."""
        if self._pool is None or isinstance(self._pool, Embedding):
            return copies(top.rows)
        rows = positions_array(top.rows.positions)
        if isinstance(self._pool, list):
            return copies([self._pool[row] for row in rows.tolist()])
        return copies(sources.take(self._pool, rows))

    def notes(self, already: Rows, top: TopRows) -> tuple[str, ...]:
        """In words, and as warnings: labelled rows in the pool, and picks that are copies."""
        notes = []
        if len(already):
            picked = int(np.isin(positions_array(top.rows.positions), already).sum())
            notes.append(
                f"rows of the pool that equal labelled ones: {len(already)}, picked again: {picked}; "
                f"leave them out with exclude=picks.already_labeled"
            )
        twice = self.copies(top)
        if twice:
            notes.append(copies_in_words(twice, len(top)))
        for note in notes:
            warnings.warn(note, SelectionWarning, stacklevel=3)
        return tuple(notes)


def copies(items: Any) -> int:
    """How many of some items have the content of an earlier one."""
    digests = [d for part in _portions(items) for d in _digests(part, np.arange(_count(part)))]
    return len(digests) - len(set(digests))


def copies_in_words(twice: int, picks: int) -> str:
    """A note on picks that are copies."""
    again = f"picks that are copies of another pick: {twice} of {picks}"
    return f"{again}; max_similarity=1 picks no two alike"


def plain(data: Any) -> Any:
    """The items of some data where their contents are at hand, else None.

    They are so in arrays, a mapping of arrays, a frame, a list of texts, and an embedding's features.
    """
    if isinstance(data, tuple):
        data = data[0] if data else None
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    if isinstance(data, Mapping):
        data = named_inputs(data)
    if isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.kind in "OU":
        data = data.tolist()
    return data if comparable(data) else None


def comparable(items: Any) -> bool:
    """Whether the contents are at hand: arrays, a mapping of them, a list of texts, features."""
    if isinstance(items, Embedding):
        return items.features is not None or items.ids is not None
    if isinstance(items, Mapping):
        return bool(items) and all(comparable(value) for value in items.values())
    if isinstance(items, list):
        return bool(items) and all(isinstance(item, (str, bytes)) for item in items)
    if isinstance(items, np.ndarray):
        return items.dtype.kind in "biuf" and items.ndim > 0
    return isinstance(items, Tensor) and items.layout == torch.strided and items.ndim > 0


Part = list[Tensor] | list[str | bytes]


def _portions(items: Any) -> Iterator[Part]:
    """Some rows at a time: matrices of as many rows each, or texts; nothing where there is neither."""
    if isinstance(items, Embedding):
        matrices = [] if items.features is None else [items.features]
    elif isinstance(items, list) and items and isinstance(items[0], (str, bytes)):
        yield items
        return
    else:
        matrices = list(_matrices(items))
    for start in range(0, len(matrices[0]) if matrices else 0, _BLOCK):
        yield [matrix[start : start + _BLOCK] for matrix in matrices]


def _matrices(items: Any) -> Iterator[Tensor]:
    if isinstance(items, Mapping):
        for name in sorted(items, key=str):
            yield from _matrices(items[name])
    elif isinstance(items, (tuple, list)):
        for item in items:
            yield from _matrices(item)
    elif comparable(items):
        tensor = items if isinstance(items, Tensor) else sources.as_tensor(items)
        yield tensor.detach().flatten(1) if tensor.ndim > 1 else tensor.detach()[:, None]


def _count(part: Part) -> int:
    return len(part[0]) if isinstance(part[0], Tensor) else len(part)


def _samples(part: Part) -> NDArray[np.uint64]:
    """(B,) 64 bits of some numbers of each row; equal rows have equal ones."""
    if not isinstance(part[0], Tensor):
        return np.array([int.from_bytes(_digest(text)[:8]) for text in part], dtype=np.uint64)
    mixed = np.zeros(len(part[0]), dtype=np.uint64)
    for matrix in part:
        assert isinstance(matrix, Tensor)
        count = max(_FEWEST, _SAMPLED_BYTES // matrix.element_size())
        last = max(0, matrix.shape[1] - 1)
        columns = torch.linspace(0, last, count, device="cpu").long().unique()
        if matrix.shape[1]:
            sampled = _bytes(matrix[:, columns.to(matrix.device)])
            padded = np.pad(sampled, ((0, 0), (0, -sampled.shape[1] % 8)))
            for word in padded.view(np.uint64).T:
                mixed = (mixed ^ word) * _ODD
                mixed ^= mixed >> np.uint64(29)
    return mixed


def _bytes(matrix: Tensor) -> NDArray[np.uint8]:
    """(B, bytes of a row)."""
    return matrix.contiguous().cpu().view(torch.uint8).numpy()


def _digests(part: Part, rows: Rows) -> list[bytes]:
    """What tells the contents of some rows apart from every other content."""
    if not len(rows):
        return []
    if not isinstance(part[0], Tensor):
        return [_digest(part[row]) for row in rows.tolist()]
    index = torch.from_numpy(rows)
    parts = [matrix[index.to(matrix.device)] for matrix in part if isinstance(matrix, Tensor)]
    kinds = repr([(str(matrix.dtype), matrix.shape[1]) for matrix in parts])
    whole = np.concatenate([_bytes(matrix) for matrix in parts], axis=1)
    return [_digest(kinds.encode() + row.tobytes()) for row in whole]


def _digest(content: Any) -> bytes:
    whole: bytes = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return blake2b(whole, digest_size=16).digest()
