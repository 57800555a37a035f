"""A store as one compressed file, `store.sqlite.gz`, to be kept beside code.

It is read wherever a store is read. A run that goes on with it makes `store.sqlite` of it again.

Example:
    >>> from askance.experiments.packing import pack
    >>> pack("runs/digits")  # doctest: +SKIP
    PosixPath('runs/digits/store.sqlite.gz')
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

from askance._io import sqlite
from askance._io.atomic import atomic_write
from askance._io.lock import Lock
from askance.errors import StoreError
from askance.experiments import schema

FILE = "store.sqlite"
LOCK = "store.lock"
PACKED = f"{FILE}.gz"
MOST_BYTES = 1 << 30


def file_of(folder: Path) -> Path:
    """The store's file in a folder: the packed one where there is no other."""
    packed = folder / PACKED
    return packed if packed.is_file() and not (folder / FILE).exists() else folder / FILE


def pack(folder: str | os.PathLike[str]) -> Path:
    """Replace a folder's `store.sqlite` by its packed form; while a run writes it, it is refused."""
    path = Path(folder) / FILE
    if not path.is_file():
        raise StoreError(f"there is no store to pack at {path}")
    with sqlite.explained(path):
        lock = Lock(path.with_name(LOCK))
        try:
            with TemporaryDirectory(dir=path.parent, prefix=".pack-") as place:
                compact = Path(place) / FILE
                db = schema.reader(path)
                try:
                    db.execute("PRAGMA query_only = OFF")
                    db.execute("VACUUM INTO ?", (str(compact),))
                finally:
                    db.close()
                content = gzip.compress(compact.read_bytes(), 9, mtime=0)
            target = path.with_name(PACKED)
            atomic_write(target, content)
            path.unlink()
        finally:
            lock.release()
    return target


def unpack(folder: Path) -> None:
    """Make `store.sqlite` of a packed store, where there is one. Call it with the folder's lock."""
    packed, path = folder / PACKED, folder / FILE
    if not packed.is_file():
        return
    if not path.exists():
        reader(packed).close()  # a damaged one stays as it is
        atomic_write(path, _content(packed))
    packed.unlink()


def reader(path: Path) -> sqlite.Connection:
    """A connection for reading a packed store, which is held in memory."""
    content = _content(path)
    db = sqlite.Connection(":memory:", isolation_level=None)
    try:
        db.deserialize(content)
        schema.STORE.check(db, path)
        db.execute("PRAGMA query_only = ON")
    except BaseException:
        db.close()
        raise
    return db


def _content(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            content = file.read(MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise StoreError(
            f"{path} is no packed store, or a damaged one ({error}); restore a copy"
        ) from error
    if len(content) > MOST_BYTES:
        raise StoreError(
            f"{path} unpacks to more than {MOST_BYTES:,} bytes; no run makes such a store"
        )
    if not content.startswith(sqlite.HEADER):
        raise StoreError(f"{path} does not hold an SQLite file; restore a copy")
    return content
