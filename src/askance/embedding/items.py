"""A pool's items, and batches of them: the input alone, and mappings as the model wants them.

A tokenizer's output is a mapping, and comes in four forms. Each becomes one tensor a name, (B, …):

- arrays or tensors of all points: nothing is left to do;
- lists of all points, of one length;
- a list for each point. `default_collate` transposes these, into a tensor for each position;
- a batch of one for each point, (1, L), as `return_tensors="pt"` gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from askance.errors import InputError, LabelError

LABEL_KEYS = ("label", "labels", "target", "targets", "y")
PADDING = (
    "pad them to one length, as in tokenizer(texts, padding=True), or pass a DataLoader whose "
    "collate_fn pads, such as transformers.DataCollatorWithPadding"
)
# What Hugging Face's tokenizers and processors return: batches, also of a single text or image.
_BATCH_KINDS = {"BatchEncoding", "BatchFeature"}


def input_of(item: Any) -> Any:
    """The input of a pool item, or of a batch of them; what comes with it is not looked at."""
    if isinstance(item, (tuple, list)):
        if not item or isinstance(item[0], (int, float, str)):
            raise InputError(
                f"a pool item must be x or (x, ignored); got a {type(item).__name__} of plain values. "
                f"Pass an array for rows of numbers"
            )
        return item[0]
    return without_labels(item)


def single_input_of(item: Any) -> Any:
    """The input of one pool item; of a batch of one, that one."""
    inputs = input_of(item)
    kind = item[0] if isinstance(item, (tuple, list)) else item
    if not _is_batch_kind(kind):
        return inputs
    arrays = {
        key: value if isinstance(value, (Tensor, np.ndarray)) else _array(key, value)
        for key, value in without_labels(inputs).items()
    }
    shapes = [value.shape for value in arrays.values()]
    if all(shape[:1] == (1,) for shape in shapes) and any(len(shape) > 1 for shape in shapes):
        return {key: value[0] for key, value in arrays.items()}
    return arrays


def without_labels(item: Any) -> Any:
    """A mapping without its labels; anything else as it is."""
    if isinstance(item, Mapping):
        return {key: value for key, value in item.items() if key not in LABEL_KEYS}
    return item


def split_labeled(batch: Any) -> tuple[Any, Any]:
    """(inputs, labels) of a batch."""
    if isinstance(batch, Mapping):
        return without_labels(batch), labels_of(batch)
    if isinstance(batch, (tuple, list)) and len(batch) >= 2:
        return batch[0], batch[1]
    raise LabelError(
        "labelled data must give (x, y) items, or mappings with a label; got items of "
        f"{type(batch).__name__}"
    )


def labels_of(batch: Any) -> Any:
    """The labels in a mapping."""
    keys = [key for key in LABEL_KEYS if isinstance(batch, Mapping) and key in batch]
    if len(keys) != 1:
        raise LabelError(
            f"labelled data must come with labels: (X, y), items of (x, y), or a mapping with one of "
            f"{', '.join(LABEL_KEYS)}; found {keys or 'none'}"
        )
    return batch[keys[0]]


def is_missing(label: Any) -> bool:
    """Whether a label is none at all: None, NaN, NaT, `pandas.NA` or an empty text."""
    if label is None or (isinstance(label, str) and not label):
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):  # of pandas.NA, which equals nothing, and of an array
        return type(label).__name__ == "NAType"


def check_labels(labels: Any) -> None:
    """Raise where a row has no label.

    Names are to be checked before NumPy reads them, since it makes NaN among names a text, 'nan'.
    """
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu().double().numpy()
    numbers = isinstance(labels, np.ndarray) and labels.dtype.kind in "biuf"
    if isinstance(labels, (str, Mapping)) or (numbers and not np.isnan(labels).any()):
        return
    try:
        each = list(labels) if hasattr(labels, "__len__") else []
    except TypeError:  # a single number
        return
    missing = [row for row, label in enumerate(each) if _has_missing(label)]
    if missing:
        first = each[missing[0]]
        shown = repr(first) if isinstance(first, str) else str(first)
        raise LabelError(
            f"labelled row {missing[0]} has no label ({shown}); leave out the rows without a label, "
            f"{len(missing)} of {len(each)}"
        )


def _has_missing(label: Any) -> bool:
    several = isinstance(label, (list, tuple)) or getattr(label, "ndim", 0) == 1
    return any(map(is_missing, label)) if several else is_missing(label)


def named_inputs(data: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs in a mapping of all points, without labels; lists of numbers as arrays."""
    inputs = without_labels(data)
    return {
        key: _array(key, value) if isinstance(value, list) else value
        for key, value in inputs.items()
    }


def collated(inputs: Any, batch: Any) -> Any:
    """Inputs from `default_collate`, in which a list of numbers for each point is one tensor.

    Args:
        inputs: of the batch.
        batch: what `default_collate` gave, whose kind says whether its points are batches of one.
    """
    if not isinstance(inputs, Mapping):
        return inputs
    whole = {key: _stacked(value) for key, value in inputs.items()}
    kind = batch[0] if isinstance(batch, (tuple, list)) else batch
    tensors = [value for value in whole.values() if isinstance(value, Tensor)]
    ones = all(tensor.shape[1:2] == (1,) for tensor in tensors)
    if _is_batch_kind(kind) and ones and any(tensor.ndim > 2 for tensor in tensors):
        return {k: v[:, 0] if isinstance(v, Tensor) else v for k, v in whole.items()}
    return whole


def _is_batch_kind(inputs: Any) -> bool:
    return any(kind.__name__ in _BATCH_KINDS for kind in type(inputs).__mro__)


def _array(key: str, value: Any) -> Any:
    """A list of numbers as an array; anything else as it is."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{key!r} has lists of different lengths; {PADDING}") from error
    return array if array.dtype.kind in "biufc" and array.ndim > 0 else value


def _stacked(value: Any) -> Any:
    """(B, L) of L tensors (B,), also when nested; anything else as it is."""
    tensor = _of_numbers(value)
    return value if tensor is None else tensor


def _of_numbers(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value if value.ndim == 1 else None
    if not isinstance(value, (list, tuple)) or not value:
        return None
    parts = [_of_numbers(part) for part in value]
    tensors = [part for part in parts if part is not None]
    if len(tensors) < len(parts) or len({tensor.shape for tensor in tensors}) > 1:
        return None
    return torch.stack(tensors, dim=1)
