"""A project's file: what was asked and what was said. Rows are added, never changed.

One process writes at a time. Whatever a method wrote is on the disk when it returns.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from askance._io.atomic import atomic_write
from askance._io.lock import Lock
from askance._io.sqlite import Connection, check_linked, explained, is_empty, transaction
from askance.errors import StoreError
from askance.label import schema
from askance.label.records import (
    AskedQuestion,
    ChosenEncoder,
    Class,
    ClassEdit,
    Event,
    EventGroup,
    HeldOutGuess,
    ModelVersion,
    Project,
    RankedPick,
    StoredItem,
)
from askance.label.state import AnnotationState, replayed

R = TypeVar("R")

FILE = "answers.sqlite"
LOCK = "label.lock"
STOP = "if that is `askance label`, stop it with Ctrl-C (nothing is lost) and start it again afterwards"


class ProjectStore:
    """Open with `ProjectStore.open`; close, or use in a `with`."""

    def __init__(self, path: Path, db: Connection, lock: Lock) -> None:
        self.path, self._db, self._lock = path, db, lock

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> ProjectStore:
        """The project's file in `folder`, made where there is none, for this process alone."""
        path = Path(folder) / FILE
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = Lock(path.with_name(LOCK), STOP)
            try:
                _make_or_check(path)
                store = cls(path, schema.connect(path), lock)
                with transaction(store._db, store.path):
                    make = schema.create if is_empty(store._db) else schema.upgrade
                    make(store._db)
            except BaseException:
                lock.release()
                raise
        return store

    def close(self) -> None:
        """Close the file and let another process open it."""
        self._db.close()
        self._lock.release()

    def __enter__(self) -> ProjectStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    def project(self) -> Project | None:
        """What the project began with; None for a new one."""
        return next(self._records(Project), None)

    def encoders(self) -> list[ChosenEncoder]:
        """The encoders that were chosen, oldest first; none of a project from before there were any."""
        return list(self._records(ChosenEncoder, "ORDER BY id"))

    def items(self) -> dict[str, str | None]:
        """Every item ever seen, with the digest of its content where there is one."""
        return {item.id: item.digest for item in self._records(StoredItem)}

    def classes(self) -> list[Class]:
        """All classes as they were made, in the order of their ids."""
        return list(self._records(Class))

    def class_edits(self) -> Iterator[ClassEdit]:
        """What became of the classes, in order."""
        return self._records(ClassEdit, "ORDER BY id")

    def questions(self) -> Iterator[AskedQuestion]:
        """All questions, in the order of asking."""
        return self._records(AskedQuestion, "ORDER BY id")

    def events(self) -> Iterator[Event]:
        """All acts, in the order in which they came."""
        return self._records(Event, "ORDER BY id")

    def groups(self) -> Iterator[EventGroup]:
        """Which acts were done at once."""
        return self._records(EventGroup)

    def annotations(self) -> AnnotationState:
        """What the classes, questions and events come to."""
        records = self.classes(), self.questions(), self.events(), self.groups()
        return replayed(*records, self.class_edits())

    def versions(self) -> list[ModelVersion]:
        """All models, oldest first."""
        return list(self._records(ModelVersion, "ORDER BY version"))

    def picks(self) -> list[RankedPick]:
        """The latest model's, best first."""
        newest = "WHERE version = (SELECT max(version) FROM pick) ORDER BY rank"
        return list(self._records(RankedPick, newest))

    def held_out_guesses(self) -> Iterator[HeldOutGuess]:
        """What every model says of every held-out item."""
        return self._records(HeldOutGuess)

    def answers(self) -> list[dict[str, Any]]:
        """The answers that stand, by item and annotator: what the file itself says."""
        return [dict(row) for row in self._query("SELECT * FROM answer ORDER BY item, annotator")]

    # Writing

    @property
    def trouble(self) -> str | None:
        """Why nothing can be written now: its files were deleted or replaced under this process."""
        try:
            check_linked(self._db)
        except (StoreError, OSError) as error:
            return str(error)
        return None

    def add(self, records: Iterable[object]) -> None:
        """Keep these records in this order, all of them or none."""
        with transaction(self._db, self.path):
            for kind, group in groupby(records, type):
                rows = [schema.row_of(each) for each in group]
                names, places = ", ".join(rows[0]), ", ".join("?" * len(rows[0]))
                self._db.executemany(
                    f"INSERT INTO {schema.TABLES[kind]} ({names}) VALUES ({places})",
                    [tuple(row.values()) for row in rows],
                )

    def _records(self, kind: type[R], rest: str = "") -> Iterator[R]:
        rows = self._query(f"SELECT * FROM {schema.TABLES[kind]} {rest}")
        return (schema.record_of(kind, row) for row in rows)

    def _query(self, sql: str) -> list[sqlite3.Row]:
        with explained(self.path):
            return self._db.execute(sql).fetchall()


def _make_or_check(path: Path) -> None:
    """Make a new project's file, whole or not at all; refuse what is left of one that was lost.

    No project ever has an empty file, nor a log without a file.
    """
    log = path.with_name(f"{path.name}-wal")
    if path.exists():
        if path.stat().st_size == 0:
            raise StoreError(
                f"{path} is empty, so the answers in it are lost; put a copy back, or delete it to "
                f"begin a new project"
            )
    elif log.exists() and log.stat().st_size > 0:
        raise StoreError(
            f"{path} is gone, but answers are left in {log.name}; put a copy back, or delete that "
            f"file too to begin a new project"
        )
    else:
        atomic_write(path, _make)


def _make(path: Path) -> None:
    with closing(schema.connect(path)) as db, transaction(db, path):
        schema.create(db)
