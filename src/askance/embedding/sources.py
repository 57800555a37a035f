"""Any data as batches in a fixed order: arrays, mappings of arrays, datasets, data loaders.

A pool's labels are poison. Of a pool item only the input goes on; the rest is dropped before items
are collated, so a label that cannot be read is never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    default_collate,
)

from askance.embedding.frames import is_hf_dataset
from askance.embedding.items import (
    LABEL_KEYS,
    PADDING,
    check_labels,
    collated,
    input_of,
    labels_of,
    named_inputs,
    single_input_of,
    split_labeled,
)
from askance.errors import InputError, LabelError

TEXTS = (
    "a network takes numbers; pass what its tokenizer makes of the texts, as in tokenizer(texts, "
    "padding=True, return_tensors='pt'), or an encoder in place of the model, such as 'minilm'"
)
_KINDS = "an array or tensor, a mapping of them, a Dataset, a list of items, or a DataLoader"


def batches(data: Any, batch_size: int, *, labeled: bool = False) -> Iterator[tuple[Any, Any]]:
    """Batches of (inputs, labels) in the data's own order; labels are None unless `labeled`."""
    if labeled and isinstance(data, list) and data and is_array(data[0]):
        raise LabelError(
            "labelled data must give (x, y) items, or be a tuple (X, y); got a list of arrays"
        )
    if labeled and isinstance(data, tuple):
        inputs, labels = _pair(data)
        start = 0
        for batch, _ in batches(inputs, batch_size):
            yield batch, labels[start : start + rows_in(batch)]
            start += rows_in(batch)
    elif is_array(data) or isinstance(data, Mapping):
        check_kind(data)
        inputs = named_inputs(data) if isinstance(data, Mapping) else data
        answers = as_labels(labels_of(data), _rows(inputs)) if labeled else None
        for start, batch in _slices(inputs, batch_size):
            yield batch, None if answers is None else answers[start : start + batch_size]
    else:
        loader = _loader(data, batch_size, labeled)
        # A collate function of the user's, or batches made by the data, are taken as they come.
        own = loader.collate_fn is not default_collate or loader.batch_sampler is None
        for batch in _reading(loader):
            if labeled:
                inputs, answers = split_labeled(batch)
            else:
                inputs, answers = (input_of(batch) if own else batch), None
            yield (inputs if own else collated(inputs, batch)), answers


def check_kind(data: Any) -> None:
    """Refuse what looks like rows but would be misread, or read in another order than its own."""
    kind = type(data).__name__
    if isinstance(data, tuple):
        raise InputError(f"expected {_KINDS}; got a tuple. Pass the inputs alone, without labels")
    if hasattr(data, "to_numpy"):  # a frame is indexed by column, a series by its labels
        raise InputError(f"expected {_KINDS}; got a {kind}: pass its .to_numpy(), numbers alone")
    if hasattr(data, "toarray") or (isinstance(data, Tensor) and data.layout != torch.strided):
        dense = ".to_dense()" if isinstance(data, Tensor) else ".toarray()"
        raise InputError(
            f"expected rows that are not sparse; got a sparse {kind}: pass its {dense}"
        )
    if isinstance(data, np.ma.MaskedArray):
        raise InputError(
            "expected an array without a mask; fill what is masked, or drop those rows"
        )
    if isinstance(data, np.ndarray) and data.dtype.kind not in "biufc":
        hint = f"; {TEXTS}" if data.dtype.kind in "US" else ""
        raise InputError(f"an array must hold numbers, it holds {data.dtype}{hint}")


def size(data: Any) -> int | None:
    """The number of points, where the data knows it."""
    check_kind(data)
    if isinstance(data, Mapping):
        return size(next(iter(named_inputs(data).values()), []))
    if isinstance(data, DataLoader):
        # A sampler or several readers may repeat points or leave some out; items may be batches.
        batched = data.batch_sampler is None or _has_many_readers(data)
        if batched or _drops_last(data) or not isinstance(_sampler(data), SequentialSampler):
            return None
        data = data.dataset
    if is_array(data) and data.ndim == 0:
        return None
    return len(data) if hasattr(data, "__len__") else None


