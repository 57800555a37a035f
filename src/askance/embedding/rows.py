"""Rows of what scikit-learn's models take: frames, series, sparse matrices, arrays, lists, mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.embedding import sources
from askance.embedding.items import without_labels
from askance.errors import InputError

_KINDS = "an array, a DataFrame, a sparse matrix or a list"


def is_table(data: Any) -> bool:
    """Whether the rows are those of a frame, a series, a sparse matrix or a list of texts."""
    texts = isinstance(data, list) and bool(data) and isinstance(data[0], str)
    return texts or hasattr(data, "iloc") or _is_sparse(data)


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
    return data.iloc[rows] if hasattr(data, "iloc") else data.tocsr()[rows]


def _is_sparse(data: Any) -> bool:
    return hasattr(data, "tocsr") and hasattr(data, "shape")


def _is_sliceable(data: Any) -> bool:
    if sources.is_array(data):
        return bool(data.ndim)
    # Polars' frames and pyarrow's tables are sliced as a list is.
    return isinstance(data, list) or (hasattr(data, "shape") and hasattr(data, "__getitem__"))
