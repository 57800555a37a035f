"""From parsed rows to the record: split, encode, and say what is missing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askance.data.catalog import Encode, Entry
from askance.data.record import Dataset, Items, Kind, RawItems, Rows, SourceSplits, Split
from askance.data.splits import Imbalance, rare_classes, split_indices, thinned
from askance.errors import DataError

log = logging.getLogger(__name__)

FEWEST = 3  # items of a class of your own: one each for the pool, validation and test


def prepared(
    entry: Entry,
    splits: SourceSplits,
    *,
    source: str,
    subset: str | None = None,
    at_least: int = 0,
    raw: Items | None = None,
    read: Callable[[Any], Any] | None = None,
    imbalance: Imbalance | None = None,
) -> Dataset:
    """Parsed rows as a record; `raw` and `read` show items otherwise than they are encoded."""
    rows = splits.train
    cut = split_indices(
        entry.name,
        rows.labels,
        cut_test=splits.test is None,
        cut_val=splits.val is None,
        pool=entry.pool,
        at_least=at_least,
    )
    train_index = cut.train
    test_rows = rows if splits.test is None else splits.test
    test_index = np.arange(len(test_rows)) if cut.test is None else cut.test
    val_rows, val_index = (
        (rows, cut.val) if splits.val is None else (splits.val, np.arange(len(splits.val)))
    )
    if imbalance is not None:
        rare = rare_classes(entry.name, len(entry.classes), imbalance)
        train_index, val_index = (
            thinned(f"{split} {entry.name}", index, part.labels, rare, imbalance.keep)
            for split, part, index in (
                ("pool", rows, train_index),
                ("validation", val_rows, val_index),
            )
        )
        words = imbalance.in_words(len(entry.classes))
        subset = words if subset is None else f"{subset}; {words}"
    parts = [(rows, train_index), (val_rows, val_index), (test_rows, test_index)]
    items = [_taken(part.items, index) for part, index in parts]
    train, val, test = (
        Split(inputs, torch.from_numpy(part.labels[index]), part.index[index])
        for inputs, (part, index) in zip(entry.encode(items[0], items[1:]), parts, strict=True)
    )
    return Dataset(
        name=entry.name,
        kind=entry.kind,
        train=train,
        val=val,
        test=test,
        classes=entry.classes,
        source=source,
        licence=entry.licence,
        citation=entry.citation,
        raw=RawItems(rows.items if raw is None else raw, train_index, read),
        subset=subset,
    )


def _taken(items: Items, rows: NDArray[np.int64]) -> Items:
    return items[rows] if isinstance(items, np.ndarray) else [items[row] for row in rows]


def shortfall(splits: SourceSplits, entry: Entry) -> str | None:
    """How the rows at hand are fewer than the official ones, in words; None where they are not."""
    train, test = entry.official
    if splits.test is None:
        counts = [(len(splits.train), train + test, "official")]
    else:
        counts = [
            (len(splits.train), train, "official training"),
            (len(splits.test), test, "official test"),
        ]
    fewer = [
        f"{count:,} of {official:,} {which} {entry.noun}"
        for count, official, which in counts
        if count < official
    ]
    return ", ".join(fewer) or None


def check_classes(labels_N: NDArray[np.int64], classes: tuple[str, ...], where: str) -> None:
    """Refuse data that cannot be split by class into pool, validation and test."""
    if len(classes) < 2:
        only = f"only {classes[0]!r}" if classes else "none"
        raise DataError(f"{where}: at least two classes are needed, found {only}")
    counts = np.bincount(labels_N, minlength=len(classes))
    few = [f"{classes[label]!r} ({counts[label]})" for label in np.flatnonzero(counts < FEWEST)]
    if few:
        raise DataError(
            f"{where}: every class needs at least {FEWEST} items, one each for pool, validation and "
            f"test; too few of {', '.join(few)}"
        )


def _tell_of_copies(name: str, rows: Rows) -> None:
    """Log how many items are copies of earlier ones: one in the pool, the other in the test set."""
    items = rows.items
    whole = [item.tobytes() for item in items] if isinstance(items, np.ndarray) else list(items)
    first: dict[Any, int] = {}
    labels = rows.labels.tolist()
    again = [
        (row, first[item]) for row, item in enumerate(whole) if first.setdefault(item, row) != row
    ]
    if not again:
        return
    differ = sum(labels[row] != labels[other] for row, other in again)
    log.warning(
        "%s: %d of %d items are copies of earlier ones, %d of them with another label; a copy in the "
        "pool and its twin in the test set make accuracies too high: leave copies out",
        name, len(again), len(whole), differ,
    )  # fmt: skip


def your_own(
    name: str,
    kind: Kind,
    rows: Rows,
    classes: tuple[str, ...],
    encode: Encode,
    *,
    raw: Items | None = None,
    read: Callable[[Any], Any] | None = None,
    imbalance: Imbalance | None = None,
) -> Dataset:
    """The record of a user's rows: a fifth for testing, a tenth of the rest for validation."""
    _tell_of_copies(name, rows)
    splits = SourceSplits(rows)
    entry = Entry(
        name,
        kind,
        classes,
        official=(len(rows), 0),
        licence="yours",
        citation="",
        homepage="",
        parse=lambda: splits,
        encode=encode,
    )
    source = f"your own, {name}"
    return prepared(
        entry, splits, source=source, at_least=1, raw=raw, read=read, imbalance=imbalance
    )
