"""Features that were computed before, kept by (the encoder's digest, the item's digest).

One SQLite file for each encoder. What is committed survives a kill, and several processes may read and
write one file at a time: an item's features are the same whoever computes them, so the first row stays.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance._io import sqlite
from askance.encoders.encoder import Encoder
from askance.errors import StoreError

FEATURES = sqlite.Kind(
    "cached features",
    application=0x41534B46,  # "ASKF"
    version=1,
    advice="delete the file; features are computed again",
)
_TABLES = (
    "CREATE TABLE encoder (id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL,"
    " kind TEXT NOT NULL, dimension INTEGER NOT NULL, digest TEXT NOT NULL) STRICT",
    "CREATE TABLE feature (item BLOB PRIMARY KEY, vector BLOB NOT NULL) STRICT, WITHOUT ROWID",
)
# SQLite takes at most 32,766 parameters a statement.
_ASKED = 10_000
_FLOAT = np.dtype("<f4")


def cache_folder() -> Path:
    """Where features are kept: `features` in ASKANCE_CACHE, else in `askance` of the user's cache."""
    named = os.environ.get("ASKANCE_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(named or f"{home}/askance").expanduser() / "features"


@dataclass(frozen=True)
class CachedFeatures:
    """What one file of the cache holds.

    Args:
        path: the file.
        encoder: the encoder's name.
        digest: the encoder's digest.
        items: how many items it has features of.
        size: bytes on disk.
    """

    path: Path
    encoder: str
    digest: str
    items: int
    size: int


class FeatureCache:
    """The features of one encoder, on disk. Use as a context manager.

    Args:
        encoder: whose features.
        folder: where; `cache_folder()` when None.
        precision: what the model computed in; features of another precision are kept apart.

    Example:
        >>> import numpy as np, tempfile
        >>> from askance import encoders
        >>> encoder = encoders.FunctionEncoder(lambda texts: [[len(t)] for t in texts], "text", "1")
        >>> with encoders.FeatureCache(encoder, tempfile.mkdtemp()) as cache:
        ...     cache.add({b"an item's digest": np.array([3.0], dtype=np.float32)})
        ...     cache.get([b"an item's digest", b"another"])
        {b"an item's digest": array([3.], dtype=float32)}
    """

    def __init__(
        self,
        encoder: Encoder,
        folder: str | os.PathLike[str] | None = None,
        *,
        precision: str = "float32",
    ) -> None:
        self.dimension = encoder.dimension
        where = Path(folder) if folder is not None else cache_folder()
        suffix = "" if precision == "float32" else f"-{precision}"
        self.path = where / f"{encoder.digest}{suffix}.sqlite"
        with sqlite.explained(self.path, FEATURES.advice):
            where.mkdir(parents=True, exist_ok=True)
            FEATURES.check_header(self.path)
            self._db = sqlite.connect(self.path, one_thread=False, shared=True)
            try:
                # Before WAL, so that the file itself carries its mark from the first commit on.
                self._create(encoder)
                FEATURES.writable(self._db, self.path, journal="WAL", synchronous="NORMAL")
            except BaseException:
                self._db.close()
                raise

    def _create(self, encoder: Encoder) -> None:
        with sqlite.transaction(self._db, self.path):
            if not sqlite.is_empty(self._db):
                return
            for statement in _TABLES:
                self._db.execute(statement)
            self._db.execute(
                "INSERT INTO encoder VALUES (1, ?, ?, ?, ?)",
                (encoder.name, encoder.kind, encoder.dimension, encoder.digest),
            )
            FEATURES.mark(self._db)

    def __enter__(self) -> FeatureCache:
        return self

    def __exit__(self, *error: Any) -> None:
        self._db.close()

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM feature").fetchone()[0])

    def get(self, items: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Item digest → (D,) features, of those that are there."""
        vectors: dict[bytes, NDArray[np.float32]] = {}
        with sqlite.explained(self.path, FEATURES.advice):
            for start in range(0, len(items), _ASKED):
                some = items[start : start + _ASKED]
                marks = ",".join("?" * len(some))
                rows = self._db.execute(
                    f"SELECT item, vector FROM feature WHERE item IN ({marks})", some
                )
                for item, vector in rows:
                    vectors[bytes(item)] = self._array(vector)
        return vectors

    def add(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Keep the features of some items, all of them or none."""
        rows = [(item, vector.astype(_FLOAT).tobytes()) for item, vector in vectors.items()]
        with sqlite.transaction(self._db, self.path):
            self._db.executemany("INSERT OR IGNORE INTO feature VALUES (?, ?)", rows)

    def _array(self, content: bytes) -> NDArray[np.float32]:
        if len(content) != self.dimension * _FLOAT.itemsize:
            raise StoreError(
                f"{self.path}: features of {len(content) // 4} numbers where the encoder gives "
                f"{self.dimension}; {FEATURES.advice}"
            )
        return np.frombuffer(content, dtype=_FLOAT)


def cached(folder: str | os.PathLike[str] | None = None) -> list[CachedFeatures]:
    """What the cache holds, encoder by encoder, the largest first."""
    where = Path(folder) if folder is not None else cache_folder()
    return sorted(_listed(where), key=lambda each: -each.size)


def prune(
    encoder: str | None = None, folder: str | os.PathLike[str] | None = None
) -> list[CachedFeatures]:
    """Delete the features of an encoder, by name or digest, or of all; returns what was deleted."""
    gone = [each for each in cached(folder) if encoder in (None, each.encoder, each.digest)]
    for each in gone:
        for suffix in ("", "-wal", "-shm"):
            each.path.with_name(each.path.name + suffix).unlink(missing_ok=True)
    return gone


def _listed(folder: Path) -> Iterator[CachedFeatures]:
    for path in folder.glob("*.sqlite"):
        with sqlite.explained(path, FEATURES.advice):
            FEATURES.check_header(path)
            db = sqlite.connect(path, "ro")
            try:
                row = db.execute("SELECT name, digest FROM encoder").fetchone()
                count = db.execute("SELECT count(*) FROM feature").fetchone()[0]
            except sqlite3.OperationalError:
                continue  # a process was killed before its first transaction
            finally:
                db.close()
        size = sum(
            file.stat().st_size
            for suffix in ("", "-wal")
            if (file := path.with_name(path.name + suffix)).exists()
        )
        yield CachedFeatures(path, row["name"], row["digest"], count, size)