def take(data: Any, rows: np.ndarray) -> Any:
    """The labelled points `rows` alone, or None where the data cannot be indexed."""
    if isinstance(data, tuple):
        inputs, labels = _pair(data)
        return take(inputs, rows), labels[torch.as_tensor(rows)]
    if isinstance(data, Mapping):
        inputs = named_inputs(data)
        count = _rows(inputs)
        named = {key: as_labels(data[key], count) for key in LABEL_KEYS if key in data}
        return {key: take(value, rows) for key, value in {**inputs, **named}.items()}
    if isinstance(data, Tensor):
        return data[torch.as_tensor(rows, device=data.device)]
    if isinstance(data, np.ndarray):
        return data[rows]
    if isinstance(data, DataLoader):
        if size(data) is None or isinstance(data.dataset, IterableDataset):
            return None
        some = Subset(data.dataset, rows.tolist())
        batch_size = getattr(data.batch_sampler, "batch_size", None)
        return _reloaded(data, some, batch_size=batch_size, collate_fn=data.collate_fn)
    if isinstance(data, IterableDataset):
        return None
    return Subset(data, rows.tolist())


def is_texts(data: Any) -> bool:
    """Whether the data is a list or a batch of texts, and nothing else."""
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(x, str) for x in data)


def is_array(data: Any) -> bool:
    """Whether the data is one tensor or NumPy array."""
    return isinstance(data, (Tensor, np.ndarray))


