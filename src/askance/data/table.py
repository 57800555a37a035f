"""Your own table: a CSV or Parquet file of features or of texts, with a column of labels."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from askance.data.columns import column, lists, read_parquet, written_lists
from askance.data.encode import OnEncode, encoded_by, standardised, weighted_words
from askance.data.prepare import check_classes, your_own
from askance.data.record import Dataset, Rows
from askance.data.splits import Imbalance
from askance.encoders import Encoder
from askance.errors import DataError, InputError

SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
_ID_NAMES = ("id", "index", "key", "uid", "row")


def from_table(
    path: str | os.PathLike[str],
    label: str = "label",
    text: str | None = None,
    *,
    features: str | Sequence[str] | None = None,
    encoder: str | Encoder | None = None,
    imbalance: Imbalance | None = None,
    on_encode: OnEncode | None = None,
) -> Dataset:
    """The rows of a table, with a stratified test and validation split.

    Args:
        path: a CSV, TSV or Parquet file.
        label: the column of classes, which are its distinct values in order.
        text: the column of texts, which become weighted words, or the features of an encoder.
        features: the columns of numbers, one name or several: a column holds a number a row, or a list
            of numbers such as an embedding. `e*` is every column whose name begins with e, but the
            label's. All columns but the label's when None.
        encoder: of the texts.
        imbalance: which classes are made rare in the pool.
        on_encode: called with (items done, items) while the encoder works.

    Columns that are not named are left alone.
    """
    if features is not None and (text is not None or encoder is not None):
        raise InputError(
            "features are numbers to learn from as they are: leave text and encoder out, or features"
        )
    file = Path(path)
    table = open_table(file, as_text=() if text is None else (text,))
    where = file.name
    if label not in table.column_names:
        raise DataError(
            f"{where}: no column {label!r}; it has {', '.join(table.column_names)}; name the column of "
            f"labels with label="
        )
    labels, classes = _labels(column(table, label, where), label, where)
    check_classes(labels, classes, where)
    if text is not None:
        texts = texts_of(column(table, text, where), text, where)
        rows = Rows.of(texts, labels, classes=len(classes), where=where)
        how = weighted_words if encoder is None else encoded_by(encoder, "text", on_encode)
        return your_own(file.stem, "text", rows, classes, how, imbalance=imbalance)
    if encoder is not None:
        raise DataError(f"{where}: to use an encoder, name the column of texts with text=")
    if features is None:
        names = _every_other(table, label, where)
    else:
        names = _named([features] if isinstance(features, str) else features, table, label, where)
    matrix = np.concatenate([_numbers(table, name, where) for name in names], axis=1)
    rows = Rows.of(matrix.astype(np.float32), labels, classes=len(classes), where=where)
    return your_own(file.stem, "tabular", rows, classes, standardised, imbalance=imbalance)


def open_table(file: Path, as_text: Sequence[str] = ()) -> Any:
    """A CSV, TSV or Parquet file as a table; an error names a file that is none.

    The columns `as_text` of a CSV are taken as they are written: 007 is no 7.
    """
    if not file.is_file():
        raise DataError(f"{file}: no such file")
    if file.suffix.lower() not in SUFFIXES:
        raise DataError(f"{file.name}: expected .csv, .tsv or .parquet, got {file.suffix!r}")
    if file.suffix.lower() in (".parquet", ".pq"):
        return _with_different_names(read_parquet(file, "write it again"), file.name)
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    try:
        table = pc.read_csv(
            file,
            parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pc.ConvertOptions(column_types={name: pa.string() for name in as_text}),
        )
        names = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{file.name}: not a readable table ({error}); expected UTF-8, columns parted by "
            f"{delimiter!r}"
        ) from error
    for name, kind in zip(names, table.schema.types, strict=True):
        if pa.types.is_binary(kind):  # what could not be read as text
            raise DataError(f"{file.name}: column {name!r} is not UTF-8; save the file as UTF-8")
    return _with_different_names(table, file.name)


def _with_different_names(table: Any, where: str) -> Any:
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise DataError(f"{where}: several columns are named {twice[0]!r}; names must differ")
    return table


def _labels(cells: Any, name: str, where: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if pa.types.is_floating(cells.type) or pa.types.is_nested(cells.type):
        raise DataError(
            f"{where}: column {name!r} must hold names or whole numbers of classes, got {cells.type}"
        )
    values = cells.to_pylist()
    if "" in values:
        raise DataError(
            f"{where}: {values.count('')} rows have no label in column {name!r}; only labelled "
            f"rows can be used here: leave the others out"
        )
    distinct = sorted(set(values))
    number = {value: row for row, value in enumerate(distinct)}
    labels = np.asarray([number[value] for value in values], dtype=np.int64)
    return labels, tuple(str(value) for value in distinct)


def texts_of(cells: Any, name: str, where: str) -> list[str]:
    """A column of texts; `name` and `where` are its column and file, for an error."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
        raise DataError(f"{where}: column {name!r} must hold texts, got {cells.type}")
    return list(cells.to_pylist())


