"""The SQLite file of a store: its tables, how it is opened, and its errors in words.

Journal: rollback (DELETE), not WAL. Between transactions the file is all there is, so a store is read
from a read-only folder or a network disk, even after its writer was killed; WAL needs shared memory and
leaves two files beside. A transaction is committed when its journal is deleted; `synchronous = EXTRA`
flushes the journal, the file and that deletion to the disk first, so a committed round outlives a power
cut as well as a SIGKILL. It costs milliseconds a round, and a round is a training.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from askance.errors import StoreError

APPLICATION = 0x41534B41  # "ASKA"
VERSION = 2
PAGE = 16_384  # bytes; a round of 500 picks takes about 3,000, and more than one is to fit
HEADER = b"SQLite format 3\x00"
PATIENCE = (
    60.0  # seconds to wait for a reader or a writer, each of which holds the file for milliseconds
)

# NULL as a loss is NaN, which SQLite cannot hold; infinity it can. Picks are little-endian int64 and
# scores float32, one for each pick, as `records.packed` has them. `seconds` and `peak_mb` map a stage
# to a number.
TABLES = """
CREATE TABLE experiment (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    spec TEXT NOT NULL CHECK (json_valid(spec)),
    hash TEXT NOT NULL,
    code TEXT NOT NULL,
    created TEXT NOT NULL,
    learning_rate REAL CHECK (learning_rate > 0),
    fingerprint TEXT,
    source TEXT,
    subset TEXT
) STRICT;

CREATE TABLE machine (
    id INTEGER PRIMARY KEY,
    started TEXT NOT NULL,
    code TEXT NOT NULL,
    hardware TEXT NOT NULL CHECK (json_valid(hardware)),
    python TEXT NOT NULL,
    packages TEXT NOT NULL CHECK (json_valid(packages)),
    device TEXT NOT NULL,
    engine TEXT NOT NULL,
    precision TEXT NOT NULL,
    threads INTEGER NOT NULL CHECK (threads > 0)
) STRICT;

CREATE TABLE sweep (
    learning_rate REAL NOT NULL CHECK (learning_rate > 0),
    seed INTEGER NOT NULL CHECK (seed >= 0),
    accuracy REAL NOT NULL CHECK (accuracy BETWEEN 0 AND 1),
    seconds REAL NOT NULL CHECK (seconds >= 0),
    peak_mb REAL CHECK (peak_mb >= 0),
    PRIMARY KEY (learning_rate, seed)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    strategy TEXT NOT NULL,
    seed INTEGER NOT NULL CHECK (seed >= 0),
    initial BLOB NOT NULL CHECK (length(initial) > 0),
    PRIMARY KEY (strategy, seed)
) STRICT, WITHOUT ROWID;

CREATE TABLE round (
    strategy TEXT NOT NULL,
    seed INTEGER NOT NULL,
    round INTEGER NOT NULL CHECK (round >= 0),
    labels INTEGER NOT NULL CHECK (labels > 0),
    accuracy REAL NOT NULL CHECK (accuracy BETWEEN 0 AND 1),
    loss REAL,
    picks BLOB NOT NULL,
    scores BLOB,
    learning_rate REAL NOT NULL CHECK (learning_rate > 0),
    seconds TEXT NOT NULL CHECK (json_valid(seconds)),
    peak_mb TEXT NOT NULL CHECK (json_valid(peak_mb)),
    committed TEXT NOT NULL,
    PRIMARY KEY (strategy, seed, round),
    FOREIGN KEY (strategy, seed) REFERENCES run
) STRICT;
"""


def writer(path: Path) -> sqlite3.Connection:
    """A connection to write with, to a sound store or to an empty file; nothing is written yet."""
    _check_header(path)
    db = _connect(path, "rwc")
    try:
        if is_empty(db):
            db.execute(f"PRAGMA page_size = {PAGE}")
        else:
            _check(db, path)
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        db.close()
        raise
    return db


def reader(path: Path) -> sqlite3.Connection:
    """A connection to read with, to a sound store."""
    _check_header(path)
    try:
        return _sound(path, "ro")
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_READONLY:
            raise
    # A writer was killed within a commit. Whoever may write the file can undo what it left half done;
    # SQLite sees to it that no living writer is disturbed.
    try:
        return _sound(path, "rw")
    except sqlite3.OperationalError as error:
        raise StoreError(
            f"{path} was being written when a commit was cut in half, and undoing it needs a folder "
            f"that may be written ({error}): open it once where it may, or copy the folder"
        ) from error


def create(db: sqlite3.Connection) -> None:
    """The tables and the marks of this application; to be called in a transaction."""
    for statement in TABLES.split(";\n"):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def is_empty(db: sqlite3.Connection) -> bool:
    """Whether nothing was ever committed: what a writer killed at its first transaction leaves."""
    return db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
    db.row_factory = sqlite3.Row
    return db


def _sound(path: Path, mode: str) -> sqlite3.Connection:
    db = _connect(path, mode)
    try:
        if is_empty(db):
            raise StoreError(f"{path} is empty: its run ended before anything was stored")
        _check(db, path)
        db.execute("PRAGMA query_only = ON")
    except BaseException:
        db.close()
        raise
    return db


def _check_header(path: Path) -> None:
    """Refuse another application's file before SQLite opens, and perhaps recovers, what is not ours.

    With a journal beside it the file is half written and only SQLite can tell.
    """
    if not path.exists() or path.with_name(f"{path.name}-journal").exists():
        return
    with path.open("rb") as file:
        header = file.read(100)
    if header and not (len(header) == 100 and header.startswith(HEADER)):
        raise _damaged(path, "not an SQLite file")
    if header and int.from_bytes(header[68:72], "big") != APPLICATION:
        raise _foreign(path)


def _check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a sound store of this version."""
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise _foreign(path)
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        raise StoreError(
            f"{path} has version {version} of the store's tables and this askance reads version "
            f"{VERSION}; use the askance that wrote it, or name another folder"
        )
    state = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if state != "ok":
        raise _damaged(path, state)


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
        return _damaged(path, str(error))
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


def _damaged(path: Path, reason: str) -> StoreError:
    return StoreError(
        f"{path} is no askance store, or a damaged one ({reason}); it was left as it is: "
        f"restore a copy, or name another folder"
    )


def _foreign(path: Path) -> StoreError:
    return StoreError(
        f"{path} is an SQLite file of another application, not an askance store; it was left as it "
        f"is: name another folder"
    )