def as_tensor(array: NDArray[Any]) -> Tensor:
    """The array as a tensor; copied where torch cannot share it (read-only, or read backwards)."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > 16 or array.dtype == np.longdouble:
        raise InputError(
            f"an array of numbers that a tensor can hold is expected, got {array.dtype}; save it as "
            f"float32"
        )
    shared = array.flags.writeable and all(stride >= 0 for stride in array.strides)
    return torch.as_tensor(array if shared else array.copy())


def to_device(inputs: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    """Tensors of a batch on `device`; floating ones as `dtype` where it is given."""
    if isinstance(inputs, np.ndarray):
        inputs = as_tensor(inputs)
    if isinstance(inputs, Tensor):
        cast = dtype if inputs.is_floating_point() else None
        return inputs.to(device=device, dtype=cast, non_blocking=True)
    if isinstance(inputs, Mapping):
        return {key: to_device(value, device, dtype) for key, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        return tuple(to_device(value, device, dtype) for value in inputs)
    return inputs


def first_rows(inputs: Any, count: int) -> Any:
    """The first rows of a batch; all of it where its tensors are not of one length, as of a graph."""
    leaves = list(_leaves(inputs))
    lengths = {len(x) if isinstance(x, Tensor) and x.ndim else -1 for x in leaves}
    return rows_of(inputs, slice(0, count)) if len(lengths) == 1 and -1 not in lengths else inputs


def pinned(inputs: Any) -> Any:
    """The batch in memory from which a GPU copies it while it computes."""
    if isinstance(inputs, np.ndarray):
        inputs = as_tensor(inputs)
    if isinstance(inputs, Tensor):
        return inputs if inputs.is_cuda or inputs.is_pinned() else inputs.pin_memory()
    if isinstance(inputs, Mapping):
        return {key: pinned(value) for key, value in inputs.items()}
    return tuple(map(pinned, inputs)) if isinstance(inputs, (tuple, list)) else inputs


def _leaves(inputs: Any) -> Iterator[Any]:
    if isinstance(inputs, Mapping):
        inputs = list(inputs.values())
    if isinstance(inputs, (tuple, list)):
        for value in inputs:
            yield from _leaves(value)
    else:
        yield inputs


def rows_of(inputs: Any, rows: Tensor | slice) -> Any:
    """Some rows of a batch of inputs, whatever its structure."""
    if isinstance(inputs, Mapping):
        return {key: rows_of(value, rows) for key, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        return tuple(rows_of(value, rows) for value in inputs)
    if not isinstance(inputs, Tensor):
        return inputs
    return inputs[rows if isinstance(rows, slice) else rows.to(inputs.device)]


def rows_in(inputs: Any) -> int:
    """How many points a batch of inputs holds."""
    while isinstance(inputs, (Mapping, tuple, list)):
        inputs = next(iter(inputs.values() if isinstance(inputs, Mapping) else inputs))
    return len(inputs)


def described(inputs: Any) -> str:
    """A batch of inputs in words, for an error."""
    if isinstance(inputs, Tensor):
        return f"a tensor of shape {tuple(inputs.shape)}, {inputs.dtype}"
    if isinstance(inputs, Mapping):
        return "; ".join(f"{key}= {described(value)}" for key, value in inputs.items())
    if isinstance(inputs, (tuple, list)) and len(inputs) <= 4:
        return "; ".join(described(value) for value in inputs)
    many = f"{len(inputs)} arguments, the first " if isinstance(inputs, (tuple, list)) else ""
    return f"{many}a {type(inputs[0] if many else inputs).__name__}"


def joined(parts: Sequence[Any]) -> Any:
    """Batches of inputs, one after the other, as one."""
    first = parts[0]
    if isinstance(first, Mapping):
        return {key: joined([part[key] for part in parts]) for key in first}
    if isinstance(first, (tuple, list)):
        return tuple(joined(column) for column in zip(*parts, strict=True))
    if not isinstance(first, Tensor):
        return first
    shapes = sorted({tuple(part.shape[1:]) for part in parts})
    if len(shapes) > 1:
        raise InputError(
            f"inputs are kept here, and their shapes differ between batches ({shapes[0]} and "
            f"{shapes[-1]}); {PADDING.partition(', or')[0]}"
        )
    return torch.cat(list(parts))


def as_labels(labels: Any, count: int) -> Tensor:
    """Labels as an integer tensor, (L,) classes or (L, C) of zeros and ones."""
    if not isinstance(labels, Tensor):
        try:
            array = np.asarray(labels)
        except ValueError as error:
            raise LabelError(
                f"labels must be one for each point, all of one shape: {error}"
            ) from error
        if array.dtype.kind not in "biuf":
            check_labels(labels)
            raise LabelError(
                f"labels must be whole numbers, got {array.dtype}; if they are names of classes, say "
                f"which output of the model is which: classes=[…], all names in the outputs' order"
            )
        labels = as_tensor(array)
    if labels.ndim not in (1, 2) or len(labels) != count:
        raise LabelError(
            f"labels must be ({count},) class indices, or ({count}, C) zeros and ones for a "
            f"multi-label loss; got shape {tuple(labels.shape)}"
        )
    if labels.is_floating_point() and not torch.equal(labels, labels.round()):
        check_labels(labels)
        raise LabelError(
            f"labels must be whole numbers, got {labels.dtype} with fractions; for a regression "
            f"pass (X, y) and 'kcenter', 'maxherding', 'typiclust' or Badge(loss='squared'); the other "
            f"rules are for classes"
        )
    return labels.long()


def _pair(data: tuple[Any, ...]) -> tuple[Any, Tensor]:
    if len(data) != 2:
        raise InputError(f"labelled data given as a tuple must be (X, y), got {len(data)} parts")
    inputs, labels = data
    count = size(inputs)
    kinds = (Mapping, Dataset, DataLoader)
    hosted = is_hf_dataset(inputs)
    items = isinstance(inputs, list) and bool(inputs) and isinstance(inputs[0], Mapping)
    if count is None or not (is_array(inputs) or isinstance(inputs, kinds) or items or hosted):
        if is_texts(inputs):
            raise InputError(f"labelled X in (X, y) is a list of texts: {TEXTS}")
        raise InputError(
            f"labelled X in (X, y) must be an array, a tensor or a mapping of them, got "
            f"{type(inputs).__name__}; a shuffled DataLoader of (x, y) is passed by itself"
        )
    return inputs, as_labels(labels, count)


def _rows(data: Any) -> int:
    """The number of rows of an array, or of each array of a mapping."""
    arrays = dict(data) if isinstance(data, Mapping) else {"": data}
    bad = [key for key, value in arrays.items() if not is_array(value) or value.ndim == 0]
    if bad and not isinstance(data, Mapping):
        raise InputError("an array must have one row for each point, got a single number")
    if bad or not arrays:
        raise InputError(f"a mapping must hold arrays with one row for each point; {bad} do not")
    lengths = {key: len(value) for key, value in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"arrays of a mapping must have the same number of rows, got {lengths}")
    return next(iter(lengths.values()))


def _slices(data: Any, rows: int) -> Iterator[tuple[int, Any]]:
    for start in range(0, _rows(data), rows):
        view = slice(start, start + rows)
        if isinstance(data, Mapping):
            yield start, {key: value[view] for key, value in data.items()}
        else:
            yield start, data[view]


def _loader(data: Any, batch_size: int, labeled: bool) -> DataLoader[Any]:
    if isinstance(data, DataLoader):
        _check_order(data, labeled)
        if labeled or data.collate_fn is not default_collate:
            return data  # a custom collate function gets the items it was written for
        batching: dict[str, Any] = {"batch_size": data.batch_size}
        if data.batch_size is None:
            batching = {"batch_sampler": data.batch_sampler}
        return _reloaded(data, _inputs_only(data.dataset), **batching)
    check_kind(data)
    if not isinstance(data, Dataset) and not (
        hasattr(data, "__getitem__") and hasattr(data, "__len__")
    ):
        raise InputError(f"expected {_KINDS}; got {type(data).__name__}")
    if isinstance(data, (str, bytes)):
        raise InputError(f"expected {_KINDS}; got a {type(data).__name__}")
    return DataLoader(data if labeled else _inputs_only(data), batch_size=batch_size)


def _reloaded(loader: DataLoader[Any], data: Any, **options: Any) -> DataLoader[Any]:
    """A loader of other data with the same workers."""
    return DataLoader(
        data,
        **options,
        num_workers=loader.num_workers,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        prefetch_factor=loader.prefetch_factor,
    )


def _check_order(loader: DataLoader[Any], labeled: bool) -> None:
    sampler = _sampler(loader)
    if not labeled and not isinstance(sampler, SequentialSampler):
        raise InputError(
            f"the pool's DataLoader must read in order, its sampler is "
            f"{type(sampler).__name__}; picks are positions in the pool, so pass "
            f"shuffle=False or the Dataset itself"
        )
    if not labeled and _has_many_readers(loader):
        raise InputError(
            f"the pool's stream must be read by one worker, its DataLoader has {loader.num_workers}: "
            f"each of them reads all of it or a part, and picks are positions in it; pass "
            f"num_workers=1, or the IterableDataset itself"
        )
    if _drops_last(loader):
        what = "labelled" if labeled else "pool"
        raise InputError(f"the {what} DataLoader must keep its last batch; pass drop_last=False")


def _sampler(loader: DataLoader[Any]) -> Any:
    """What decides the order of the items; a stream has its own order."""
    if isinstance(loader.dataset, IterableDataset):
        return SequentialSampler(())
    if loader.batch_sampler is None:
        return loader.sampler
    batches = loader.batch_sampler
    # A kind of its own may take any order.
    return batches.sampler if type(batches) is BatchSampler else batches


def _has_many_readers(loader: DataLoader[Any]) -> bool:
    """Whether several workers read a stream: all of it each, or parts in an order of their own."""
    return isinstance(loader.dataset, IterableDataset) and loader.num_workers > 1


def _drops_last(loader: DataLoader[Any]) -> bool:
    return loader.drop_last or bool(getattr(loader.batch_sampler, "drop_last", False))


def _reading(loader: DataLoader[Any]) -> Iterator[Any]:
    try:
        yield from loader
    except (TypeError, RuntimeError) as error:
        # The two complaints of `default_collate`: a kind it does not know, and unequal sizes.
        by_collate = any(words in str(error) for words in ("default_collate", "equal size"))
        if not by_collate or loader.collate_fn is not default_collate:
            raise
        reason = str(error).strip().splitlines()[-1]
        raise InputError(
            f"items could not be made into a batch ({reason}); give items of tensors, arrays or "
            f"numbers of one size. Where they are texts of different lengths, {PADDING}"
        ) from error


class _InputsOnly(Dataset[Any]):
    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        return single_input_of(self.data[index])


class _InputsOnlyStream(IterableDataset[Any]):
    def __init__(self, data: Any) -> None:
        self.data = data

    def __iter__(self) -> Iterator[Any]:
        return map(single_input_of, self.data)


def _inputs_only(data: Any) -> Dataset[Any]:
    if not isinstance(data, IterableDataset) and not hasattr(data, "__len__"):
        raise InputError(
            f"a pool that is indexed must have a length; {type(data).__name__} has none"
        )
    return _InputsOnlyStream(data) if isinstance(data, IterableDataset) else _InputsOnly(data)
