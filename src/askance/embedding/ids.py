"""Identifiers of rows: in a list, or as a file stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


class Ids(Protocol):
    """The identifiers of some rows. They become texts only where somebody asks for them."""

    def __len__(self) -> int: ...

    def take(self, rows: Rows) -> list[str]:
        """The identifiers of some of the rows."""
        ...

    def find(self, wanted: frozenset[str]) -> Rows:
        """The rows whose identifier is one of `wanted`, ascending."""
        ...


@dataclass(frozen=True, eq=False)
class Listed:
    """Identifiers in a list."""

    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    def take(self, rows: Rows) -> list[str]:
        return [self.names[row] for row in rows]

    def find(self, wanted: frozenset[str]) -> Rows:
        rows = [row for row, name in enumerate(self.names) if name in wanted]
        return np.array(rows, dtype=np.int64)
