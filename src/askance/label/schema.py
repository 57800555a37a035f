"""The SQLite file of a project: append-only tables, WAL, and a commit that is on the disk.

Journal: WAL, so that reading never waits for writing, with `synchronous = FULL`: the log is flushed to
the disk at every commit, so an answer that was acknowledged outlives a SIGKILL and a power cut alike.
Triggers refuse every UPDATE and DELETE: what was said once stays said.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from askance.bench.schema import transaction
from askance.errors import StoreError

APPLICATION = 0x41534B4C  # "ASKL"
VERSION = 2
PATIENCE = 30.0

TABLES = {
    "project": """(
        id INTEGER PRIMARY KEY CHECK (id = 1),
        created TEXT NOT NULL,
        data TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('image', 'text', 'features')),
        seed INTEGER NOT NULL,
        held_out REAL NOT NULL
    )""",
    "item": """(
        id TEXT PRIMARY KEY,
        seen TEXT NOT NULL,
        digest TEXT
    )""",
    "class": """(
        id INTEGER PRIMARY KEY CHECK (id >= 0),
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        made TEXT NOT NULL,
        token TEXT UNIQUE
    )""",
    "question": """(
        id INTEGER PRIMARY KEY,
        item TEXT NOT NULL REFERENCES item,
        annotator TEXT NOT NULL,
        asked TEXT NOT NULL,
        reason TEXT NOT NULL
            CHECK (reason IN ('first', 'rule', 'held-out', 'disagreement', 'repeat', 'outside')),
        version INTEGER,
        why TEXT NOT NULL,
        numbers TEXT NOT NULL CHECK (json_valid(numbers)),
        guess INTEGER REFERENCES class,
        confidence REAL CHECK ((confidence IS NULL) = (guess IS NULL))
    )""",
    "event": """(
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL CHECK (kind IN ('answer', 'skip', 'undo')),
        question INTEGER NOT NULL REFERENCES question,
        annotator TEXT NOT NULL,
        time TEXT NOT NULL,
        token TEXT NOT NULL UNIQUE,
        class INTEGER REFERENCES class CHECK ((class IS NOT NULL) = (kind = 'answer')),
        undoes INTEGER UNIQUE REFERENCES event CHECK ((undoes IS NOT NULL) = (kind = 'undo'))
    )""",
    "version": """(
        version INTEGER PRIMARY KEY CHECK (version > 0),
        made TEXT NOT NULL,
        event INTEGER NOT NULL,
        trained_on INTEGER NOT NULL,
        classes INTEGER NOT NULL,
        model TEXT NOT NULL,
        strategy TEXT NOT NULL,
        seconds REAL NOT NULL
    )""",
    "pick": """(
        version INTEGER NOT NULL,
        rank INTEGER NOT NULL,
        item TEXT NOT NULL REFERENCES item,
        why TEXT NOT NULL,
        numbers TEXT NOT NULL CHECK (json_valid(numbers)),
        guess INTEGER,
        confidence REAL,
        PRIMARY KEY (version, rank)
    )""",
    "held_guess": """(
        version INTEGER NOT NULL REFERENCES version,
        item TEXT NOT NULL REFERENCES item,
        guess INTEGER NOT NULL,
        confidence REAL NOT NULL,
        PRIMARY KEY (version, item)
    )""",
}

QUESTION_INDEX = "CREATE INDEX question_item ON question (item)"

# The answer of each annotator that stands: the last that was not undone.
ANSWER = """
CREATE VIEW answer AS
SELECT question.item, event.annotator, event.class, event.time, max(event.id) AS event
FROM event JOIN question ON question.id = event.question
WHERE event.kind = 'answer' AND event.id NOT IN (SELECT undoes FROM event WHERE kind = 'undo')
GROUP BY question.item, event.annotator
"""


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a project's file, made where there is none; refuses any other file."""
    db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    db.row_factory = sqlite3.Row
    try:
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            _check(db, path)
            _upgrade(db, path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        db.close()
        raise
    return db


def is_empty(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


def create(db: sqlite3.Connection) -> None:
    """The tables; to be called in a transaction."""
    for name, columns in TABLES.items():
        db.execute(f"CREATE TABLE {name} {columns} STRICT")
        _only_append(db, name)
    db.execute("CREATE INDEX event_question ON event (question)")
    db.execute(QUESTION_INDEX)
    db.execute(ANSWER)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def _only_append(db: sqlite3.Connection, table: str) -> None:
    for verb in ("UPDATE", "DELETE"):
        db.execute(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )


def _upgrade(db: sqlite3.Connection, path: Path) -> None:
    """Version 1 knew no answers from outside: its table of questions is made anew, row for row."""
    if db.execute("PRAGMA user_version").fetchone()[0] == VERSION:
        return
    with transaction(db, path):  # foreign keys are not looked at yet
        db.execute("DROP VIEW answer")
        db.execute(f"CREATE TABLE newer {TABLES['question']} STRICT")
        db.execute("INSERT INTO newer SELECT * FROM question")
        db.execute("DROP TABLE question")
        db.execute("ALTER TABLE newer RENAME TO question")
        _only_append(db, "question")
        db.execute(QUESTION_INDEX)
        db.execute(ANSWER)
        db.execute(f"PRAGMA user_version = {VERSION}")


def _check(db: sqlite3.Connection, path: Path) -> None:
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise StoreError(
            f"{path} is an SQLite file of another application, not a labelling project; it was left "
            f"as it is: name another folder"
        )
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if not 1 <= version <= VERSION:
        raise StoreError(
            f"{path} has version {version} of a project's tables and this askance reads up to "
            f"{VERSION}; use the askance that wrote it, or name another folder"
        )
    state = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if state != "ok":
        raise StoreError(
            f"{path} is damaged ({state}); it was left as it is: restore a copy, or name another folder"
        )
