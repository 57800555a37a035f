"""Rows of what scikit-learn's models take: frames, series, sparse matrices, arrays, lists, mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import ConcatDataset

from askance.embedding import sources
from askance.embedding.frames import frame_rows, is_frame, is_series, stacked_frames
from askance.embedding.items import without_labels
from askance.errors import InputError

_KINDS = "an array, a DataFrame, a sparse matrix or a list"


def is_table(data: Any) -> bool:
    """Whether the rows are those of a frame, a series, a sparse matrix, or a list of items."""
    return is_frame(data) or is_series(data) or _is_sparse(data) or _is_items(data)


def check_rows(data: Any) -> None:
    """Refuse what has no rows that a model could be given some of."""
    if isinstance(data, Mapping):
        if not without_labels(data):
            raise InputError("a mapping must hold arrays with one row for each point; it is empty")
        for value in without_labels(data).values():
            check_rows(value)
        lengths = {key: row_count(value) for key, value in without_labels(data).items()}
        if len(set(lengths.values())) > 1:
            raise InputError(
                f"arrays of a mapping must have the same number of rows, got {lengths}"
            )
        return
    if not (hasattr(data, "iloc") or _is_sparse(data) or _is_sliceable(data)):
        raise InputError(
            f"a model with predict_proba is given rows of {_KINDS}; got a {type(data).__name__}. The "
            f"module of a skorch net takes Datasets and DataLoaders: pass net.module_"
        )


def row_count(data: Any) -> int:
    """The number of rows."""
    if isinstance(data, Mapping):
        return row_count(next(iter(without_labels(data).values())))
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def rows_between(data: Any, start: int, stop: int) -> Any:
    """Rows start to stop − 1, of the kind that they came in."""
    if isinstance(data, Mapping):
        return {key: rows_between(v, start, stop) for key, v in without_labels(data).items()}
    if hasattr(data, "iloc"):  # by place, whatever the index says
        return data.iloc[start:stop]
    return data[start:stop]


def sliceable(data: Any) -> Any:
    """The same rows in a form of which slices can be taken quickly: other sparse matrices as CSR."""
    if isinstance(data, Mapping):
        return {key: sliceable(value) for key, value in without_labels(data).items()}
    return data.tocsr() if _is_sparse(data) else data


def rows_at(data: Any, rows: NDArray[np.int64]) -> Any:
    """Those rows of a table, of the kind that they came in."""
    if isinstance(data, list):
        return [data[row] for row in rows]
    return data.tocsr()[rows] if _is_sparse(data) else frame_rows(data, rows)


def stacked_rows(parts: Sequence[Any]) -> Any:
    """Rows of one kind, one after the other: tables, arrays, tensors, mappings of them, datasets."""
    first = parts[0]
    if is_frame(first) or is_series(first):
        return stacked_frames(parts)
    if _is_sparse(first):
        from scipy.sparse import vstack  # which takes a while, and few need it

        return vstack([part.tocsr() for part in parts]).tocsr()
    if isinstance(first, list):
        return [row for part in parts for row in part]
    if isinstance(first, Mapping):
        return {key: stacked_rows([part[key] for part in parts]) for key in first}
    if isinstance(first, torch.Tensor):
        return torch.cat(list(parts))
    return np.concatenate(parts) if isinstance(first, np.ndarray) else ConcatDataset(parts)


def _is_items(data: Any) -> bool:
    """Whether the data is a list of texts, or of images as paths, bytes or Pillow images."""
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first, (str, bytes, Path)) or hasattr(first, "convert")


def _is_sparse(data: Any) -> bool:
    return hasattr(data, "tocsr") and hasattr(data, "shape")


def _is_sliceable(data: Any) -> bool:
    if sources.is_array(data):
        return bool(data.ndim)
    # Polars' frames and pyarrow's tables are sliced as a list is.
    return isinstance(data, list) or (hasattr(data, "shape") and hasattr(data, "__getitem__"))
