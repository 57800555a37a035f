"""What is done of a pass, on disk, so that a killed one goes on from its last completed shard.

An SQLite file: which question is answered, and a record of each shard that is done, on disk before the
next is begun. A record that a kill cut short was never committed, and its shard is read again. Another
question than the file's is refused, with what differs, once there is a record.

A batch rule's embedding of what is done is in a folder beside the file, see `cache`.

A record holds those of the shard's best rows that were among the best of all when it was written. The
others can never be picked: the bar only rises.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askance._io import sqlite
from askance._io.lock import Lock
from askance.embedding import Embedding, Listed, positions_array, texts
from askance.errors import StoreError
from askance.picking import TopRows
from askance.pools.cache import EmbeddedRows, remove_cache
from askance.pools.duplicates import IdHashes
from askance.pools.reader import ShardResult
from askance.pools.source import Shard, Source
from askance.selection.scan import StagedRows
from askance.selection.selection import ReadCounts, Skipped

PASS = sqlite.Kind(
    "what is done of an `askance select`",
    application=0x41534B50,  # "ASKP"
    version=3,
    advice="begin anew with --restart, or write to another file",
)
# Records in order of completion, each in pieces: SQLite holds no value of more than a gigabyte.
PIECE = 1 << 28  # bytes
TABLES = (
    "CREATE TABLE question (id INTEGER PRIMARY KEY CHECK (id = 1), asked TEXT NOT NULL) STRICT",
    "CREATE TABLE piece (id INTEGER PRIMARY KEY, shard INTEGER NOT NULL, content BLOB NOT NULL) STRICT",
)


def resume_path(output: Path) -> Path:
    """Where the pass that will write `output` keeps what is done."""
    return output.with_name(f".{output.name}.resume")


def cache_path(path: Path) -> Path:
    """Where a batch rule's pass, whose file is `path`, keeps the embedding of what is done."""
    return path.with_name(f"{path.name}.cache")


def listing(source: Source) -> list[list[Any]]:
    """A source's shards, as far as a change of them would change the answer."""
    return [[shard.name, shard.rows, shard.stamp] for shard in source.shards]


class PassLog:
    """The open file of a pass. Use as a context manager.

    Args:
        path: the file; made where there is none.
        question: everything the answer depends on, as JSON can hold it.
        id_hashes: is given the hashes of what is done, which are not kept in memory.
        restart: whether to begin anew whatever is there.
    """

    def __init__(
        self,
        path: Path,
        question: dict[str, Any],
        id_hashes: IdHashes | None = None,
        *,
        restart: bool = False,
    ) -> None:
        self.path, self._id_hashes = path, id_hashes
        self.done: dict[int, ShardResult[Any]] = {}
        with sqlite.explained(path, PASS.advice):
            self._lock = Lock(path.with_name(f"{path.name}.lock"), what=str(path))
            try:
                if restart:
                    forget(path)
                PASS.check_header(path)
                self._db = PASS.writable(
                    sqlite.connect(path), path, journal="DELETE", synchronous="EXTRA"
                )
                try:
                    self._read(json.loads(json.dumps(question)))
                except BaseException:
                    self._db.close()
                    raise
            except BaseException:
                self._lock.release()
                raise

    def __enter__(self) -> PassLog:
        return self

    def __exit__(self, *error: Any) -> None:
        self._db.close()
        self._lock.release()

    def add(self, shard: Shard, result: ShardResult[Any]) -> None:
        """Write down that a shard is done, and see it on disk."""
        record = _packed(result)
        with sqlite.transaction(self._db, self.path):
            self._db.executemany(
                "INSERT INTO piece (shard, content) VALUES (?, ?)",
                ((shard.index, record[at : at + PIECE]) for at in range(0, len(record), PIECE)),
            )

    def _read(self, question: dict[str, Any]) -> None:
        with sqlite.transaction(self._db, self.path):
            if sqlite.is_empty(self._db):
                for statement in TABLES:
                    self._db.execute(statement)
                PASS.mark(self._db)
            stored = self._db.execute("SELECT asked FROM question").fetchone()
            before = {} if stored is None else json.loads(stored["asked"])
            begun = self._db.execute("SELECT 1 FROM piece").fetchone() is not None
            if before != question and begun:
                raise StoreError(
                    f"{self.path} is of a pass that was stopped and asked something else: "
                    f"{_difference(before, question)}. Ask the same again to go on with it, or begin "
                    f"anew with --restart"
                )
            if before != question:  # nothing was done, so nothing is lost
                text = json.dumps(question)
                self._db.execute("INSERT OR REPLACE INTO question VALUES (1, ?)", (text,))
        for index, record in self._records():
            result = _unpacked(record)
            if self._id_hashes is not None and result.hashes is not None:
                self._id_hashes.add(result.hashes)
            self.done[index] = replace(result, hashes=None)

    def _records(self) -> Iterator[tuple[int, bytes]]:
        """(shard, content) of each shard that is done."""
        rows = self._db.execute("SELECT shard, content FROM piece ORDER BY id")
        for index, pieces in groupby(rows, key=lambda row: row["shard"]):
            yield index, b"".join(piece["content"] for piece in pieces)


