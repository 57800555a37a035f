"""The SQLite file of a store: its tables, and how it is opened.

Journal: rollback (DELETE), not WAL. Between transactions the file is all there is, so a store is read
from a read-only folder or a network disk, even after its writer was killed; WAL needs shared memory and
leaves two files beside. A transaction is committed when its journal is deleted; `synchronous = EXTRA`
flushes the journal, the file and that deletion to the disk first, so a committed round outlives a power
cut as well as a SIGKILL. It costs milliseconds a round, and a round is a training.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from askance._io.sqlite import Connection, Kind, connect, is_empty
from askance.errors import StoreError

STORE = Kind("an askance store", application=0x41534B41, version=5, older=(2, 3, 4))  # "ASKA"
PAGE = 16_384  # bytes; a round of 500 picks takes about 3,000, and more than one is to fit

# What training left, since version 3: loss and accuracy on the labelled set itself, and the share of
# its largest class. All three are NULL in older rounds.
TRAINING = {
    "train_loss": "REAL",
    "train_accuracy": "REAL CHECK (train_accuracy BETWEEN 0 AND 1)",
    "majority": "REAL CHECK (majority BETWEEN 0 AND 1)",
}

# On the test split, since version 4: the mean share of right answers of each class, and the mean F1.
# Both are NULL in older rounds.
BY_CLASS = {
    "balanced_accuracy": "REAL CHECK (balanced_accuracy BETWEEN 0 AND 1)",
    "macro_f1": "REAL CHECK (macro_f1 BETWEEN 0 AND 1)",
}
LATER = {**TRAINING, **BY_CLASS}  # columns of rounds that older stores may lack

# Of the sweep, since version 5: whether the rate trains a first labelled set. NULL in older sweeps.
TRAINED = "trained INTEGER CHECK (trained IN (0, 1))"

# NULL as a loss is NaN, which SQLite cannot hold; infinity it can. Picks are little-endian int64 and
# scores float32, one for each pick, as `records.packed` has them. `seconds` and `peak_mb` map a stage
# to a number.
_LATER = ",\n    ".join(f"{name} {kind}" for name, kind in LATER.items())
TABLES = f"""
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
    {TRAINED},
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
    {_LATER},
    PRIMARY KEY (strategy, seed, round),
    FOREIGN KEY (strategy, seed) REFERENCES run
) STRICT;
"""

# What the network is made of, a row a part; not in stores of before it was kept.
NETWORK = """
CREATE TABLE IF NOT EXISTS network (
    line INTEGER PRIMARY KEY,
    part TEXT NOT NULL
) STRICT
"""

# What else is known, a row a fact: the sizes of the data, and the spec's file. Not in stores of before
# it was kept.
FACTS = """
CREATE TABLE IF NOT EXISTS fact (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""

# What the model of a round predicts of a sample of the test split, where a stopping rule asks for it:
# int64, as `records.packed` has them. Not in stores of before it was kept.
PREDICTIONS = """
CREATE TABLE IF NOT EXISTS prediction (
    strategy TEXT NOT NULL,
    seed INTEGER NOT NULL,
    round INTEGER NOT NULL,
    classes BLOB NOT NULL,
    PRIMARY KEY (strategy, seed, round),
    FOREIGN KEY (strategy, seed, round) REFERENCES round
) STRICT
"""


def writer(path: Path) -> Connection:
    """A connection for writing to an intact store or an empty file; nothing is written yet."""
    STORE.check_header(path)
    db = STORE.writable(connect(path), path, journal="DELETE", synchronous="EXTRA")
    db.execute(f"PRAGMA page_size = {PAGE}")  # heeded as long as the file is empty
    return db


def reader(path: Path) -> Connection:
    """A connection for reading an intact store."""
    STORE.check_header(path)
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
    """Create the tables and mark the file as a store. Call it in a transaction."""
    for statement in TABLES.split(";\n"):
        db.execute(statement)
    STORE.mark(db)


def upgrade(db: sqlite3.Connection) -> None:
    """Add the columns that an older store lacks. Call it in a transaction."""
    if db.execute("PRAGMA user_version").fetchone()[0] == STORE.version:
        return
    there = columns_of_rounds(db)
    for name, kind in LATER.items():
        if name not in there:
            db.execute(f"ALTER TABLE round ADD COLUMN {name} {kind}")
    db.execute(f"ALTER TABLE sweep ADD COLUMN {TRAINED}")
    STORE.mark(db)


def columns_of_rounds(db: sqlite3.Connection) -> set[str]:
    """The columns that the table of rounds has; in an older store it lacks some of `LATER`."""
    return {row["name"] for row in db.execute("PRAGMA table_info(round)")}


def _sound(path: Path, mode: str) -> Connection:
    db = connect(path, mode)
    try:
        if is_empty(db):
            raise StoreError(f"{path} is empty: its run ended before anything was stored")
        STORE.check(db, path)
        db.execute("PRAGMA query_only = ON")
    except BaseException:
        db.close()
        raise
    return db
