"""What every dataset is, whatever it came from: one record of three splits.

Shapes: N points; C classes; an input is (3, 32, 32), (D,), or whatever the kind says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from askance.errors import DataError

Kind = Literal["image", "text", "tabular"]
Items = NDArray[Any] | Sequence[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """Parsed items with their labels (N,), and each one's position in the official split (N,)."""

    items: Items
    labels: NDArray[np.int64]
    index: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        items: Items,
        labels: ArrayLike,
        *,
        classes: int,
        where: str,
        index: ArrayLike | None = None,
    ) -> Rows:
        """Rows with labels 0 to classes − 1; `where` names the file in an error."""
        given = np.asarray(labels)
        if given.dtype.kind == "f" and not np.array_equal(given, np.floor(given)):
            raise DataError(f"{where}: labels must be whole numbers, found fractions")
        labels_N = given.astype(np.int64)
        if labels_N.shape != (len(items),):
            raise DataError(f"{where}: {len(items)} items with labels of shape {labels_N.shape}")
        if len(labels_N) == 0:
            raise DataError(f"{where}: no items")
        if labels_N.min() < 0 or labels_N.max() >= classes:
            raise DataError(
                f"{where}: labels must be of {classes} classes, found one outside: "
                f"{labels_N.min()} to {labels_N.max()} counted from 0"
            )
        positions = np.arange(len(labels_N)) if index is None else np.asarray(index)
        return cls(items, labels_N, positions.astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class SourceSplits:
    """A parsed source: its training rows, and its test and validation rows where it has such splits.

    Validation rows are counted on after the training rows, so that no two have one position.
    """

    train: Rows
    test: Rows | None = None
    val: Rows | None = None


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs (N, …) float32, labels (N,) int64, and each row's position in the source it came from.

    `index` is the position in the official split where the source says it, else in the file: it names
    a point, so that two splits of one source can be shown to share none.
    """

    inputs: Tensor
    labels: Tensor
    index: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class RawItems:
    """The items of some rows as they came, each read when it is asked for."""

    source: Items
    rows: NDArray[np.int64]
    read: Callable[[Any], Any] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: int) -> Any:
        item = self.source[int(self.rows[position])]
        return item if self.read is None else self.read(item)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset ready for the protocol: `train` is the pool, and holds nothing of `val` or `test`.

    `raw[i]` is train item i before encoding: an image as uint8 (H, W) or (H, W, 3), a text, or a row
    of features. `subset` says in words how the data at hand is less than, or other than, the official
    set; None where it is the official set. A report that shows numbers must show it too.

    Example:
        >>> from askance import data
        >>> digits = data.load("digits")
        >>> digits.pool_size, tuple(digits.train.inputs.shape[1:]), len(digits.classes)
        (1295, (64,), 10)
        >>> digits.fingerprint == data.load("digits").fingerprint
        True
    """

    name: str
    kind: Kind
    train: Split
    val: Split
    test: Split
    classes: tuple[str, ...]
    source: str
    licence: str
    citation: str
    raw: RawItems
    subset: str | None = None

    def __post_init__(self) -> None:
        for name in ("train", "val", "test"):
            _check_split(f"{self.name} {name}", getattr(self, name), len(self.classes))
        shapes = {split.inputs.shape[1:] for split in (self.train, self.val, self.test)}
        if len(shapes) > 1:
            raise DataError(f"{self.name}: the splits' inputs differ in shape: {sorted(shapes)}")
        if len(self.raw) != len(self.train):
            raise DataError(
                f"{self.name}: {len(self.raw)} raw items for {len(self.train)} points of the pool"
            )

    @property
    def pool_size(self) -> int:
        """How many items the pool has."""
        return len(self.train)

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits of the splits' inputs, labels and positions: other data, other digits."""
        digest = blake2b(digest_size=16)
        for split in (self.train, self.val, self.test):
            digest.update(repr(tuple(split.inputs.shape)).encode())
            for array in (split.inputs.numpy(), split.labels.numpy(), split.index):
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        sizes = f"{len(self.train)} train, {len(self.val)} val, {len(self.test)} test"
        subset = f", {self.subset}" if self.subset else ""
        return f"Dataset({self.name}: {sizes}, {len(self.classes)} classes; {self.source}{subset})"


def _check_split(name: str, split: Split, classes: int) -> None:
    count = len(split.labels)
    if count == 0:
        raise DataError(f"{name} is empty")
    if len(split.inputs) != count or len(split.index) != count:
        raise DataError(
            f"{name}: {len(split.inputs)} inputs and {len(split.index)} positions for {count} labels"
        )
    if split.inputs.dtype != torch.float32 or split.labels.dtype != torch.int64:
        raise DataError(
            f"{name}: expected float32 inputs and int64 labels, got {split.inputs.dtype} and "
            f"{split.labels.dtype}"
        )
    low, high = int(split.labels.min()), int(split.labels.max())
    if low < 0 or high >= classes:
        raise DataError(f"{name}: labels must be 0 to {classes - 1}, found {low} to {high}")
    if not bool(torch.isfinite(split.inputs).all()):
        raise DataError(f"{name}: an input is NaN or infinite")
