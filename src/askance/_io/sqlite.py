"""An SQLite file of ours: how it is opened, the mark it carries, a transaction, errors in words."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askance.errors import StoreError

# Seconds to wait for a reader or a writer, each of which holds the file for milliseconds.
PATIENCE = 60.0
HEADER = b"SQLite format 3\x00"
_CODE = """
SELECT name, sql FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'
"""
_LOOSE = """
SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'
"""
ADVICE = "restore a copy, or name another folder"


FileIdentity = tuple[int, int]  # device and inode


class Connection(sqlite3.Connection):
    """A connection that knows the files it has open, so that it can tell when they are gone."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.row_factory = sqlite3.Row
        self.opened: dict[Path, FileIdentity] = {}


def connect(
    path: Path, mode: str = "rwc", *, one_thread: bool = True, shared: bool = False
) -> Connection:
    """A connection whose rows have names, and which begins no transaction by itself.

    Args:
        path: the file.
        mode: "ro", "rw", or "rwc", which makes the file where there is none.
        one_thread: whether the connection may be used by this thread alone.
        shared: whether other processes may write, or delete the file; see `check_linked`.
    """
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(
        uri,
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=one_thread,
        factory=Connection,
    )
    if not shared:
        _note_open(db, path)
    return db


def check_linked(db: Connection) -> None:
    """Refuse to go on where the file, or the log beside it, is no longer the one that is open.

    A file that was deleted or replaced can still be written by who has it open, and what is written is
    gone with the process.
    """
    for file, before in db.opened.items():
        now = _identity(file)
        if now != before:
            raise StoreError(
                f"{file} was {'deleted' if now is None else 'replaced'} while it was in use, so "
                f"nothing more can be kept in it: stop, put it or a copy back, and start again"
            )


def _note_open(db: Connection, file: Path) -> None:
    identity = _identity(file)
    if identity is not None:
        db.opened.setdefault(file, identity)


def _identity(file: Path) -> FileIdentity | None:
    try:
        state = file.stat()
    except FileNotFoundError:
        return None
    return state.st_dev, state.st_ino


@dataclass(frozen=True)
class Kind:
    """What a file is for.

    Args:
        name: in a message, with its article.
        application: SQLite's mark of the application that wrote it.
        version: of its tables.
        older: versions that are read too, and brought to this one when they are written.
        advice: what to do where the file is damaged or another's.
        code: the SQL of its triggers and views; one that has others is refused, as they would be run.
    """

    name: str
    application: int
    version: int
    older: tuple[int, ...] = ()
    advice: str = ADVICE
    code: frozenset[str] = frozenset()

    def mark(self, db: sqlite3.Connection) -> None:
        """Mark a file as one of these; to be called in the transaction that makes its tables."""
        db.execute(f"PRAGMA application_id = {self.application}")
        db.execute(f"PRAGMA user_version = {self.version}")

    def writable(self, db: Connection, path: Path, *, journal: str, synchronous: str) -> Connection:
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
            raise self._foreign(path)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (self.version, *self.older):
            older = ", ".join(map(str, self.older))
            known = f"{older} and {self.version}" if older else self.version
            raise StoreError(
                f"{path} has version {version} of {self.name}'s tables and this askance reads version "
                f"{known}; use the askance that wrote it, or name another folder"
            )
        for name, sql in db.execute(_CODE).fetchall():
            if sql not in self.code:
                raise StoreError(
                    f"{path} has {name!r}, a trigger, view or virtual table that is not askance's and "
                    f"would be run; it was left as it is: {self.advice}"
                )
        loose = db.execute(_LOOSE).fetchone()
        if loose is not None:
            raise _damaged(path, f"its table {loose[0]!r} is not of strict types", self.advice)
        state = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if state != "ok":
            raise _damaged(path, state, self.advice)

    def check_header(self, path: Path) -> None:
        """Refuse another's file before SQLite opens, and perhaps recovers, what is not ours.

        With a journal beside it the file is half written and only SQLite can tell.
        """
        if not path.exists() or path.with_name(f"{path.name}-journal").exists():
            return
        with path.open("rb") as file:
            header = file.read(100)
        if header and not (len(header) == 100 and header.startswith(HEADER)):
            raise _damaged(path, "not an SQLite file", self.advice)
        if header and int.from_bytes(header[68:72], "big") != self.application:
            raise self._foreign(path)

    def _foreign(self, path: Path) -> StoreError:
        return StoreError(
            f"{path} is an SQLite file of another application, not {self.name}; it was left as it is: "
            f"{self.advice}"
        )


def is_empty(db: sqlite3.Connection) -> bool:
    """Whether nothing was ever committed: what a writer killed at its first transaction leaves."""
    return db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


@contextmanager
def transaction(db: Connection, path: Path) -> Iterator[None]:
    """All of what is written inside, or nothing; with errors in words."""
    with explained(path):
        check_linked(db)
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # SQLite has ended it itself after some errors
                db.execute("ROLLBACK")
            raise
        check_linked(db)  # what was committed is in files that others can find
        if path in db.opened:
            _note_open(db, path.with_name(f"{path.name}-wal"))


@contextmanager
def explained(path: Path, advice: str = ADVICE) -> Iterator[None]:
    """SQLite's and the system's errors in words, with the path and `advice` where it is damaged."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise _of_sqlite(path, code, error, advice) from error
    except UnicodeDecodeError as error:
        raise _damaged(path, str(error), advice) from error
    except OSError as error:
        raise _of_system(path, error) from error


def _of_sqlite(path: Path, code: int, error: Exception, advice: str) -> StoreError:
    if code == sqlite3.SQLITE_FULL:
        return _full(path)
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return _damaged(path, str(error), advice)
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


def _damaged(path: Path, reason: str, advice: str) -> StoreError:
    return StoreError(
        f"{path} is no askance store, or a damaged one ({reason}); it was left as it is: {advice}"
    )
