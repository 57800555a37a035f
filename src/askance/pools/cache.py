"""A pool's embedding on disk, for rules that look at all of it at once.

Float32 logits and features in two mapped files: picking touches what it needs, and the machine may take
the pages back. A shard's rows lie at its global positions, so shards may end in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding, check_finite, check_range
from askance.errors import InputError, ShardError
from askance.pools.ids import Hashes
from askance.pools.leaders import Leaders, Skipped
from askance.pools.scorer import Reader
from askance.pools.source import Parts, Shard, Source

_ROWS = 1 << 16
# Float64 features whose row is all smaller, or anywhere larger, would be 0 or infinite here.
_SMALLEST, _LARGEST = torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max


@dataclass(frozen=True, eq=False)
class Embedded:
    """A shard's rows as the cache takes them.

    Args:
        positions: global positions of the rows that were read.
        matrices: float32 (rows, K) of each part.
        done: what the ledger keeps: counts, and as `positions` the rows that may not be picked.
    """

    positions: NDArray[np.int64]
    matrices: dict[str, NDArray[np.float32]]
    done: Leaders


@dataclass(frozen=True, eq=False)
class Embedder:
    """The embedding of a shard."""

    reader: Reader
    parts: Parts
    excluded: frozenset[str] = frozenset()
    hash_ids: bool = False

    @contextmanager
    def opened(self) -> Iterator[Callable[[Shard], Embedded]]:
        with self.reader.opened(self.parts) as read:
            yield lambda shard: self._embedded(shard, read)

    def _embedded(self, shard: Shard, read: Any) -> Embedded:
        positions, barred = [np.empty(0, dtype=np.int64)], list[NDArray[np.int64]]()
        matrices: dict[str, list[NDArray[np.float32]]] = {part: [] for part in sorted(self.parts)}
        bad, hashes = list[Skipped](), [np.empty(0, dtype=np.uint64)]
        try:
            for given, block in read(shard):
                bad += [Skipped(what, 1, False) for what in given.bad]
                if not len(given):
                    continue
                positions.append(np.asarray(given.positions, dtype=np.int64))
                barred.append(positions[-1][given.ids.find(self.excluded)])
                hashes += [given.ids.hashes()] if self.hash_ids else []
                for part, kept in matrices.items():
                    matrix: Tensor = getattr(block, part)
                    check_finite(part, matrix, block.positions)
                    if part == "features":
                        check_range(matrix, block.positions, smallest=_SMALLEST, largest=_LARGEST)
                    kept.append(_narrowed(matrix).cpu().numpy())
        except ShardError as error:
            if self.reader.on_error == "raise":
                raise
            whole = np.arange(shard.start, shard.start + (shard.rows or 0))
            lost = Skipped(str(error), shard.rows, True)
            return Embedded(whole[:0], {}, _done(whole, 0, 0, (lost,), None))
        where = np.concatenate(positions)
        out = np.concatenate([where[:0], *barred])
        unread = np.setdiff1d(np.arange(shard.start, shard.start + (shard.rows or 0)), where)
        done = _done(
            np.union1d(out, unread), len(where), len(out), tuple(bad),
            np.concatenate(hashes) if self.hash_ids else None,
        )  # fmt: skip
        held = {part: np.concatenate(kept) for part, kept in matrices.items() if kept}
        return Embedded(where, held, done)


def _narrowed(matrix: Tensor) -> Tensor:
    """In float32; logits past its largest number are as sure of their class there."""
    most = torch.finfo(torch.float32).max
    return matrix.clamp(-most, most).float() if matrix.dtype == torch.float64 else matrix.float()


def _done(
    barred: NDArray[np.int64], rows: int, excluded: int, skipped: Any, hashes: Hashes | None
) -> Leaders:
    return Leaders(
        np.zeros(len(barred)), barred, ("",) * len(barred),
        rows=rows, excluded=excluded, skipped=skipped, hashes=hashes,
    )  # fmt: skip


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

    def write(self, embedded: Embedded) -> None:
        """Put a shard's rows in their place, and see them on disk."""
        size = 4 * self.count * sum(matrix.shape[1] for matrix in embedded.matrices.values())
        if size > self.limit:
            raise InputError(
                f"a cache of the whole pool's embedding would take {size / 2**30:.2f} GiB of disk, "
                f"the limit is {self.limit / 2**30:.2f} GiB; give a shortlist to pick from, or raise "
                f"the limit"
            )
        for part, matrix in embedded.matrices.items():
            self._map(part, matrix.shape[1])[embedded.positions] = matrix
            self._maps[part].flush()

    def block(self, barred: NDArray[np.int64]) -> Embedding:
        """The rows that may be picked; mapped, not read."""
        if not len(barred):
            whole: dict[str, Any] = {
                part: torch.from_numpy(matrix) for part, matrix in self._maps.items()
            }
            return Embedding(**whole, positions=range(self.count))
        free = np.setdiff1d(np.arange(self.count), barred)
        some: dict[str, Any] = {
            part: torch.from_numpy(self._free(part, free)) for part in self._maps
        }
        return Embedding(**some, positions=free)

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

    def remove(self) -> None:
        self._maps.clear()
        for path in self.folder.glob("*"):
            path.unlink()
        self.folder.rmdir()


def ids_at(source: Source, positions: NDArray[np.int64]) -> tuple[str, ...]:
    """The identifiers of a few rows, read again from the shards they are in."""
    found: dict[int, str] = {}
    for shard in source.shards:
        stop = shard.start + (shard.rows or 0)
        wanted = positions[(positions >= shard.start) & (positions < stop)]
        if not len(wanted):
            continue
        for block in source.read(shard, _ROWS, frozenset()):
            here = np.asarray(block.positions, dtype=np.int64)
            rows = np.flatnonzero(np.isin(here, wanted))
            found.update(zip(here[rows].tolist(), block.ids.take(rows), strict=True))
    return tuple(found[position] for position in positions.tolist())
