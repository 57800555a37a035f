"""Datasets as Parquet files: the cache, and compact copies in a folder of `ASKANCE_DATA`.

A file that is written here has columns `item`, `label`, `split` (train, val or test) and `index` (the
position in the official split), and its schema has the key `askance`. A compact copy is called
`<name>.parquet`, or `<name>-train.parquet` and `<name>-test.parquet`. It has the same columns, except
that the dataset's entry says which columns hold the items and the labels. Where a copy has fewer rows
than the official set, or is other than it, `subset` says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from askance._io.atomic import atomic_write
from askance.data.catalog import Compact, Entry
from askance.data.columns import column, fixed, integers, read_parquet
from askance.data.prepare import shortfall
from askance.data.record import Items, Rows, SourceSplits
from askance.errors import DataError

_KEY = b"askance"
_FORMAT = 1
_DTYPES = ("uint8", "float32")
_SPLITS = ("train", "val", "test")


def cache_folder() -> Path:
    """Where parsed datasets are kept: ASKANCE_CACHE, else `askance` in the user's cache folder."""
    named = os.environ.get("ASKANCE_CACHE")
    if named:
        return Path(named).expanduser()
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "askance"


def find(name: str, folders: Iterable[Path]) -> tuple[Path, ...]:
    """The files of a dataset in the first folder that has any; empty where none has."""
    for folder in folders:
        whole = folder / f"{name}.parquet"
        if whole.is_file():
            return (whole,)
        pair = tuple(folder / f"{name}-{split}.parquet" for split in ("train", "test"))
        missing = [path for path in pair if not path.is_file()]
        if len(missing) == 1:
            (there,) = set(pair) - set(missing)
            raise DataError(f"{there} is there and {missing[0].name} is not; both are needed")
        if not missing:
            return pair
    return ()


def read(entry: Entry, paths: tuple[Path, ...]) -> tuple[SourceSplits, str | None]:
    """The rows of the files, and how they are less or other than the official set."""
    where = paths[0].name
    tables = [read_parquet(path) for path in paths]
    compact = _layout_of_cache(tables[0], entry, where) or entry.compact
    if compact is None:
        raise DataError(
            f"{where}: no compact form is known for {entry.name}; fetch the official one"
        )
    groups = [_by_split(table, path.name) for table, path in zip(tables, paths, strict=True)]
    split = {name: rows for group in groups for name, rows in group.items()}
    if entry.pooled:
        joined = pa.concat_tables(split.values(), promote_options="default")
        splits = SourceSplits(_rows(entry, compact, joined, where, None))
    elif {"train", "test"} <= split.keys():
        train, test = (_rows(entry, compact, split[s], where, s) for s in ("train", "test"))
        val = None
        if "val" in split:
            val = _rows(entry, compact, split["val"], where, "val", first=len(train))
        splits = SourceSplits(train, test, val)
    else:
        raise DataError(f"{where}: rows of train and of test are needed, found {sorted(split)}")
    remarks = (compact.other, shortfall(splits, entry))
    return splits, ", ".join(remark for remark in remarks if remark) or None


def _layout_of_cache(table: Any, entry: Entry, where: str) -> Compact | None:
    """How a file that was written here is read; None for any other file."""
    written = (table.schema.metadata or {}).get(_KEY)
    if written is None:
        return None
    try:
        form = json.loads(written)
        readable = form["format"] == _FORMAT and isinstance(form["name"], str)
        if form.get("dtype") is not None:
            readable &= form["dtype"] in _DTYPES and all(0 < n < 10**6 for n in form["shape"])
    except (ValueError, KeyError, TypeError, AttributeError):
        readable = False
    if not readable:
        raise DataError(
            f"{where}: kept in another format than this version's {_FORMAT}; delete the file and "
            "fetch it again"
        )
    if form["name"] != entry.name:
        raise DataError(f"{where}: holds {form['name']!r}, not {entry.name!r}")
    if form.get("dtype") is None:
        return Compact(lambda table, where: column(table, "item", where).to_pylist())
    dtype, shape = np.dtype(form["dtype"]), tuple(form["shape"])
    return Compact(partial(fixed, name="item", dtype=dtype, shape=shape))


def _by_split(table: Any, where: str) -> dict[str, Any]:
    if "split" not in table.column_names:
        return {"train": table}
    splits = np.asarray(column(table, "split", where).to_pylist())
    unknown = sorted(set(splits.tolist()) - set(_SPLITS))
    if unknown:
        raise DataError(f"{where}: column 'split' must say train, val or test, found {unknown}")
    return {
        name: table.filter(pa.array(splits == name)) for name in _SPLITS if (splits == name).any()
    }


def _rows(
    entry: Entry, compact: Compact, table: Any, where: str, split: str | None, first: int = 0
) -> Rows:
    """Rows of a table; positions are counted from `first` where the table does not say them."""
    items = compact.items(table, where)
    labels = integers(table, compact.label, where) - compact.first
    index = np.arange(first, first + len(labels))
    if split is not None and "index" in table.column_names:
        index = integers(table, "index", where)
        if len(np.unique(index)) != len(index):
            raise DataError(f"{where}: an official position is given twice among the {split} rows")
    return Rows.of(items, labels, classes=len(entry.classes), where=where, index=index)


def write(path: Path, entry: Entry, splits: SourceSplits) -> None:
    """Keep parsed rows at `path`, whole or not at all."""
    named = {"train": splits.train, "val": splits.val, "test": splits.test}
    tables = [_table(split, rows) for split, rows in named.items() if rows is not None]
    form = {"format": _FORMAT, "name": entry.name}
    items = splits.train.items
    if isinstance(items, np.ndarray):
        form |= {"dtype": str(items.dtype), "shape": list(items.shape[1:])}
    schema = tables[0].schema.with_metadata({_KEY: json.dumps(form).encode()})
    table = pa.concat_tables(tables).cast(schema)
    write_file(path, lambda partial: pq.write_table(table, partial, compression="zstd"))


def write_file(path: Path, content: bytes | Callable[[Path], object]) -> None:
    """Write a file of the cache, whole or not at all, in a folder that is made where there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error}; is the folder writable?") from error
    atomic_write(path, content, error=DataError)


def _table(split: str, rows: Rows) -> Any:
    items: Items = rows.items
    if isinstance(items, np.ndarray):
        data = pa.array([np.ascontiguousarray(item).tobytes() for item in items], pa.large_binary())
    else:
        data = pa.array(list(items), pa.large_string())
    return pa.table(
        {
            "item": data,
            "label": pa.array(rows.labels, pa.int16()),
            "split": pa.array([split] * len(rows), pa.string()),
            "index": pa.array(rows.index, pa.int32()),
        }
    )
