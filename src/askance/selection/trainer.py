"""A `transformers.Trainer` in place of a model: its model, and its way of making batches."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from torch import nn
from torch.utils.data import DataLoader

from askance.embedding.frames import columns_of, is_hf_dataset
from askance.embedding.items import LABEL_KEYS
from askance.errors import InputError


def is_trainer(model: object) -> bool:
    """Whether it is a Trainer of transformers, or looks like one."""
    parts = ("model", "data_collator", "get_train_dataloader")
    return not isinstance(model, nn.Module) and all(hasattr(model, part) for part in parts)


def as_trainer_reads(trainer: Any, labeled: Any, pool: Any) -> tuple[nn.Module, Any, Any]:
    """(its model, labelled set, pool): datasets as loaders with the Trainer's collator.

    As in training, columns that the model's forward does not take are left out. A pool's labels are
    left out before anything is read.
    """
    if labeled is not None and is_hf_dataset(labeled):
        labeled = _loader(trainer, labeled, labels=True)
    elif isinstance(labeled, tuple) and len(labeled) == 2 and is_hf_dataset(labeled[0]):
        labeled = (_loader(trainer, labeled[0]), labeled[1])
    return trainer.model, labeled, reader_of(trainer, pool)


def reader_of(trainer: Any, data: Any) -> Any:
    """A dataset as a loader of its inputs; other data as it is."""
    return _loader(trainer, data) if is_hf_dataset(data) else data


def _loader(trainer: Any, dataset: Any, *, labels: bool = False) -> DataLoader[Any]:
    args = trainer.args
    taken = _taken_by(trainer.model)
    kept = [
        name
        for name in columns_of(dataset)
        if (labels if name in LABEL_KEYS else taken is None or name in taken)
    ]
    if not set(kept) - set(LABEL_KEYS):
        raise InputError(
            f"the model takes none of the dataset's columns, {', '.join(columns_of(dataset))}; "
            f"tokenize it first, as in dataset.map(lambda rows: tokenizer(rows['text']), batched=True)"
        )
    return DataLoader(
        dataset.select_columns(kept),
        batch_size=args.per_device_eval_batch_size,
        collate_fn=trainer.data_collator,
        num_workers=args.dataloader_num_workers,
        pin_memory=False,  # a batch is pinned where it goes to a GPU
    )


def _taken_by(model: nn.Module) -> set[str] | None:
    """The names that the model's forward takes; None where it takes any."""
    inner: Any = model
    while hasattr(inner, "get_base_model"):  # an adapter's forward takes anything
        inner = inner.get_base_model()
    parameters = signature(inner.forward).parameters.values()
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters) and len(parameters) < 3:
        return None
    return {each.name for each in parameters}
