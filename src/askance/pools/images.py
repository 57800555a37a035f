"""Image folders: every image in a folder and below; identifiers are relative paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from askance.embedding import Embedding, Listed
from askance.errors import ShardError
from askance.images import SUFFIXES
from askance.pools import decode, files
from askance.pools.source import Parts, Shard
from askance.selection.selection import Skipped

SHARD_FILES = 1024


@dataclass(frozen=True, eq=False)
class ImageSource:
    """Image files. A shard is a run of them, in the order of their paths.

    Args:
        address: the folder, here or at an fsspec address.
        transform: an image file's bytes to a tensor.
        classes: of a labelled set, the names of the folders right below `address`, in order.
        shards: runs of files; each carries its files' names and stamps.
    """

    address: str
    transform: Callable[[bytes], Tensor]
    classes: tuple[str, ...]
    shards: tuple[Shard, ...]
    unique_ids: bool = True

    @classmethod
    def open(
        cls,
        address: str,
        *,
        transform: Callable[[bytes], Tensor] | None = None,
        labeled: bool = False,
        shard_files: int = SHARD_FILES,
    ) -> ImageSource:
        """List the images. With `labeled`, the first folder in a path is the image's class."""
        listed = files.listed(address, SUFFIXES)
        shards: list[Shard] = []
        names = [name for _, name, _ in listed]
        for start in range(0, len(listed), shard_files):
            part = tuple(listed[start : start + shard_files])
            stamp = blake2b(repr(part).encode(), digest_size=8).hexdigest()
            label = f"{part[0][1]} … {part[-1][1]}" if len(part) > 1 else part[0][1]
            shards.append(Shard(len(shards), label, address, start, len(part), stamp, part))
        classes = _classes(address, names) if labeled else ()
        return cls(address, transform or decode.image_tensor, classes, tuple(shards))

    @property
    def holds(self) -> Parts:
        return frozenset({"inputs", "labels"} if self.classes else {"inputs"})

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[Embedding | Skipped]:
        for at in range(0, len(shard.part), batch_size):
            some = shard.part[at : at + batch_size]
            names = [name for _, name, _ in some]
            labels = None
            if "labels" in wanted:
                labels = torch.tensor([self.classes.index(name.split("/")[0]) for name in names])
            start = shard.start + at
            positions = range(start, start + len(some))
            rows = Embedding(positions=positions, ids=Listed(names), labels=labels)
            if "inputs" in wanted:
                yield from decode.decoded_rows(rows, some, self._tensor, shard)
            else:
                yield rows

    def _tensor(self, file: tuple[str, str, str]) -> Any:
        path, name, stamp = file
        with files.reading(Shard(0, name, path, 0, 1, stamp)) as opened:
            return self.transform(opened.read())


def _classes(address: str, names: list[str]) -> tuple[str, ...]:
    loose = next((name for name in names if "/" not in name), None)
    if loose is not None:
        raise ShardError(
            f"{address}: a labelled folder has one folder of images for each class; {loose} is in none"
        )
    return tuple(sorted({name.split("/")[0] for name in names}))
