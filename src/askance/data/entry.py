"""What is known of a dataset before it is read: where it is published, how it is parsed and encoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from askance.data.record import Items, Kind
from askance.errors import DataError

Encode = Callable[[Items, Sequence[Items]], list[Tensor]]


@dataclass(frozen=True, eq=False)
class Rows:
    """Parsed items with their labels, and each one's position in the official split."""

    items: Items
    labels: NDArray[np.int64]
    index: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        items: Items,
        labels: ArrayLike,
        *,
        classes: int,
        where: str,
        index: ArrayLike | None = None,
    ) -> Rows:
        """Rows with labels 0 to classes − 1; `where` names the file in an error."""
        known = np.asarray(labels).astype(np.int64)
        if known.shape != (len(items),):
            raise DataError(f"{where}: {len(items)} items with labels of shape {known.shape}")
        if len(known) == 0:
            raise DataError(f"{where}: no items")
        if known.min() < 0 or known.max() >= classes:
            raise DataError(
                f"{where}: labels must be of {classes} classes, found one outside: "
                f"{known.min()} to {known.max()} counted from 0"
            )
        positions = np.arange(len(known)) if index is None else np.asarray(index)
        return cls(items, known, positions.astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Parts:
    """A parsed source: its training rows, and its test rows where the source has a test split."""

    train: Rows
    test: Rows | None = None


@dataclass(frozen=True)
class Remote:
    """An official file. `checksum` as pooch writes it (`md5:…`), None where none is published.

    Without one, the sha256 of the first copy that was parsed whole is recorded and held to afterwards.
    """

    file: str
    url: str
    checksum: str | None


@dataclass(frozen=True)
class Compact:
    """How a compact Parquet copy is read: its items, and the column of labels counted from `first`.

    `other` says how such a copy is other than the official files.
    """

    items: Callable[[Any, str], Items]
    label: str = "label"
    first: int = 0
    other: str | None = None


@dataclass(frozen=True)
class Entry:
    """One dataset of the catalogue.

    `official` counts the official training and test items, `noun` is what they are called. `checksums`
    says where the checksums of `files` are published. `pool` is the protocol's uniform subsample of the
    training source after validation has left it; None keeps all. `pooled` puts the official splits
    together, and the protocol cuts its own test split.
    """

    name: str
    kind: Kind
    classes: tuple[str, ...]
    official: tuple[int, int]
    licence: str
    citation: str
    homepage: str
    parse: Callable[[Mapping[str, Path]], Parts]
    encode: Encode
    files: tuple[Remote, ...] = ()
    checksums: str = "none published"
    compact: Compact | None = None
    pool: int | None = None
    pooled: bool = False
    noun: str = "rows"
