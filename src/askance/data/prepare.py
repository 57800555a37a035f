"""From parsed rows to the record: split, encode, and say what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askance.data.entry import Encode, Entry, Parts, Rows
from askance.data.record import Dataset, Items, Kind, RawItems, Split
from askance.data.splits import plan


def prepared(entry: Entry, parts: Parts, *, source: str, subset: str | None = None) -> Dataset:
    """The record of a catalogued dataset."""
    return assembled(
        entry.name,
        entry.kind,
        parts,
        entry.classes,
        entry.encode,
        source=source,
        licence=entry.licence,
        citation=entry.citation,
        subset=subset,
        pool=entry.pool,
    )


def assembled(
    name: str,
    kind: Kind,
    parts: Parts,
    classes: tuple[str, ...],
    encode: Encode,
    *,
    source: str,
    licence: str,
    citation: str,
    subset: str | None = None,
    pool: int | None = None,
    at_least: int = 0,
    raw: Items | None = None,
    read: Callable[[Any], Any] | None = None,
) -> Dataset:
    """Any parsed rows as a record; `raw` and `read` show items otherwise than they are encoded."""
    rows = parts.train
    cut = plan(name, rows.labels, cut_test=parts.test is None, pool=pool, at_least=at_least)
    tested, test_rows = _test(parts, cut.test)
    items = [_taken(rows.items, cut.train), _taken(rows.items, cut.val)]
    train, val, test = encode(items[0], (items[1], _taken(tested.items, test_rows)))
    return Dataset(
        name=name,
        kind=kind,
        train=_split(train, rows, cut.train),
        val=_split(val, rows, cut.val),
        test=_split(test, tested, test_rows),
        classes=classes,
        source=source,
        licence=licence,
        citation=citation,
        raw=RawItems(rows.items if raw is None else raw, cut.train, read),
        subset=subset,
    )


def shortfall(parts: Parts, official: tuple[int, int], noun: str) -> str | None:
    """How the rows at hand are fewer than the official ones, in words; None where they are not."""
    train, test = official
    if parts.test is None:
        return _fewer(len(parts.train), train + test, f"official {noun}")
    said = (
        _fewer(len(parts.train), train, f"official training {noun}"),
        _fewer(len(parts.test), test, f"official test {noun}"),
    )
    return ", ".join(part for part in said if part) or None


def _fewer(count: int, official: int, what: str) -> str | None:
    return f"{count:,} of {official:,} {what}" if count < official else None


def _test(parts: Parts, cut: NDArray[np.int64] | None) -> tuple[Rows, NDArray[np.int64]]:
    if cut is not None:
        return parts.train, cut
    assert parts.test is not None
    return parts.test, np.arange(len(parts.test))


def _taken(items: Items, rows: NDArray[np.int64]) -> Items:
    if isinstance(items, np.ndarray):
        return items[rows]
    return [items[row] for row in rows]


def _split(inputs: torch.Tensor, rows: Rows, taken: NDArray[np.int64]) -> Split:
    return Split(inputs, torch.from_numpy(rows.labels[taken]), rows.index[taken])
