"""Frames and datasets of other libraries as what a model takes, and the picked items of any pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from askance.embedding import sources
from askance.embedding.committee import Committee
from askance.embedding.frames import (
    check_one_split,
    class_names_of,
    columns_of,
    is_frame,
    is_hf_dataset,
    is_series,
    items_of,
    numbers_of_frame,
    parted,
    without_column,
)
from askance.embedding.items import LABEL_KEYS, named_inputs
from askance.embedding.rows import is_table, rows_at
from askance.selection.probabilities import is_estimator
from askance.selection.trainer import as_trainer_reads, is_trainer


def without_frames(model: Any, labeled: Any, pool: Any) -> tuple[Any, Any, Any, Any]:
    """(model, labelled set, pool, names of classes): frames and series as the model takes them.

    A network is given numbers, an encoder a list of texts or images, a classifier of scikit-learn the
    frame itself. A `datasets.Dataset` goes to a network as it is, and
    to that of a Trainer by its collator. A labelled frame has its labels in a
    column. Names are those of a dataset's labels; None elsewhere.
    """
    check_one_split(pool, "pool")
    check_one_split(labeled, "labelled set")
    names = class_names_of(labeled)
    if is_trainer(model):
        model, labeled, pool = as_trainer_reads(model, labeled, pool)
    by_network = model is None or isinstance(model, (nn.Module, Committee))
    if is_frame(labeled) and not (by_network and is_hf_dataset(labeled)):
        labeled = parted(labeled)
    if is_estimator(model):
        return model, labeled, pool, names
    pool = as_model_takes(model, pool, "pool")
    if isinstance(labeled, tuple) and len(labeled) == 2:
        labeled = (as_model_takes(model, labeled[0], "labelled set"), labeled[1])
    return model, labeled, pool, names


def as_model_takes(model: object, data: Any, what: str) -> Any:
    """A frame or series as numbers for a network or items for an encoder; other data as it is."""
    if not (is_frame(data) or is_series(data)):
        return data
    if model is None or isinstance(model, (nn.Module, Committee)):
        return numbers_of_frame(data, what)
    from askance.encoders import Encoder, get  # reading images takes libraries of its own

    if isinstance(model, (str, Encoder)):
        return items_of(data, get(model).kind, what)
    return data


def picked_items(pool: Any, rows: NDArray[np.int64]) -> Any:
    """The picked items, without labels, of the pool's own kind; None where they are not at hand."""
    if is_frame(pool):
        for name in set(columns_of(pool)) & set(LABEL_KEYS):
            pool = without_column(pool, name)
    if is_table(pool):
        return rows_at(pool, rows)
    if isinstance(pool, Mapping):
        arrays = named_inputs(pool)
        return {key: value[rows] for key, value in arrays.items() if sources.is_array(value)}
    return sources.take(pool, rows) if sources.is_array(pool) else None
