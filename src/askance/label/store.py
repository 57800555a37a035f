"""A project's file: what was asked and what was said. Rows are added, never changed.

One process writes at a time. Whatever a method wrote is on the disk when it returns.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from askance._io.lock import Lock
from askance._io.sqlite import explained, is_empty, transaction
from askance.label import schema
from askance.label.records import (
    AskedQuestion,
    Class,
    Event,
    Guess,
    HeldOutGuess,
    ModelVersion,
    RankedPick,
    now,
)

FILE = "answers.sqlite"
LOCK = "label.lock"
STOP = "if that is `askance label`, stop it with Ctrl-C (nothing is lost) and start it again afterwards"


class ProjectStore:
    """Open with `ProjectStore.open`; close, or use in a `with`."""

    def __init__(self, path: Path, db: sqlite3.Connection, lock: Lock) -> None:
        self.path, self._db, self._lock = path, db, lock

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> ProjectStore:
        """The project's file in `folder`, made where there is none, for this process alone."""
        path = Path(folder) / FILE
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = Lock(path.with_name(LOCK), STOP)
            try:
                store = cls(path, schema.connect(path), lock)
                if is_empty(store._db):
                    with transaction(store._db, store.path):
                        schema.create(store._db)
            except BaseException:
                lock.release()
                raise
        return store

    def close(self) -> None:
        self._db.close()
        self._lock.release()

    def __enter__(self) -> ProjectStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    def project(self) -> dict[str, Any] | None:
        """data, kind, seed, held_out and created; None for a new project."""
        rows = self._query("SELECT * FROM project")
        return dict(rows[0]) if rows else None

    def items(self) -> dict[str, str | None]:
        """Every item ever seen, with the digest of its content where there is one."""
        return {row["id"]: row["digest"] for row in self._query("SELECT * FROM item")}

    def classes(self) -> list[Class]:
        return [Class(row["id"], row["name"]) for row in self._query("SELECT * FROM class")]

    def class_tokens(self) -> dict[str, int]:
        rows = self._query("SELECT id, token FROM class WHERE token IS NOT NULL")
        return {row["token"]: row["id"] for row in rows}

    def questions(self) -> Iterator[AskedQuestion]:
        for row in self._query("SELECT * FROM question ORDER BY id"):
            values = {key: row[key] for key in ("id", "item", "annotator", "asked", "reason")}
            yield AskedQuestion(
                **values,
                version=row["version"],
                why=row["why"],
                numbers=json.loads(row["numbers"]),
                guess=_guess(row),
            )

    def events(self) -> Iterator[Event]:
        for row in self._query("SELECT * FROM event ORDER BY id"):
            values = dict(row)
            yield Event(choice=values.pop("class"), **values)

    def versions(self) -> list[ModelVersion]:
        return [
            ModelVersion(**dict(row))
            for row in self._query("SELECT * FROM version ORDER BY version")
        ]

    def picks(self) -> list[RankedPick]:
        """The latest model's, best first."""
        sql = "SELECT * FROM pick WHERE version = (SELECT max(version) FROM pick) ORDER BY rank"
        return [
            RankedPick(
                row["version"],
                row["rank"],
                row["item"],
                row["why"],
                json.loads(row["numbers"]),
                _guess(row),
            )
            for row in self._query(sql)
        ]

    def held_guesses(self) -> Iterator[tuple[int, str, int]]:
        """(version, item, class) of every model on every held-out item."""
        for row in self._query("SELECT version, item, guess FROM held_guess"):
            yield row["version"], row["item"], row["guess"]

    def answers(self) -> list[dict[str, Any]]:
        """The answers that stand, by item and annotator: what the file itself says."""
        sql = "SELECT * FROM answer ORDER BY item, annotator"
        return [dict(row) for row in self._query(sql)]

    # Writing

    def start(self, project: Mapping[str, Any]) -> None:
        with transaction(self._db, self.path):
            self._insert("project", {"id": 1, "created": now(), **project})

    def add_items(self, items: Iterable[tuple[str, str | None]]) -> None:
        moment = now()
        with transaction(self._db, self.path):
            self._db.executemany(
                "INSERT INTO item (id, seen, digest) VALUES (?, ?, ?)",
                ((item, moment, digest) for item, digest in items),
            )

    def add_classes(self, classes: Sequence[Class], token: str | None = None) -> None:
        with transaction(self._db, self.path):
            for each in classes:
                self._insert(
                    "class", {"id": each.id, "name": each.name, "made": now(), "token": token}
                )

    def add_questions(self, questions: Sequence[AskedQuestion]) -> None:
        with transaction(self._db, self.path):
            self._insert_all("question", map(_question_row, questions))

    def add_event(self, event: Event) -> None:
        with transaction(self._db, self.path):
            self._insert("event", _event_row(event))

    def add_outside(
        self, classes: Sequence[Class], questions: Sequence[AskedQuestion], events: Sequence[Event]
    ) -> None:
        """What came from outside with all that belongs to it, or none of it."""
        moment = now()
        with transaction(self._db, self.path):
            for each in classes:
                self._insert("class", {"id": each.id, "name": each.name, "made": moment})
            self._insert_all("question", map(_question_row, questions))
            self._insert_all("event", map(_event_row, events))

    def add_version(
        self, version: ModelVersion, picks: Sequence[RankedPick], held: Sequence[HeldOutGuess]
    ) -> None:
        """A model with what it asks and what it says of the held-out items, or none of it."""
        with transaction(self._db, self.path):
            self._insert("version", vars(version))
            for each in held:
                row = {"version": version.version, "item": each.item}
                self._insert("held_guess", {**row, **_columns(each.guess)})
            for pick in picks:
                row = {key: getattr(pick, key) for key in ("version", "rank", "item", "why")}
                numbers = json.dumps(pick.numbers)
                self._insert("pick", {**row, "numbers": numbers, **_columns(pick.guess)})

    def _query(self, sql: str) -> list[sqlite3.Row]:
        with explained(self.path):
            return self._db.execute(sql).fetchall()

    def _insert(self, table: str, row: Mapping[str, Any]) -> None:
        self._insert_all(table, iter([row]))

    def _insert_all(self, table: str, rows: Iterator[Mapping[str, Any]]) -> None:
        """Rows that have the same columns."""
        first = next(rows, None)
        if first is None:
            return
        names, places = ", ".join(first), ", ".join("?" * len(first))
        self._db.executemany(
            f"INSERT INTO {table} ({names}) VALUES ({places})",
            (tuple(row.values()) for row in chain([first], rows)),
        )


def _question_row(question: AskedQuestion) -> dict[str, Any]:
    row = {
        key: getattr(question, key)
        for key in ("id", "item", "annotator", "asked", "reason", "version", "why")
    }
    return {**row, "numbers": json.dumps(question.numbers), **_columns(question.guess)}


def _event_row(event: Event) -> dict[str, Any]:
    row = dict(vars(event))
    return {"class": row.pop("choice"), **row}


def _guess(row: sqlite3.Row) -> Guess | None:
    return None if row["guess"] is None else Guess(row["guess"], row["confidence"])


def _columns(guess: Guess | None) -> dict[str, Any]:
    if guess is None:
        return {"guess": None, "confidence": None}
    return {"guess": guess.choice, "confidence": guess.confidence}
