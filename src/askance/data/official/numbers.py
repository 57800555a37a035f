"""Lines of numbers, as UCI and OpenML publish them."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askance.errors import DataError

UCI = "https://archive.ics.uci.edu/static/public"
UCI_LICENCE = "CC BY 4.0"
UCI_CHECKSUMS = "none published by UCI"


def table(
    data: bytes, where: str, *, columns: int, delimiter: str | None = None
) -> NDArray[np.float64]:
    """Lines of numbers as (N, columns); an error names the line that is not."""
    try:
        rows = np.loadtxt(
            io.StringIO(data.decode("ascii")), delimiter=delimiter, ndmin=2, comments=None
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{where}: not a table of numbers ({error})") from error
    if rows.shape[1] != columns or len(rows) == 0:
        raise DataError(f"{where}: expected lines of {columns} numbers, got {rows.shape}")
    if not np.isfinite(rows).all():
        raise DataError(f"{where}: a value is NaN or infinite")
    return rows


def classes_from(values: ArrayLike, where: str, *, first: int = 0) -> NDArray[np.int64]:
    """Whole numbers counted from `first` as classes counted from 0."""
    numbers = np.asarray(values, dtype=np.float64)
    if not np.array_equal(numbers, np.round(numbers)):
        raise DataError(f"{where}: the classes must be whole numbers")
    return numbers.astype(np.int64) - first
