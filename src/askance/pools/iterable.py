"""Any PyTorch `IterableDataset`: one shard, as long as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.utils.data import IterableDataset, default_collate

from askance.embedding import Embedding, Ids, Listed
from askance.embedding.sources import as_labels, to_device
from askance.errors import InputError, ShardError
from askance.pools.ids import Numbered
from askance.pools.source import Parts, Shard


@dataclass(frozen=True, eq=False)
class IterableSource:
    """The items of a dataset in its own order, which must be the same every time.

    Args:
        dataset: gives x; (id, x) with `pairs`; (x, y) or (id, x, y) of a labelled set.
        pairs: whether an item begins with its identifier; `address:position` otherwise.
        labeled: whether an item ends with its label.
        address: what messages call it.
    """

    dataset: IterableDataset[Any]
    pairs: bool = False
    labeled: bool = False
    address: str = "dataset"

    @property
    def shards(self) -> tuple[Shard, ...]:
        return (Shard(0, self.address, self.address, 0, None),)

    @property
    def holds(self) -> Parts:
        return frozenset({"inputs", "labels"} if self.labeled else {"inputs"})

    @property
    def unique_ids(self) -> bool:
        return not self.pairs

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[Embedding]:
        items, start = _items(self.dataset, shard), 0
        while batch := list(islice(items, batch_size)):
            names, inputs, labels = zip(*map(self._split, batch), strict=True)
            ids: Ids = Listed(names) if self.pairs else Numbered(self.address, start, len(batch))
            made = _batch(inputs, shard) if "inputs" in wanted else None
            answers = None
            if "labels" in wanted:
                answers = as_labels(torch.as_tensor(labels), len(batch))
            positions = range(start, start + len(batch))
            yield Embedding(positions=positions, ids=ids, inputs=made, labels=answers)
            start += len(batch)

    def _split(self, item: Any) -> tuple[str, Any, Any]:
        parts = item if isinstance(item, (tuple, list)) else (item,)
        wanted = 1 + self.pairs + self.labeled
        # What comes with a pool's x beyond that is dropped, never read.
        if len(parts) < wanted:
            form = ", ".join(["id"] * self.pairs + ["x"] + ["y"] * self.labeled)
            raise InputError(f"{self.address}: an item must be ({form}), it has {len(parts)} parts")
        name = str(parts[0]) if self.pairs else ""
        return name, parts[int(self.pairs)], parts[1 + self.pairs] if self.labeled else None


def _items(items: IterableDataset[Any], shard: Shard) -> Iterator[Any]:
    try:
        yield from items
    except Exception as error:
        raise ShardError(
            f"{shard.name}: the dataset raised {type(error).__name__}: {error}"
        ) from error


def _batch(inputs: tuple[Any, ...], shard: Shard) -> Any:
    try:
        return to_device(default_collate(list(inputs)), torch.device("cpu"), None)
    except (TypeError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise ShardError(
            f"{shard.name}: items could not be made into a batch ({reason})"
        ) from error
