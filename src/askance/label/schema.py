"""The SQLite file of a project: append-only tables, one for each record, and safe commits.

Journal: WAL, so that reading never waits for writing, with `synchronous = FULL`: the log is flushed to
the disk at every commit, so an answer that was acknowledged outlives a SIGKILL and a power cut alike.
Triggers refuse every UPDATE and DELETE: what was said once stays said.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from askance._io import sqlite
from askance._io.sqlite import Connection, Kind
from askance.label import records
from askance.label.records import Guess

R = TypeVar("R")

TABLES: dict[type[Any], str] = {
    records.Project: "project",
    records.ChosenEncoder: "encoder",
    records.StoredItem: "item",
    records.Class: "class",
    records.ClassEdit: "class_edit",
    records.AskedQuestion: "question",
    records.Event: "event",
    records.EventGroup: "event_group",
    records.ModelVersion: "version",
    records.RankedPick: "pick",
    records.HeldOutGuess: "held_guess",
}
_KEYS = {
    records.RankedPick: ["PRIMARY KEY (version, rank)"],
    records.HeldOutGuess: ["PRIMARY KEY (version, item)"],
}
_TYPES = {int: "INTEGER", str: "TEXT", float: "REAL"}

# The answer of each annotator that stands: the last that was not undone.
ANSWER = """\
CREATE VIEW answer AS
SELECT question.item, event.annotator, event.class, event.time, max(event.id) AS event
FROM event JOIN question ON question.id = event.question
WHERE event.kind = 'answer' AND event.id NOT IN (SELECT undoes FROM event WHERE kind = 'undo')
GROUP BY question.item, event.annotator"""


def _refusing(table: str, verb: str) -> str:
    """A trigger that refuses to change what was said."""
    return (
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )


PROJECT = Kind(
    "a labelling project",
    application=0x41534B4C,  # "ASKL"
    version=5,
    older=(2, 3, 4),
    code=frozenset(
        [ANSWER, *(_refusing(t, v) for t in TABLES.values() for v in ("UPDATE", "DELETE"))]
    ),
)


def connect(path: Path) -> Connection:
    """A connection to a project's file, made where there is none; refuses any other file."""
    db = sqlite.connect(path, one_thread=False)
    return PROJECT.writable(db, path, journal="WAL", synchronous="FULL")


def create(db: sqlite3.Connection) -> None:
    """The tables; to be called in a transaction."""
    for record in TABLES:
        _create_table(db, record)
    db.execute("CREATE INDEX event_question ON event (question)")
    db.execute("CREATE INDEX question_item ON question (item)")
    db.execute(ANSWER)
    PROJECT.mark(db)


def upgrade(db: sqlite3.Connection) -> None:
    """Bring an older file to the newest version; to be called in a transaction.

    Version 2 knew no encoders, version 3 no acts about several items, version 4 no edits of classes.
    """
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version < 3:
        _create_table(db, records.ChosenEncoder)
    if version < 4:
        _create_table(db, records.EventGroup)
    if version < 5:
        _create_table(db, records.ClassEdit)
        PROJECT.mark(db)


def _create_table(db: sqlite3.Connection, record: type[Any]) -> None:
    name, hints = TABLES[record], get_type_hints(record, include_extras=True)
    columns = [_column(field, hint) for field, hint in hints.items()]
    db.execute(f"CREATE TABLE {name} ({', '.join(columns + _KEYS.get(record, []))}) STRICT")
    for verb in ("UPDATE", "DELETE"):
        db.execute(_refusing(name, verb))


def _column(name: str, hint: Any) -> str:
    """The SQL of a field: what stands beside its type, else what name and type say."""
    allowed = get_args(hint)
    if get_origin(hint) is Annotated:
        return str(allowed[1])
    if get_origin(hint) is Literal:
        return f"{name} TEXT NOT NULL CHECK ({name} IN {allowed})"
    if get_origin(hint) is dict:
        return f"{name} TEXT NOT NULL CHECK (json_valid({name}))"
    if type(None) in allowed:
        return f"{name} {_TYPES[allowed[0]]}"
    return f"{name} {_TYPES[hint]} NOT NULL"


def row_of(record: object) -> dict[str, Any]:
    """A record's values by column. SQL says `class` where Python, with that keyword, says `choice`."""
    row: dict[str, Any] = {}
    for name, value in vars(record).items():
        if name == "guess":
            row["guess"] = None if value is None else value.choice
            row["confidence"] = None if value is None else value.confidence
        elif name == "numbers":
            row[name] = json.dumps(value)
        else:
            row["class" if name == "choice" else name] = value
    return row


def record_of(kind: type[R], row: sqlite3.Row) -> R:
    """The record that became this row."""
    values = dict(row)
    if "confidence" in values:
        confidence = values.pop("confidence")
        if values["guess"] is not None:
            values["guess"] = Guess(values["guess"], confidence)
    if "numbers" in values:
        values["numbers"] = json.loads(values["numbers"])
    if "class" in values:
        values["choice"] = values.pop("class")
    return kind(**values)
