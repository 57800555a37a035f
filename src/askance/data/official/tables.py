"""Lines of numbers, as UCI and OpenML publish them: German credit, Gisette and ISOLET.

Shapes: N rows; D features.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askance.data.archives import GIB, members_named
from askance.data.columns import features, lists
from askance.data.record import Rows, SourceSplits
from askance.errors import DataError


def german(classes: Sequence[str], archive: Path) -> SourceSplits:
    """A zip with a file of 24 numbers and a class, 1 or 2, a line."""
    return _lines_with_classes(classes, archive, ["german.data-numeric"], columns=25)


def german_columns(table: Any, where: str) -> NDArray[np.float32]:
    """The columns `num1` to `num24` of a compact copy, (N, 24)."""
    return features(table, [f"num{number}" for number in range(1, 25)], where)


def isolet(classes: Sequence[str], archive: Path) -> SourceSplits:
    """A zip of two files of 617 features and a class, 1 to 26, a line."""
    files = ["isolet1+2+3+4.data", "isolet5.data"]
    return _lines_with_classes(classes, archive, files, columns=618, delimiter=",")


def isolet_column(table: Any, where: str) -> NDArray[np.float32]:
    """The column `x` of a compact copy: 617 whole ten-thousandths a row, (N, 617)."""
    ten_thousandths = lists(table, "x", where, whole=True, length=617)
    return (ten_thousandths / 10_000).astype(np.float32)


def gisette(classes: Sequence[str], archive: Path) -> SourceSplits:
    """A zip of files of 5,000 numbers a line, with the labels −1 and 1 in files of their own.

    The labels of the test split were never published: the official validation split is the test here.
    """

    def rows(split: str) -> Rows:
        where = f"gisette_{split}"
        data, labels = members_named(archive, [f"{where}.data", f"{where}.labels"], limit=GIB)
        signs_N = numbers(labels, f"{where}.labels", columns=1)[:, 0]
        if not np.isin(signs_N, (-1, 1)).all():
            raise DataError(f"{where}.labels: the labels must be −1 or 1")
        features_ND = numbers(data, f"{where}.data", columns=5_000).astype(np.float32)
        return Rows.of(features_ND, (signs_N + 1) / 2, classes=len(classes), where=where)

    return SourceSplits(rows("train"), rows("valid"))


def _lines_with_classes(
    classes: Sequence[str],
    archive: Path,
    files: Sequence[str],
    *,
    columns: int,
    delimiter: str | None = None,
) -> SourceSplits:
    """The lines of all files together, the last of the columns a class counted from 1."""
    members = members_named(archive, files, limit=GIB)
    table = np.concatenate(
        [
            numbers(data, file, columns=columns, delimiter=delimiter)
            for file, data in zip(files, members, strict=True)
        ]
    )
    labels_N = whole_numbers(table[:, -1], archive.name) - 1
    features_ND = table[:, :-1].astype(np.float32)
    return SourceSplits(Rows.of(features_ND, labels_N, classes=len(classes), where=archive.name))


def numbers(
    data: bytes, where: str, *, columns: int, delimiter: str | None = None
) -> NDArray[np.float64]:
    """Lines of numbers as (N, columns); an error names the line that is not."""
    try:
        text = io.StringIO(data.decode("ascii"))
        table = np.loadtxt(text, delimiter=delimiter, ndmin=2, comments=None)
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{where}: not a table of numbers ({error})") from error
    if table.shape[1] != columns or len(table) == 0:
        raise DataError(f"{where}: expected lines of {columns} numbers, got {table.shape}")
    if not np.isfinite(table).all():
        raise DataError(f"{where}: a value is NaN or infinite")
    return table


def whole_numbers(values: ArrayLike, where: str) -> NDArray[np.int64]:
    """Classes written as numbers (N,); an error where one is not whole."""
    classes_N = np.asarray(values, dtype=np.float64)
    if not np.array_equal(classes_N, np.round(classes_N)):
        raise DataError(f"{where}: the classes must be whole numbers")
    return classes_N.astype(np.int64)
