"""Raw rows (image files, texts) to a batch of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from askance.data.encode import normalised
from askance.data.images import SIDE, decoded
from askance.errors import InputError, ShardError
from askance.pools.ids import Listed
from askance.pools.source import PoolBlock, Shard


@dataclass(frozen=True)
class ImageTensor:
    """An image file's bytes as (3, side, side), (x/255 − ½)/½ in each channel."""

    side: int = SIDE

    def __call__(self, data: bytes) -> Tensor:
        return normalised(decoded(data, "the image", side=self.side)[None])[0]


image_tensor = ImageTensor()


def block(
    rows: PoolBlock, items: Sequence[Any], transform: Callable[[Any], Any], shard: Shard
) -> PoolBlock:
    """The block with a batch of inputs made of its raw items; those that cannot be made are `bad`."""
    inputs: list[Any] = []
    good: list[int] = []
    bad: list[str] = []
    for row, item in enumerate(items):
        try:
            inputs.append(_tensor(transform(item)))
        except Exception as error:
            name = rows.ids.take(np.array([row]))[0]
            bad.append(f"{shard.name}, {name}: {type(error).__name__}: {error}")
        else:
            good.append(row)
    shapes = {tuple(tensor.shape) for tensor in inputs}
    if len(shapes) > 1:
        raise ShardError(
            f"{shard.name}: the rows became tensors of several shapes, {sorted(shapes)[:3]}; a "
            f"transform must give every row the same"
        )
    batch = torch.stack(inputs) if inputs else None
    if not bad:
        return replace(rows, inputs=batch)
    where = np.asarray(good, dtype=np.int64)
    positions = np.asarray(rows.positions, dtype=np.int64)[where]
    kept = torch.from_numpy(where)
    return PoolBlock(
        positions,
        Listed(rows.ids.take(where)),
        logits=None if rows.logits is None else rows.logits[kept],
        features=None if rows.features is None else rows.features[kept],
        inputs=batch,
        labels=None if rows.labels is None else rows.labels[kept],
        bad=tuple(bad),
    )


def _tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    raise InputError(f"a transform must give a tensor for each row, it gave {type(value).__name__}")
