"""An SQLite file of ours: the mark it carries, a transaction, and what went wrong in words."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from askance.errors import StoreError

# Seconds to wait for a reader or a writer, each of which holds the file for milliseconds.
PATIENCE = 60.0


@dataclass(frozen=True)
class Kind:
    """What a file is for.

    Args:
        name: in a message, with its article.
        application: SQLite's mark of the application that wrote it.
        version: of its tables.
        older: versions that are read too, and brought to this one when they are written.
    """

    name: str
    application: int
    version: int
    older: tuple[int, ...] = ()

    def mark(self, db: sqlite3.Connection) -> None:
        """Mark a file as one of these; to be called in the transaction that makes its tables."""
        db.execute(f"PRAGMA application_id = {self.application}")
        db.execute(f"PRAGMA user_version = {self.version}")

    def writable(
        self, db: sqlite3.Connection, path: Path, *, journal: str, synchronous: str
    ) -> sqlite3.Connection:
        """The same connection, to a sound file or an empty one, set to write; else it is closed."""
        try:
            if not is_empty(db):
                self.check(db, path)
            db.execute(f"PRAGMA journal_mode = {journal}")
            db.execute(f"PRAGMA synchronous = {synchronous}")
            db.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            db.close()
            raise
        return db

    def check(self, db: sqlite3.Connection, path: Path) -> None:
        """Refuse a file that is not a sound one of a version that can be read."""
        if db.execute("PRAGMA application_id").fetchone()[0] != self.application:
            raise foreign(path, self)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (self.version, *self.older):
            known = " and ".join(map(str, (*self.older, self.version)))
            raise StoreError(
                f"{path} has version {version} of {self.name}'s tables and this askance reads version "
                f"{known}; use the askance that wrote it, or name another folder"
            )
        state = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if state != "ok":
            raise damaged(path, state)


def is_empty(db: sqlite3.Connection) -> bool:
    """Whether nothing was ever committed: what a writer killed at its first transaction leaves."""
    return db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


@contextmanager
def transaction(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All of what is written inside, or nothing; with errors in words."""
    with explained(path):
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # SQLite has ended it itself after some errors
                db.execute("ROLLBACK")
            raise


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """SQLite's and the system's errors in words, with the path and what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise _of_sqlite(path, code, error) from error
    except OSError as error:
        raise _of_system(path, error) from error


def _of_sqlite(path: Path, code: int, error: Exception) -> StoreError:
    if code == sqlite3.SQLITE_FULL:
        return _full(path)
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return damaged(path, str(error))
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return _unwritable(path, str(error))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(
            f"{path} stayed locked by another process for {PATIENCE:.0f} s; try again"
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreError(
            f"reading or writing {path} failed ({error}): is the disk full, over quota or gone? "
            f"What was committed is intact; the same command resumes"
        )
    return StoreError(f"{path}: {error}")


def _of_system(path: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return _full(path)
    return _unwritable(path, error.strerror or str(error))


def _full(path: Path) -> StoreError:
    return StoreError(
        f"the disk of {path} is full; what was committed is intact: make room, and the same command "
        f"resumes"
    )


def _unwritable(path: Path, reason: str) -> StoreError:
    return StoreError(
        f"{path} cannot be opened or written: {reason}; check that the folder is there and may be "
        f"written, or name another folder"
    )


def damaged(path: Path, reason: str) -> StoreError:
    """The error for a file that SQLite cannot read."""
    return StoreError(
        f"{path} is no askance store, or a damaged one ({reason}); it was left as it is: "
        f"restore a copy, or name another folder"
    )


def foreign(path: Path, kind: Kind) -> StoreError:
    """The error for a file that others have written."""
    return StoreError(
        f"{path} is an SQLite file of another application, not {kind.name}; it was left as it is: name "
        f"another folder"
    )
