"""Stored items (image files, texts, members of an archive) to a batch of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from askance.embedding import Embedding
from askance.embedding.factory import imported
from askance.embedding.sources import as_tensor
from askance.errors import DataError, InputError, ShardError
from askance.images import SIDE, decode_image, normalised
from askance.pools.source import Shard
from askance.selection.selection import Skipped


@dataclass(frozen=True)
class ImageTensor:
    """An image file's bytes as (3, side, side), (x/255 − ½)/½ in each channel."""

    side: int = SIDE

    def __call__(self, data: bytes) -> Tensor:
        return normalised(decode_image(data, "the image", side=self.side)[None])[0]


image_tensor = ImageTensor()


@dataclass(frozen=True)
class Untransformed:
    """Texts that no transform was named for: an encoder takes them as they are, a network cannot."""

    def __call__(self, text: Any) -> Tensor:
        raise InputError(NO_TRANSFORM)


NO_TRANSFORM = (
    "texts need a transform that makes a model's input of each, or an encoder in place of the model"
)


@dataclass(frozen=True, eq=False)
class UndecodedItem:
    """A text, or an image file's bytes, as it is stored."""

    content: str | bytes


@dataclass(frozen=True)
class KeepStored:
    """In place of a transform: keeps each item as it is, for an encoder.

    The `inputs` of a block are then a list.

    Args:
        kind: "text" or "image".
    """

    kind: Literal["text", "image"]

    def __call__(self, item: Any) -> UndecodedItem:
        if self.kind == "text" and isinstance(item, bytes):
            item = item.decode()  # whose error says which byte is no UTF-8
        if not isinstance(item, str if self.kind == "text" else bytes):
            wanted = "a text" if self.kind == "text" else "the bytes of an image file"
            raise DataError(f"expected {wanted}, got {type(item).__name__}")
        return UndecodedItem(item)


@dataclass(frozen=True)
class Imported:
    """A transform of the user's own, "module:function"; imported where it is called."""

    name: str

    def __call__(self, item: Any) -> Any:
        return _function(self.name)(item)


@cache
def _function(name: str) -> Callable[[Any], Any]:
    return imported(name, "transform")


def decoded_rows(
    rows: Embedding, items: Sequence[Any], transform: Callable[[Any], Any], shard: Shard
) -> Iterator[Embedding | Skipped]:
    """The rows with what `transform` makes of their stored items, and those it cannot make sense of.

    A transform gives a tensor, the row's input, or a mapping of the parts of a row to tensors. In place
    of a tensor `KeepStored` gives the item itself.
    """
    assert rows.ids is not None
    made: list[dict[str, Tensor | UndecodedItem]] = []
    good: list[int] = []
    for row, item in enumerate(items):
        try:
            value = transform(item)
            made.append(_tensors(value if isinstance(value, dict) else {"inputs": value}))
        except Exception as error:
            name = rows.ids.take(np.array([row]))[0]
            yield Skipped(f"{shard.name}, {name}: {error or type(error).__name__}", 1, False)
        else:
            good.append(row)
    if made:
        parts: dict[str, Any] = {
            part: _stacked(part, [row[part] for row in made], shard) for part in made[0]
        }
        yield replace(rows if len(good) == len(rows) else rows[good], **parts)


def _stacked(part: str, values: list[Tensor | UndecodedItem], shard: Shard) -> Any:
    items = [value.content for value in values if isinstance(value, UndecodedItem)]
    if items:
        return items
    tensors = [value for value in values if isinstance(value, Tensor)]
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        raise ShardError(
            f"{shard.name}: the {part} of its rows are tensors of several shapes, "
            f"{sorted(shapes)[:3]}; all must be of one"
        )
    return torch.stack(tensors)


def _tensors(values: dict[str, Any]) -> dict[str, Tensor | UndecodedItem]:
    return {part: _tensor(value) for part, value in values.items()}


def _tensor(value: Any) -> Tensor | UndecodedItem:
    if isinstance(value, (Tensor, UndecodedItem)):
        return value
    if isinstance(value, np.ndarray):
        return as_tensor(value)
    raise InputError(f"a transform must give a tensor for each row, it gave {type(value).__name__}")
