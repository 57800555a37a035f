"""Compact copies of the datasets, `<name>.parquet` or `<name>-train.parquet` and `<name>-test.parquet`.

Columns `label`, `split` (train or test) and `index` (the position in the official split), and the items
in whatever columns the dataset's entry reads. Where a copy has fewer rows than the official set, or is
other than it, `subset` says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askance.data import cache
from askance.data.columns import column, integers, opened
from askance.data.entry import Compact, Entry, Parts, Rows
from askance.data.prepare import shortfall
from askance.errors import DataError


def find(name: str, folders: Iterable[Path]) -> tuple[Path, ...]:
    """The files of a dataset in the first folder that has any; empty where none has."""
    for folder in folders:
        whole = folder / f"{name}.parquet"
        if whole.is_file():
            return (whole,)
        pair = tuple(folder / f"{name}-{split}.parquet" for split in ("train", "test"))
        there = [path for path in pair if path.is_file()]
        if len(there) == 1:
            missing = next(path for path in pair if path not in there)
            raise DataError(f"{there[0]} is there and {missing.name} is not; both are needed")
        if there:
            return pair
    return ()


def read(entry: Entry, paths: tuple[Path, ...]) -> tuple[Parts, str | None]:
    """The rows of the files, and how they are less or other than the official set."""
    where = paths[0].name
    tables = [opened(path) for path in paths]
    form = cache.form_of(tables[0], where)
    if form is not None:
        parts = cache.read(tables[0], form, entry, where)
        return parts, shortfall(parts, entry.official, entry.noun)
    compact = entry.compact
    if compact is None:
        raise DataError(
            f"{where}: no compact form is known for {entry.name}; fetch the official one"
        )
    groups = [_by_split(table, path.name) for table, path in zip(tables, paths, strict=True)]
    split = {name: rows for group in groups for name, rows in group.items()}
    if entry.pooled:
        joined = pa.concat_tables(split.values(), promote_options="default")
        parts = Parts(_rows(entry, compact, joined, where, None))
    elif {"train", "test"} <= split.keys():
        train, test = (_rows(entry, compact, split[s], where, s) for s in ("train", "test"))
        parts = Parts(train, test)
    else:
        raise DataError(f"{where}: rows of train and of test are needed, found {sorted(split)}")
    less = shortfall(parts, entry.official, entry.noun)
    return parts, ", ".join(said for said in (compact.other, less) if said) or None


def _by_split(table: Any, where: str) -> dict[str, Any]:
    if "split" not in table.column_names:
        return {"train": table}
    splits = np.asarray(column(table, "split", where).to_pylist())
    unknown = sorted(set(splits.tolist()) - {"train", "test"})
    if unknown:
        raise DataError(f"{where}: column 'split' must say train or test, found {unknown}")
    return {
        name: table.filter(pa.array(splits == name))
        for name in ("train", "test")
        if (splits == name).any()
    }


def _rows(entry: Entry, compact: Compact, table: Any, where: str, split: str | None) -> Rows:
    items = compact.items(table, where)
    labels = integers(table, compact.label, where) - compact.first
    index = None
    if split is not None and "index" in table.column_names:
        index = integers(table, "index", where)
        if len(np.unique(index)) != len(index):
            raise DataError(f"{where}: an official position is given twice among the {split} rows")
    return Rows.of(items, labels, classes=len(entry.classes), where=where, index=index)
