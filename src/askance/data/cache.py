"""The one format a parsed dataset is kept in: a Parquet file of items, labels, split and position.

A file written here carries the key `askance` in its schema and is read back as it was. A file without
it is one of the compact copies a folder of `ASKANCE_DATA` may hold, read by `askance.data.local`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from askance._io.atomic import atomic_write
from askance.data.columns import column, fixed, integers
from askance.data.entry import Entry, Parts, Rows
from askance.data.record import Items
from askance.errors import DataError

_KEY = b"askance"
_FORMAT = 1
_DTYPES = ("uint8", "float32")


def folder() -> Path:
    """Where parsed datasets are kept: ASKANCE_CACHE, else `askance` in the user's cache folder."""
    named = os.environ.get("ASKANCE_CACHE")
    if named:
        return Path(named).expanduser()
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "askance"


def write(path: Path, entry: Entry, parts: Parts) -> None:
    """Keep parsed rows at `path`, whole or not at all."""
    rows = [("train", parts.train)] + ([("test", parts.test)] if parts.test is not None else [])
    tables = [_table(split, part) for split, part in rows]
    form = {"format": _FORMAT, "name": entry.name, **_form_of_items(parts.train.items)}
    schema = tables[0].schema.with_metadata({_KEY: json.dumps(form).encode()})
    table = pa.concat_tables(tables).cast(schema)
    keep(path, lambda partial: pq.write_table(table, partial, compression="zstd"))


def keep(path: Path, content: bytes | Callable[[Path], object]) -> None:
    """Write a file of the cache, whole or not at all, in a folder that is made where there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error}; is the folder writable?") from error
    atomic_write(path, content, error=DataError)


def form_of(table: Any, where: str) -> dict[str, Any] | None:
    """What a file written here says of itself; None for any other file."""
    data = (table.schema.metadata or {}).get(_KEY)
    if data is None:
        return None
    try:
        form = json.loads(data)
        known = form["format"] == _FORMAT and isinstance(form["name"], str)
        if form.get("dtype") is not None:
            known &= form["dtype"] in _DTYPES and all(0 < n < 10**6 for n in form["shape"])
    except (ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise DataError(
            f"{where}: kept in another format than this version's {_FORMAT}; delete the file and "
            "fetch it again"
        )
    return dict(form)


def read(table: Any, form: dict[str, Any], entry: Entry, where: str) -> Parts:
    """The rows of a file written here."""
    if form["name"] != entry.name:
        raise DataError(f"{where}: holds {form['name']!r}, not {entry.name!r}")
    splits = np.asarray(column(table, "split", where).to_pylist())
    items: Items
    if form.get("dtype") is None:
        items = column(table, "item", where).to_pylist()
    else:
        items = fixed(table, "item", where, np.dtype(form["dtype"]), tuple(form["shape"]))
    labels = integers(table, "label", where)
    index = integers(table, "index", where)
    parts = [
        Rows.of(
            _selected(items, splits == split),
            labels[splits == split],
            classes=len(entry.classes),
            where=where,
            index=index[splits == split],
        )
        for split in ("train", "test")
        if split == "train" or (splits == split).any()
    ]
    return Parts(*parts)


def _selected(items: Items, mask: NDArray[np.bool_]) -> Items:
    if isinstance(items, np.ndarray):
        return items if mask.all() else items[mask]
    return [items[int(row)] for row in np.flatnonzero(mask)]


def _table(split: str, rows: Rows) -> Any:
    items = rows.items
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


def _form_of_items(items: Items) -> dict[str, Any]:
    if isinstance(items, np.ndarray):
        return {"dtype": str(items.dtype), "shape": list(items.shape[1:])}
    return {}
