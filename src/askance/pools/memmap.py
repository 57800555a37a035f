"""NumPy files that are mapped, not read: inputs, or features and logits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askance.embedding import Embedding, Ids
from askance.embedding.sources import as_labels, as_tensor
from askance.errors import DataError, InputError, ShardError
from askance.pools import files
from askance.pools.ids import Column, Numbered
from askance.pools.source import Part, Parts, Shard

PARTS: tuple[Part, ...] = ("inputs", "features", "logits", "labels")
SHARD_BYTES = 128 << 20


@dataclass(frozen=True, eq=False)
class MemmapSource:
    """Rows of `.npy` arrays that lie side by side.

    Args:
        address: a folder with `features.npy`, `logits.npy`, `inputs.npy`, and where there are any
            `labels.npy` and `ids.npy`; or one `.npy` file of inputs.
        arrays: the file of each part.
        ids: the file of identifiers, texts or whole numbers; `name:row` where there is none.
    """

    address: str
    arrays: dict[Part, str]
    ids: str | None
    shards: tuple[Shard, ...]

    @classmethod
    def open(
        cls, address: str, *, labeled: bool = False, shard_rows: int | None = None
    ) -> MemmapSource:
        """Map the arrays once, to count their rows."""
        arrays, ids = _arrays(Path(address), labeled)
        _check_matrices(arrays)
        counted = {path: _rows(path) for path in [*arrays.values(), *([ids] if ids else [])]}
        if len({rows for rows, _ in counted.values()}) > 1:
            lengths = ", ".join(f"{Path(path).name} {rows}" for path, (rows, _) in counted.items())
            raise DataError(
                f"{address}: its arrays must have one row for each point, they have {lengths}"
            )
        rows = next(iter(counted.values()))[0]
        width = sum(wide for _, wide in counted.values())
        size = shard_rows or max(1, min(1 << 18, SHARD_BYTES // max(1, width)))
        stamp = " | ".join(_stamp(path) for path in counted)
        name = Path(address).name
        shards = [
            Shard(
                i, f"{name}[{at}:{min(rows, at + size)}]", address, at, min(size, rows - at), stamp
            )
            for i, at in enumerate(range(0, rows, size))
        ]
        return cls(address, arrays, ids, tuple(shards))

    @property
    def holds(self) -> Parts:
        extra: Parts = frozenset({"inputs"} if "features" in self.arrays else ())
        return frozenset(self.arrays) | extra

    @property
    def unique_ids(self) -> bool:
        return self.ids is None

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[Embedding]:
        paths = [*self.arrays.values(), *([self.ids] if self.ids else [])]
        try:
            now = " | ".join(_stamp(path) for path in paths)
        except FileNotFoundError as error:
            raise files.gone(shard) from error
        if now != shard.stamp:
            raise ShardError(f"{shard.name}: the arrays changed after the pool was listed")
        held = {part: self._array(part) for part in sorted(wanted & self.holds)}
        names = None if self.ids is None else np.load(self.ids, mmap_mode="r", allow_pickle=False)
        stop = shard.start + (shard.rows or 0)
        for start in range(shard.start, stop, batch_size):
            view = slice(start, min(stop, start + batch_size))
            ids: Ids = Numbered(Path(self.address).name, start, view.stop - start)
            if names is not None:
                ids = Column(pa.array(names[view]))
            parts: dict[str, Any] = {p: as_tensor(a[view]) for p, a in held.items()}
            if "labels" in parts:
                parts["labels"] = as_labels(parts["labels"], len(parts["labels"]))
            yield Embedding(positions=range(start, view.stop), ids=ids, **parts)

    def _array(self, part: Part) -> Any:
        # Copy on write: torch may share the pages, and what it wrote would stay with this process.
        path = self.arrays.get(part) or self.arrays["features"]
        return np.load(path, mmap_mode="c", allow_pickle=False)


def _arrays(path: Path, labeled: bool) -> tuple[dict[Part, str], str | None]:
    if path.is_file():
        if labeled:
            raise InputError(
                f"{path}: a labelled set is a folder with labels.npy beside its arrays"
            )
        return {"inputs": str(path)}, None
    wanted = [part for part in PARTS if part != "labels" or labeled]
    arrays: dict[Part, str] = {
        part: str(path / f"{part}.npy") for part in wanted if (path / f"{part}.npy").is_file()
    }
    if not set(arrays) - {"labels"}:
        raise DataError(f"{path}: expected inputs.npy, features.npy or logits.npy in it")
    ids = path / "ids.npy"
    return arrays, str(ids) if ids.is_file() else None


def _check_matrices(arrays: dict[Part, str]) -> None:
    """Features and logits are matrices of floating point, as in an `Embedding`."""
    for part in ("features", "logits"):
        if part in arrays:
            array = _mapped(arrays[part])
            if array.ndim != 2 or not array.shape[1] or array.dtype.kind != "f":
                raise DataError(
                    f"{arrays[part]}: {part} must be floating point, one row for each point and at "
                    f"least one column; got {array.dtype} of shape {array.shape}"
                )


def _mapped(path: str) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (
        Exception
    ) as error:  # NumPy reads the header as Python's tokens, and raises what these do
        raise ShardError(f"{path}: cut short, corrupt or no .npy array ({error})") from error


def _rows(path: str) -> tuple[int, int]:
    """(rows, bytes of a row) of a `.npy` file."""
    array = _mapped(path)
    if array.ndim == 0:
        raise ShardError(f"{path}: expected one row for each point, got a single number")
    return len(array), array.dtype.itemsize * int(np.prod(array.shape[1:]))


def _stamp(path: str) -> str:
    stat = Path(path).stat()
    return f"{Path(path).name} {stat.st_size} {stat.st_mtime_ns}"
