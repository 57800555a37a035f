"""What may not be picked, as a caller says it and as blocks of a pool are asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askance.embedding import Embedding
from askance.errors import InputError

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Excluded:
    """Rows that may not be picked.

    Args:
        positions: their positions in the pool, ascending.
        ids: identifiers of more of them.
        length: how many rows the pool has to have, where they were given as a mask.
    """

    positions: Rows
    ids: frozenset[str] = frozenset()
    length: int | None = None

    @classmethod
    def of(cls, exclude: Any) -> Excluded:
        """What a caller excludes: indices, identifiers, or a mask of the whole pool."""
        if isinstance(exclude, Excluded):
            return exclude
        none = np.empty(0, dtype=np.int64)
        if exclude is None:
            return cls(none)
        given = list(exclude) if isinstance(exclude, (set, frozenset)) else exclude
        rows = given.cpu().numpy() if isinstance(given, torch.Tensor) else np.asarray(given)
        if rows.size == 0:
            return cls(none)
        if rows.ndim == 1 and all(isinstance(name, str) for name in rows[:1].tolist()):
            names = rows.tolist()
            if all(isinstance(name, str) for name in names):
                return cls(none, frozenset(names))
        if rows.ndim == 1 and rows.dtype == bool:
            return cls(np.flatnonzero(rows), length=len(rows))
        if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
            hint = "; pass its .indices" if hasattr(exclude, "indices") else ""
            raise InputError(
                f"exclude must be a list of pool indices or of identifiers, or a mask of the pool, got "
                f"{rows.dtype} of shape {rows.shape}{hint}"
            )
        return cls(np.unique(rows).astype(np.int64))

    def check_room(self, n: int, count: int) -> None:
        """Raise where fewer than n of `count` points may be picked."""
        if count == 0:
            raise InputError("the pool must hold at least one point, it is empty")
        if self.length is not None and self.length != count:
            raise InputError(
                f"exclude as a mask must have one entry for each row of the pool: the pool has "
                f"{count} rows, the mask {self.length}"
            )
        positions = self.positions
        if len(positions) and (positions[0] < 0 or positions[-1] >= count):
            bad = positions[0] if positions[0] < 0 else positions[-1]
            raise InputError(f"exclude must hold pool indices between 0 and {count - 1}, got {bad}")
        _check_free(n, count, len(positions))

    def check_found(self, n: int, count: int, excluded: int, ids: bool) -> None:
        """The same once the pool is read: with what is excluded by identifier, if it has any."""
        self.check_room(n, count)
        if self.ids and not ids:
            some = ", ".join(map(repr, sorted(self.ids)[:3]))
            raise InputError(
                f"exclude holds identifiers ({some}, …), and the pool has none; pass pool indices or "
                f"a mask"
            )
        _check_free(n, count, excluded)

    def among(self, block: Embedding) -> Rows:
        """Which rows of a block are excluded, ascending."""
        by_id = np.empty(0, dtype=np.int64)
        if self.ids and block.ids is not None:
            by_id = block.ids.find(self.ids)
        if not len(self.positions):
            return by_id
        if isinstance(block.positions, range):
            first, last = block.positions.start, block.positions.stop
            low, high = np.searchsorted(self.positions, [first, last])
            by_position = self.positions[low:high] - first
        else:
            by_position = np.flatnonzero(np.isin(block.positions, self.positions))
        return np.union1d(by_id, by_position) if len(by_id) else by_position

    def free(self, block: Embedding) -> Rows | None:
        """The rows of a block that may be picked; None for all of them."""
        excluded = self.among(block)
        if not len(excluded):
            return None
        free = np.ones(len(block), dtype=bool)
        free[excluded] = False
        return np.flatnonzero(free)

    def free_rows(self, pool: Embedding) -> Embedding:
        """The pool without what is excluded."""
        free = self.free(pool)
        return pool if free is None else pool[free]


def _check_free(n: int, count: int, excluded: int) -> None:
    free = count - excluded
    if n > free:
        left = f" and {excluded} of them excluded" if excluded else ""
        raise InputError(
            f"n = {n} points were asked for, the pool has {count}{left}; ask for at most {free}"
        )