def forget(path: Path) -> None:
    """Remove the file of a pass, what a writer that was killed may have left of it, and its cache."""
    for each in (path.with_name(f"{path.name}-journal"), path):
        each.unlink(missing_ok=True)
    remove_cache(cache_path(path))  # last: a file without its cache could not be gone on with


def _packed(result: ShardResult[Any]) -> bytes:
    arrays: dict[str, Any] = {
        "counts": np.array([result.read.rows, result.read.excluded]),
        "labeled": np.array(result.read.labeled, dtype=np.int64),
        "skipped": _as_bytes([asdict(skip) for skip in result.read.skipped]),
    }
    if isinstance(result.value, EmbeddedRows):
        arrays["unpickable"] = result.value.unpickable
    elif isinstance(result.value, StagedRows):
        arrays |= _of_rows(result.value.shortlist)
        arrays |= {f"sample {k}": each for k, each in _of_rows(result.value.sample).items()}
    if result.hashes is not None:
        arrays["hashes"] = result.hashes
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def _unpacked(record: bytes) -> ShardResult[Any]:
    with np.load(io.BytesIO(record), allow_pickle=False) as stored:
        arrays = dict(stored)
    rows, excluded = arrays["counts"].tolist()
    skipped = tuple(Skipped(**skip) for skip in json.loads(arrays["skipped"].tobytes()))
    value: Any = None
    if "unpickable" in arrays:
        value = EmbeddedRows(Embedding.empty(), arrays["unpickable"])
    elif "scores" in arrays:
        value = StagedRows(_to_rows(arrays), _to_rows(arrays, "sample "))
    labeled = tuple(arrays["labeled"].tolist())
    read = ReadCounts(rows, excluded, skipped, labeled)
    return ShardResult(value, read, arrays.get("hashes"))


def _of_rows(top: TopRows) -> dict[str, Any]:
    """Rows and their scores as arrays."""
    positions = positions_array(top.rows.positions)
    arrays: dict[str, Any] = {"scores": top.scores, "positions": positions}
    arrays["ids"] = _as_bytes([] if top.rows.ids is None else texts(top.rows.ids))
    for name, matrix in top.rows.matrices.items():
        # Half precision has no NumPy form throughout; float32 holds every such number.
        wide = matrix if matrix.dtype in (torch.float32, torch.float64) else matrix.float()
        arrays[name] = wide.numpy()
    return arrays


def _to_rows(arrays: dict[str, Any], prefix: str = "") -> TopRows:
    """The inverse of `_of_rows`, whose names may have a prefix."""
    logits, features = (arrays.get(prefix + name) for name in ("logits", "features"))
    names = json.loads(arrays[f"{prefix}ids"].tobytes())
    ids = Listed(names) if names else None
    rows = Embedding(logits, features, arrays[f"{prefix}positions"], ids)
    return TopRows(rows, arrays[f"{prefix}scores"])


def _as_bytes(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    changes = []
    for key in [*before, *(key for key in now if key not in before)]:
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if key in ("pool", "labelled set") and old and new:
            changes.append(f"{key}: {_other_shards(old, new)}")
        elif isinstance(old, (str, int, float, list)) and len(f"{old}{new}") < 120:
            changes.append(f"{key} was {old!r}, it is {new!r}")
        else:
            changes.append(f"{key} is another")
    return "; ".join(changes)


def _other_shards(before: Sequence[Any], now: Sequence[Any]) -> str:
    old, new = ({name: (rows, stamp) for name, rows, stamp in shards} for shards in (before, now))
    gone = [name for name in old if name not in new]
    added = [name for name in new if name not in old]
    if gone:
        return f"shard {gone[0]} is gone"
    if added:
        return f"shard {added[0]} is new"
    changed = [name for name in old if old[name] != new[name]]
    if changed:
        rows = old[changed[0]][0], new[changed[0]][0]
        return f"shard {changed[0]} changed (it had {rows[0]} rows, it has {rows[1]})"
    return "its shards are in another order"
