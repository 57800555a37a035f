"""The SQLite file of a project: append-only tables, WAL, and a commit that is on the disk.

Journal: WAL, so that reading never waits for writing, with `synchronous = FULL`: the log is flushed to
the disk at every commit, so an answer that was acknowledged outlives a SIGKILL and a power cut alike.
Triggers refuse every UPDATE and DELETE: what was said once stays said.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from askance._io import sqlite
from askance._io.sqlite import Kind

PROJECT = Kind("a labelling project", application=0x41534B4C, version=2)  # "ASKL"

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
    db = sqlite.connect(path, one_thread=False)
    return PROJECT.writable(db, path, journal="WAL", synchronous="FULL")


def create(db: sqlite3.Connection) -> None:
    """The tables; to be called in a transaction."""
    for name, columns in TABLES.items():
        db.execute(f"CREATE TABLE {name} {columns} STRICT")
        for verb in ("UPDATE", "DELETE"):
            db.execute(
                f"CREATE TRIGGER {name}_no_{verb.lower()} BEFORE {verb} ON {name} "
                f"BEGIN SELECT RAISE(ABORT, '{name} is append-only'); END"
            )
    db.execute("CREATE INDEX event_question ON event (question)")
    db.execute("CREATE INDEX question_item ON question (item)")
    db.execute(ANSWER)
    PROJECT.mark(db)
