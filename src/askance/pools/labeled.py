"""Rows of a pool in shards that have a label already, noticed while the pool is read.

They are known by identifiers, where both sides have a column of them, else by what is stored: features,
or what a network is given.
"""

from __future__ import annotations

from copy import copy

from askance.embedding import Embedding
from askance.pools.source import Part, Parts, Source
from askance.selection.excluded import Excluded
from askance.selection.overlap import AlreadyLabeled
from askance.selection.selection import Skipped

_ROWS = 1 << 12


class LabeledItems:
    """The labelled items, to be looked for among the rows of shards.

    Args:
        labeled: where they are.
        pool: where the rows are.
        parts: what is read of them.
        excluded: what is not to be picked.
    """

    def __init__(self, labeled: Source, pool: Source, parts: Parts, excluded: Excluded) -> None:
        self._by_id = not labeled.unique_ids and not pool.unique_ids
        # Of what is read, what says the most.
        order: tuple[Part, ...] = ("inputs", "features", "logits")
        self._part = next((part for part in order if part in parts), order[-1])
        self._known = AlreadyLabeled(excluded)
        wanted = frozenset[Part]({self._part}) & parts & labeled.holds
        if not wanted and not self._by_id:
            return
        for shard in labeled.shards:
            for rows in labeled.read(shard, _ROWS, wanted):
                if not isinstance(rows, Skipped):
                    ids = rows.ids if self._by_id else None
                    self._known.learn(getattr(rows, self._part), ids=ids)

    def fresh(self) -> LabeledItems:
        """The same items, and no row looked at yet."""
        twin = copy(self)
        twin._known = self._known.fresh()
        return twin

    def look(self, rows: Embedding) -> None:
        """Look for them among some more rows."""
        if len(rows):
            items = getattr(rows, self._part)
            self._known.look(items, ids=rows.ids, positions=rows.positions)

    @property
    def rows(self) -> tuple[int, ...]:
        """The positions of those found."""
        return tuple(self._known.rows().tolist())