def _every_other(table: Any, label: str, where: str) -> list[str]:
    """All columns but the label's, each of which must be a number a row."""
    names = [name for name in table.column_names if name != label]
    numbering = [name for name in names if _numbers_rows(table, name)]
    if numbering:
        raise DataError(
            f"{where}: column {numbering[0]!r} looks like an identifier, every row having another "
            f"whole number; drop it, or name the columns to learn from with features="
        )
    if not names:
        raise DataError(f"{where}: no column of features beside {label!r}")
    if "" in names:
        raise DataError(
            f"{where}: a column without a name; is it an index? pandas leaves it out with index=False"
        )
    other = [name for name in names if not _is_number(table.schema.field(name).type)]
    if other:
        raise DataError(
            f"{where}: features must be numeric, {', '.join(map(repr, other))} are not; drop them, "
            f"name the columns to learn from with features=, or the column of texts with text="
        )
    return names


def _numbers_rows(table: Any, name: str) -> bool:
    """Whether a column is called an identifier, and each of its whole numbers comes once."""
    called = name.lower() in _ID_NAMES or name.lower().endswith(("_id", "-id", " id"))
    whole = pa.types.is_integer(table.schema.field(name).type)
    return called and whole and len(table.column(name).unique()) == table.num_rows


def _named(wanted: Sequence[str], table: Any, label: str, where: str) -> list[str]:
    """The columns of some names, in their order; a name that ends in * stands for all it begins."""
    names: dict[str, None] = {}
    for each in wanted:
        if each.endswith("*") and each not in table.column_names:
            begun = [name for name in table.column_names if name.startswith(each[:-1])]
            found = [name for name in begun if name != label]
        else:
            found = [each] if each in table.column_names else []
        if not found:
            there = ", ".join(table.column_names[:20])
            more = ", …" if len(table.column_names) > 20 else ""
            raise DataError(f"{where}: no column {each!r} of features; it has {there}{more}")
        names |= dict.fromkeys(found)
    if label in names:
        raise DataError(
            f"{where}: the column {label!r} holds the labels, so it cannot be a feature"
        )
    if not names:
        raise DataError(f"{where}: name at least one column of features")
    return list(names)


def _is_number(kind: Any) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )


def _numbers(table: Any, name: str, where: str) -> NDArray[np.float64]:
    """A column as (N, D): D is 1 for numbers, and for lists how long they are."""
    cells = column(table, name, where)
    if pa.types.is_nested(cells.type):
        return lists(table, name, where).astype(np.float64)
    if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
        matrix = written_lists(cells.to_pylist(), name, where)
    elif _is_number(cells.type):
        matrix = cells.to_numpy(zero_copy_only=False).astype(np.float64)[:, None]
    else:
        raise DataError(
            f"{where}: column {name!r} must hold numbers, or lists of them, got {cells.type}"
        )
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        raise DataError(f"{where}: column {name!r}, row {bad[0][0]} is NaN or infinite")
    return matrix
