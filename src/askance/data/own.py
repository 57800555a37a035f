"""What all of a user's own data has in common: the checks of its classes, and its splits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.data.entry import Encode, Parts
from askance.data.prepare import assembled
from askance.data.record import Dataset, Items, Kind
from askance.errors import DataError

FEWEST = 3  # of a class: one each for the pool, validation and test


def check_classes(labels_N: NDArray[np.int64], classes: tuple[str, ...], where: str) -> None:
    """Refuse data that cannot be split by class into pool, validation and test."""
    if len(classes) < 2:
        found = f"only {classes[0]!r}" if classes else "none"
        raise DataError(f"{where}: at least two classes are needed, found {found}")
    counts = np.bincount(labels_N, minlength=len(classes))
    few = [f"{classes[label]!r} ({counts[label]})" for label in np.flatnonzero(counts < FEWEST)]
    if few:
        raise DataError(
            f"{where}: every class needs at least {FEWEST} items, one each for pool, validation and "
            f"test; too few of {', '.join(few)}"
        )


def your_own(
    name: str,
    kind: Kind,
    parts: Parts,
    classes: tuple[str, ...],
    encode: Encode,
    *,
    raw: Items | None = None,
    read: Callable[[Any], Any] | None = None,
) -> Dataset:
    """The record of a user's rows: a fifth for testing, a tenth of the rest for validation."""
    return assembled(
        name,
        kind,
        parts,
        classes,
        encode,
        source=f"your own, {name}",
        licence="yours",
        citation="",
        at_least=1,
        raw=raw,
        read=read,
    )
