"""Tables of other libraries: pandas' and Polars' frames and series, and Hugging Face's datasets.

They are told by what they have, so that none of these libraries is ever imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from askance.embedding.items import LABEL_KEYS
from askance.errors import InputError, LabelError

_NAMES_OF_IDS = ("id", "ids", "key", "index", "idx", "uid")


def is_frame(data: Any) -> bool:
    """Whether the data is a table of named columns."""
    return _is_pandas(data) or _is_polars(data) or is_hf_dataset(data)


def is_series(data: Any) -> bool:
    """Whether the data is one column of such a table."""
    pandas = hasattr(data, "iloc") and not hasattr(data, "columns")
    return pandas or (_of(data, "polars") and hasattr(data, "to_list") and not _is_polars(data))


def is_hf_dataset(data: Any) -> bool:
    """Whether the data is a `datasets.Dataset`."""
    return _of(data, "datasets") and hasattr(data, "column_names") and hasattr(data, "select")


def check_one_split(data: Any, what: str) -> None:
    """Refuse what holds several tables, or none yet."""
    if _of(data, "datasets") and isinstance(data, dict):
        raise InputError(
            f"the {what} is a DatasetDict of {', '.join(map(repr, data))}; pass one of them"
        )
    if _of(data, "polars") and hasattr(data, "collect"):
        raise InputError(f"the {what} is a LazyFrame, which has no rows yet; pass its .collect()")


def columns_of(frame: Any) -> list[str]:
    """The names of the columns."""
    return list(frame.column_names if is_hf_dataset(frame) else frame.columns)


def column_of(frame: Any, name: str) -> list[Any]:
    """A column as a list."""
    values = frame[name]
    return list(values) if is_hf_dataset(frame) else list(values.to_list())


def without_column(frame: Any, name: str) -> Any:
    """The frame without a column, of the same kind."""
    if is_hf_dataset(frame):
        return frame.remove_columns([name])
    return frame.drop(columns=[name]) if _is_pandas(frame) else frame.drop(name)


def frame_rows(data: Any, rows: NDArray[np.int64]) -> Any:
    """Those rows of a frame or a series, of the kind that it is."""
    if is_hf_dataset(data):
        return data.select(rows)
    return data.iloc[rows] if hasattr(data, "iloc") else data[rows]


def stacked_frames(parts: Sequence[Any]) -> Any:
    """Frames or series of one kind, one after the other."""
    first = parts[0]
    if is_hf_dataset(first):
        return import_module("datasets").concatenate_datasets(list(parts))
    if hasattr(first, "iloc"):
        return import_module("pandas").concat(list(parts))
    return import_module("polars").concat(list(parts))


def label_column(frame: Any) -> str | None:
    """The column of labels, by its name; None where there is none."""
    names = [name for name in LABEL_KEYS if name in columns_of(frame)]
    if len(names) > 1:
        raise LabelError(
            f"the frame has several columns of labels, {', '.join(map(repr, names))}; pass (X, y)"
        )
    return names[0] if names else None


def parted(frame: Any) -> tuple[Any, list[Any]]:
    """(the frame without its labels, the labels)."""
    name = label_column(frame)
    if name is None:
        raise LabelError(
            f"a labelled frame needs a column of labels, called {', '.join(LABEL_KEYS)}; it has "
            f"{', '.join(map(repr, columns_of(frame)))}. Rename one, or pass (X, y)"
        )
    return without_column(frame, name), column_of(frame, name)


def class_names_of(frame: Any) -> tuple[str, ...] | None:
    """The names that a `datasets.Dataset` has for its labels, in their order."""
    name = label_column(frame) if is_hf_dataset(frame) else None
    names = None if name is None else getattr(frame.features[name], "names", None)
    return None if names is None else tuple(names)


def items_of(data: Any, kind: Literal["text", "image"], what: str) -> Any:
    """The texts or images of a frame or a series, as a list; other data as it is."""
    check_one_split(data, what)
    if is_series(data):
        return list(data.to_list())
    if not is_frame(data):
        return data
    fitting = [
        name
        for name in columns_of(data)
        if name not in LABEL_KEYS and name.lower() not in _NAMES_OF_IDS and _holds(data, name, kind)
    ]
    if len(fitting) != 1:
        several = f"columns {', '.join(map(repr, fitting))} of {kind}s" if fitting else "none"
        raise InputError(
            f"the {what} needs one column of {kind}s, it has {several} among "
            f"{', '.join(map(repr, columns_of(data)))}; pass the column itself, as in "
            f"frame[{(fitting or columns_of(data) or ['text'])[0]!r}]"
        )
    return [_stored(value) for value in column_of(data, fitting[0])]


def numbers_of_frame(data: Any, what: str) -> Any:
    """A frame or a series of numbers as a float32 array, for a network; other data as it is.

    A column of labels is left out. A `datasets.Dataset` stays as it is: its items are mappings.
    """
    check_one_split(data, what)
    if not (_is_pandas(data) or _is_polars(data)):
        return data
    names = [name for name in columns_of(data) if name not in LABEL_KEYS]
    called = [name for name in names if str(name).lower() in _NAMES_OF_IDS]
    if called:
        raise InputError(
            f"column {called[0]!r} of the {what} looks like an identifier; drop it, or rename it "
            f"if it is a feature"
        )
    arrays = [np.asarray(data[name].to_numpy()) for name in names]
    other = [
        name for name, array in zip(names, arrays, strict=True) if array.dtype.kind not in "biuf"
    ]
    if other:
        raise InputError(
            f"a network takes numbers, and columns {', '.join(map(repr, other))} of the {what} hold "
            f"none; drop them, or encode them"
        )
    return np.stack([array.astype(np.float32) for array in arrays], axis=1)


def _holds(frame: Any, name: str, kind: str) -> bool:
    """Whether the first value of a column is a text, or an image."""
    if not len(frame):
        return False
    value = frame_rows(frame, np.array([0]))[name]
    first = (list(value) if is_hf_dataset(frame) else value.to_list())[0]
    if kind == "text":
        return isinstance(first, str)
    pixels = isinstance(first, np.ndarray) and first.ndim == 3
    return pixels or hasattr(first, "convert") or isinstance(_stored(first), (bytes, Path, str))


def _stored(value: Any) -> Any:
    """An image as it is stored: `datasets` keeps its bytes, or its path, in a mapping."""
    if isinstance(value, dict) and {"bytes", "path"} & set(value):
        return value.get("bytes") or value.get("path")
    return value


def _is_pandas(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "columns")


def _is_polars(data: Any) -> bool:
    return _of(data, "polars") and hasattr(data, "columns") and hasattr(data, "height")


def _of(data: Any, package: str) -> bool:
    return any(kind.__module__.partition(".")[0] == package for kind in type(data).__mro__)
