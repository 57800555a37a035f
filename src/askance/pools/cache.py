"""A pool's embedding on disk, for rules that look at all of it at once.

Float32 logits and features in two mapped files: picking touches what it needs, and the machine may take
the pages back. A shard's rows lie at its global positions, so shards may end in any order.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import (
    Embedding,
    Listed,
    check_finite,
    check_range,
    concatenated,
    positions_array,
)
from askance.errors import InputError
from askance.pools.reader import ShardRows
from askance.pools.source import Shard, Source
from askance.selection.clock import Clock
from askance.selection.constraints import Constraints
from askance.selection.excluded import Excluded
from askance.selection.inputs import checked
from askance.strategies import Strategy

_ROWS = 1 << 16
# Float64 features whose row is all smaller, or anywhere larger, would be 0 or infinite here.
_SMALLEST, _LARGEST = torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max


@dataclass(frozen=True, eq=False)
class EmbeddedRows:
    """A shard's rows as the cache takes them.

    Args:
        rows: those that were read, in float32.
        unpickable: int64, the shard's positions that may not be picked: excluded, or not read.
    """

    rows: Embedding
    unpickable: NDArray[np.int64]

    def without_rows(self) -> EmbeddedRows:
        """What is to be remembered once the rows are where they belong."""
        return replace(self, rows=Embedding.empty())


def every_position(shard: Shard) -> NDArray[np.int64]:
    """The positions of all rows a shard is listed with."""
    return np.arange(shard.start, shard.start + (shard.rows or 0))


@dataclass(frozen=True, eq=False)
class EmbedRows:
    """A shard's embedding in float32: a job's work.

    Args:
        rule: the rule that will pick.
        excluded: what is not to be picked.
        labeled: some rows of the labelled set, whose widths a block must have.
        constraints: limits on the picks, which may look at more than the rule does.
    """

    rule: Strategy
    excluded: Excluded
    labeled: Embedding | None = None
    constraints: Constraints | None = None

    def __call__(self, rows: ShardRows, clock: Clock) -> EmbeddedRows:
        blocks, excluded = [Embedding.empty()], [np.empty(0, dtype=np.int64)]
        needs = self.rule.needs | (self.constraints.needs if self.constraints else frozenset())
        for block in checked(clock.timing("forward", iter(rows)), self.rule, self.labeled, needs):
            for name, matrix in block.matrices.items():
                check_finite(name, matrix, block.positions)
                if name == "features":
                    check_range(matrix, block.positions, smallest=_SMALLEST, largest=_LARGEST)
            excluded.append(positions_array(block.positions)[self.excluded.among(block)])
            blocks.append(replace(block.mapped(_narrowed), ids=None).to("cpu"))
        out, read = np.concatenate(excluded), concatenated(blocks[1:] or blocks)
        rows.excluded = len(out)
        unread = np.setdiff1d(every_position(rows.shard), positions_array(read.positions))
        return EmbeddedRows(read, np.union1d(out, unread))


def _narrowed(matrix: Tensor) -> Tensor:
    """In float32; logits past its largest number are as sure of their class there."""
    most = torch.finfo(torch.float32).max
    return matrix.clamp(-most, most).float() if matrix.dtype == torch.float64 else matrix.float()


class EmbeddingCache:
    """Two mapped files of float32, `count` rows each, of at most `limit` bytes together."""

    def __init__(self, folder: Path, count: int, limit: int) -> None:
        self.folder, self.count, self.limit = folder, count, limit
        folder.mkdir(parents=True, exist_ok=True)
        self._maps: dict[str, Any] = {}
        for path in self._files():
            self._map(path.stem, path.stat().st_size // (4 * self.count))

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.f32"))

    @property
    def size(self) -> int:
        """Bytes it takes."""
        return sum(matrix.nbytes for matrix in self._maps.values())

    def write(self, embedded: EmbeddedRows) -> None:
        """Put a shard's rows in their place, and see them on disk."""
        matrices = embedded.rows.matrices
        size = 4 * self.count * sum(matrix.shape[1] for matrix in matrices.values())
        if size > self.limit:
            raise InputError(
                f"a cache of the whole pool's embedding would take {size / 2**30:.2f} GiB of disk, "
                f"the limit is {self.limit / 2**30:.2f} GiB; give a shortlist to pick from, or raise "
                f"the limit"
            )
        for part, matrix in matrices.items():
            self._map(part, matrix.shape[1])[positions_array(embedded.rows.positions)] = matrix
            self._maps[part].flush()

    def rows(self, unpickable: NDArray[np.int64]) -> Embedding:
        """The rows that may be picked; mapped, not read."""
        free = None if not len(unpickable) else np.setdiff1d(np.arange(self.count), unpickable)
        matrices = {
            part: torch.from_numpy(matrix if free is None else self._free(part, free))
            for part, matrix in self._maps.items()
        }
        return Embedding(
            matrices.get("logits"),
            matrices.get("features"),
            range(self.count) if free is None else free,
        )

    def _free(self, part: str, rows: NDArray[np.int64]) -> Any:
        whole = self._maps[part]
        path = self.folder / f"{part}.free"
        kept = np.memmap(path, np.float32, "w+", shape=(len(rows), whole.shape[1]))
        for start in range(0, len(rows), _ROWS):
            kept[start : start + _ROWS] = whole[rows[start : start + _ROWS]]
        return kept

    def _map(self, part: str, width: int) -> Any:
        if part not in self._maps:
            path = self.folder / f"{part}.f32"
            mode: Any = "r+" if path.exists() else "w+"
            self._maps[part] = np.memmap(path, np.float32, mode, shape=(self.count, width))
        return self._maps[part]


def remove_cache(folder: Path) -> None:
    """Delete a cache's files, and their folder where nothing else is in it."""
    for path in (*folder.glob("*.f32"), *folder.glob("*.free")):
        path.unlink()
    with suppress(OSError):
        folder.rmdir()


def ids_at(source: Source, positions: NDArray[np.int64]) -> Listed:
    """The identifiers of a few rows, read again from the shards they are in."""
    names: dict[int, str] = {}
    for shard in source.shards:
        stop = shard.start + (shard.rows or 0)
        wanted = positions[(positions >= shard.start) & (positions < stop)]
        if not len(wanted):
            continue
        for block in source.read(shard, _ROWS, frozenset()):
            assert isinstance(block, Embedding)
            assert block.ids is not None
            here = positions_array(block.positions)
            rows = np.flatnonzero(np.isin(here, wanted))
            names.update(zip(here[rows].tolist(), block.ids.take(rows), strict=True))
    return Listed([names[position] for position in positions.tolist()])
