"""Rows of a pool that have a label already, known by their content or their identifier.

Contents are compared to the bit, as they come, before a model sees them. A row is looked at closely
only where some of its numbers, spread over it, are those of a labelled item; then its digest decides.
So this costs little beside reading the pool.

A labelled item of which some row is excluded is taken care of: other rows of the same content are
copies of it, which may be labelled.
"""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.embedding import Embedding, Ids, positions_array, sources, texts
from askance.errors import SelectionWarning
from askance.picking import TopRows
from askance.seeding import Positions
from askance.selection.contents import (
    Part,
    copies,
    digests_of,
    plain,
    portions,
    rows_of,
    samples_of,
)
from askance.selection.excluded import Excluded

Rows = NDArray[np.int64]

_BITS = 18
_SHIFT = np.uint64(64 - _BITS)


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
        for part in portions(items):
            own = samples_of(part)
            self._samples = np.union1d(self._samples, own)
            self._may_be[own >> _SHIFT] = True
            if keep:
                self._learned.append((part, own))
            else:
                self._digests.update(digests_of(part, np.arange(rows_of(part))))

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
            for part in portions(items):
                samples = samples_of(part)
                alike = np.flatnonzero(self._may_be[samples >> _SHIFT])
                alike = alike[np.isin(samples[alike], self._samples)]
                digests += digests_of(part, alike)
                self._close_samples.update(samples[alike].tolist())
                close.append(count + alike)
                count += rows_of(part)
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
            self._digests.update(digests_of(part, np.flatnonzero(np.isin(samples, close))))
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


def copies_in_words(twice: int, picks: int) -> str:
    """A note on picks that are copies."""
    again = f"picks that are copies of another pick: {twice} of {picks}"
    return f"{again}; max_similarity=1 picks no two alike"
