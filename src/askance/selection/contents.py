"""What items hold, to the bit: whether two are equal without a look at all of either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding, sources
from askance.embedding.items import named_inputs

Rows = NDArray[np.int64]

_SAMPLED_BYTES = 32
_FEWEST = 8
_BLOCK = 1 << 16
_ODD = np.uint64(0x9E3779B97F4A7C15)

Part = list[Tensor] | list[str | bytes]
"""Some rows: matrices of as many rows each, or texts."""


def copies(items: Any) -> int:
    """How many of some items have the content of an earlier one."""
    digests = [d for part in portions(items) for d in digests_of(part, np.arange(rows_of(part)))]
    return len(digests) - len(set(digests))


def plain(data: Any) -> Any:
    """The items of some data where their contents are at hand, else None.

    They are so in arrays, a mapping of arrays, a frame, a list of texts, and an embedding's features.
    """
    if isinstance(data, tuple):
        data = data[0] if data else None
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    if isinstance(data, Mapping):
        data = named_inputs(data)
        if len({len(value) for value in data.values() if hasattr(value, "__len__")}) > 1:
            return None  # refused where it is read
    if isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.kind in "OU":
        data = data.tolist()
    return data if comparable(data) else None


def comparable(items: Any) -> bool:
    """Whether the contents are at hand: arrays, a mapping of them, a list of texts, features."""
    if isinstance(items, Embedding):
        return items.features is not None or items.ids is not None
    if isinstance(items, Mapping):
        return bool(items) and all(comparable(value) for value in items.values())
    if isinstance(items, list):
        return bool(items) and all(isinstance(item, (str, bytes)) for item in items)
    if isinstance(items, np.ndarray):
        return items.dtype.kind in "biuf" and items.itemsize <= 8 and items.ndim > 0 < items.size
    strided = isinstance(items, Tensor) and items.layout == torch.strided
    return strided and items.ndim > 0 and items.numel() > 0 and not items.is_meta


def portions(items: Any) -> Iterator[Part]:
    """Some rows at a time: matrices of as many rows each, or texts; nothing where there is neither."""
    if isinstance(items, Embedding):
        matrices = [] if items.features is None else [items.features]
    elif isinstance(items, list) and items and isinstance(items[0], (str, bytes)):
        yield items
        return
    else:
        matrices = list(_matrices(items))
    for start in range(0, len(matrices[0]) if matrices else 0, _BLOCK):
        yield [matrix[start : start + _BLOCK] for matrix in matrices]


def _matrices(items: Any) -> Iterator[Tensor]:
    if isinstance(items, Mapping):
        for name in sorted(items, key=str):
            yield from _matrices(items[name])
    elif isinstance(items, (tuple, list)):
        for item in items:
            yield from _matrices(item)
    elif comparable(items):
        tensor = items if isinstance(items, Tensor) else sources.as_tensor(items)
        yield tensor.detach().flatten(1) if tensor.ndim > 1 else tensor.detach()[:, None]


def rows_of(part: Part) -> int:
    return len(part[0]) if isinstance(part[0], Tensor) else len(part)


def samples_of(part: Part) -> NDArray[np.uint64]:
    """(B,) 64 bits of some numbers of each row; equal rows have equal ones."""
    if not isinstance(part[0], Tensor):
        return np.array([int.from_bytes(_digest(text)[:8]) for text in part], dtype=np.uint64)
    mixed = np.zeros(len(part[0]), dtype=np.uint64)
    for matrix in part:
        assert isinstance(matrix, Tensor)
        count = max(_FEWEST, _SAMPLED_BYTES // matrix.element_size())
        last = max(0, matrix.shape[1] - 1)
        columns = torch.linspace(0, last, count, device="cpu").long().unique()
        if matrix.shape[1]:
            sampled = _bytes(matrix[:, columns.to(matrix.device)])
            padded = np.pad(sampled, ((0, 0), (0, -sampled.shape[1] % 8)))
            for word in padded.view(np.uint64).T:
                mixed = (mixed ^ word) * _ODD
                mixed ^= mixed >> np.uint64(29)
    return mixed


def _bytes(matrix: Tensor) -> NDArray[np.uint8]:
    """(B, bytes of a row)."""
    return matrix.contiguous().cpu().view(torch.uint8).numpy()


def digests_of(part: Part, rows: Rows) -> list[bytes]:
    """What tells the contents of some rows apart from every other content."""
    if not len(rows):
        return []
    if not isinstance(part[0], Tensor):
        return [_digest(part[row]) for row in rows.tolist()]
    index = torch.from_numpy(rows)
    parts = [matrix[index.to(matrix.device)] for matrix in part if isinstance(matrix, Tensor)]
    kinds = repr([(str(matrix.dtype), matrix.shape[1]) for matrix in parts])
    whole = np.concatenate([_bytes(matrix) for matrix in parts], axis=1)
    return [_digest(kinds.encode() + row.tobytes()) for row in whole]


def _digest(content: Any) -> bytes:
    whole: bytes = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return blake2b(whole, digest_size=16).digest()
