"""What is done of a pass, on disk, so that a killed one goes on from its last completed shard.

The file is a header and then one record a shard, each with its length and checksum, each on disk before
the next is begun. A record that was cut short by a kill is dropped, and its shard is read again. The
header says which question the records answer; where there are any, another question is refused, with
what differs.

A record holds those of the shard's leaders that led the whole pass when it was written. The others can
never be picked: the bar only rises.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from askance.errors import StoreError
from askance.pools.duplicates import SeenIds
from askance.pools.leaders import Leaders, Skipped
from askance.pools.source import Shard, Source

MAGIC = b"askance pass 1\n"
_HEAD = 12  # bytes: length (8) and checksum (4) before every record


def ledger_path(output: Path) -> Path:
    """Where the pass that will write `output` keeps what is done."""
    return output.with_name(f".{output.name}.resume")


def listing(source: Source) -> list[list[Any]]:
    """A source's shards, as far as a change of them would change the answer."""
    return [[shard.name, shard.rows, shard.stamp] for shard in source.shards]


class Ledger:
    """The open file of a pass. Use as a context manager.

    Args:
        path: the file; made where there is none.
        question: everything the answer depends on, as JSON can hold it.
        seen: is given the hashes of what is done, which are not kept in memory.
        restart: whether to begin anew whatever is there.
    """

    def __init__(
        self,
        path: Path,
        question: dict[str, Any],
        seen: SeenIds | None = None,
        *,
        restart: bool = False,
    ) -> None:
        self.path, self._seen = path, seen
        self.done: dict[int, Leaders] = {}
        try:
            self._file = path.open("a+b")
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
        try:
            self._lock()
            if restart:
                self._file.truncate(0)
            self._read(json.loads(json.dumps(question)))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: Any) -> None:
        self._file.close()

    def add(self, shard: Shard, leaders: Leaders) -> None:
        """Write down that a shard is done, and see it on disk."""
        self._write(_packed(shard.index, leaders))

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(
                f"{self.path} is being written by another process; wait for it to end or stop it, or "
                f"write to another file"
            ) from error

    def _read(self, question: dict[str, Any]) -> None:
        self._file.seek(0)
        begun = self._file.read(len(MAGIC))
        if begun and not MAGIC.startswith(begun):
            raise StoreError(f"{self.path} is not a file of askance's; move it away")
        records = self._records() if begun == MAGIC else iter(())
        header = next(records, None)
        if header is None:  # new, or killed before its first record
            self._begin(question)
            return
        before = json.loads(header[1])
        if before != question:
            if next(records, None) is None:  # nothing was done, so nothing is lost
                self._begin(question)
                return
            raise StoreError(
                f"{self.path} is of a pass that was stopped and asked something else: "
                f"{_difference(before, question)}. Ask the same again to go on with it, or begin anew "
                f"with --restart"
            )
        whole = header[0]
        for end, record in records:
            index, leaders = _unpacked(record)
            if self._seen is not None and leaders.hashes is not None:
                self._seen.add(leaders.hashes)
            self.done[index], whole = replace(leaders, hashes=None), end
        self._file.truncate(whole)

    def _begin(self, question: dict[str, Any]) -> None:
        self._file.truncate(0)
        self._append(MAGIC)
        self._write(json.dumps(question).encode())

    def _records(self) -> Iterator[tuple[int, bytes]]:
        """(where it ends, content) of each whole record."""
        while len(head := self._file.read(_HEAD)) == _HEAD:
            size, checksum = int.from_bytes(head[:8], "little"), int.from_bytes(head[8:], "little")
            content = self._file.read(size)
            if len(content) != size or zlib.crc32(content) != checksum:
                return
            yield self._file.tell(), content

    def _write(self, content: bytes) -> None:
        head = len(content).to_bytes(8, "little") + zlib.crc32(content).to_bytes(4, "little")
        self._append(head + content)

    def _append(self, content: bytes) -> None:
        try:
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}") from error


def _packed(index: int, leaders: Leaders) -> bytes:
    arrays: dict[str, Any] = {
        "index": np.int64(index),
        "scores": leaders.scores,
        "positions": leaders.positions,
        "ids": np.frombuffer(json.dumps(leaders.ids).encode(), np.uint8),
        "counts": np.array([leaders.rows, leaders.excluded]),
        "skipped": np.frombuffer(
            json.dumps([asdict(skip) for skip in leaders.skipped]).encode(), np.uint8
        ),
    }
    for name in ("logits", "features"):
        matrix: Tensor | None = getattr(leaders, name)
        if matrix is not None:
            # Half precision has no NumPy form throughout; float32 holds every such number.
            wide = matrix if matrix.dtype in (torch.float32, torch.float64) else matrix.float()
            arrays[name] = wide.numpy()
    if leaders.hashes is not None:
        arrays["hashes"] = leaders.hashes
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def _unpacked(record: bytes) -> tuple[int, Leaders]:
    with np.load(io.BytesIO(record), allow_pickle=False) as arrays:
        held = dict(arrays)
    rows, excluded = held["counts"].tolist()
    return int(held["index"]), Leaders(
        scores=held["scores"],
        positions=held["positions"],
        ids=tuple(json.loads(held["ids"].tobytes())),
        logits=torch.from_numpy(held["logits"]) if "logits" in held else None,
        features=torch.from_numpy(held["features"]) if "features" in held else None,
        rows=rows,
        excluded=excluded,
        skipped=tuple(Skipped(**skip) for skip in json.loads(held["skipped"].tobytes())),
        hashes=held.get("hashes"),
    )


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    told = []
    for key in [*before, *(key for key in now if key not in before)]:
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if key in ("pool", "labelled set") and old and new:
            told.append(f"{key}: {_other_shards(old, new)}")
        elif isinstance(old, (str, int, float, list)) and len(f"{old}{new}") < 120:
            told.append(f"{key} was {old!r}, it is {new!r}")
        else:
            told.append(f"{key} is another")
    return "; ".join(told)


def _other_shards(before: Sequence[Any], now: Sequence[Any]) -> str:
    old, new = ({name: (rows, stamp) for name, rows, stamp in shards} for shards in (before, now))
    gone = [name for name in old if name not in new]
    come = [name for name in new if name not in old]
    if gone:
        return f"shard {gone[0]} is gone"
    if come:
        return f"shard {come[0]} is new"
    changed = [name for name in old if old[name] != new[name]]
    if changed:
        rows = old[changed[0]][0], new[changed[0]][0]
        return f"shard {changed[0]} changed (it had {rows[0]} rows, it has {rows[1]})"
    return "its shards are in another order"
