"""What is kept: the project, its items and classes, questions, acts, models and what those ask.

Every record is a row that was written once and is never changed. A record's fields are the columns
of its table, in this order: where SQL does not follow from name and type, it is beside the type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

from askance.errors import InputError
from askance.label.source import Kind

Reason = Literal["first", "rule", "held-out", "disagreement", "repeat", "outside"]
Act = Literal["answer", "skip", "undo"]
Numbers = dict[str, float | int | None]
GUESS_SHOWN: tuple[Reason, ...] = ("first", "rule")  # elsewhere a guess would spoil a measurement
COUNTED: tuple[Reason, ...] = ("first", "rule", "held-out")  # a share of these is held out

NAME_LENGTH = 60
MOST_CLASSES = 1_000
DESCRIPTION_LENGTH = 300


def now() -> str:
    """The moment, in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, kw_only=True)
class Project:
    """What a project began with, and when."""

    id: Annotated[int, "id INTEGER PRIMARY KEY CHECK (id = 1)"] = 1
    created: str = field(default_factory=now)
    data: str
    kind: Kind
    seed: int
    held_out: float


@dataclass(frozen=True)
class ChosenEncoder:
    """The pretrained encoder that a project uses from then on, or "none"; the last row counts."""

    id: Annotated[int, "id INTEGER PRIMARY KEY"]
    chosen: str
    encoder: str


@dataclass(frozen=True)
class StoredItem:
    """An item, when it was first seen, and the digest of its content where there is one."""

    id: Annotated[str, "id TEXT PRIMARY KEY"]
    seen: str
    digest: str | None


@dataclass(frozen=True)
class Class:
    """A possible answer. Ids count from 0 in the order of making and are the network's outputs.

    The token names the request that made it, so that a retry is kept once.
    """

    id: Annotated[int, "id INTEGER PRIMARY KEY CHECK (id >= 0)"]
    name: Annotated[str, "name TEXT NOT NULL UNIQUE COLLATE NOCASE"]
    made: str = field(default_factory=now)
    token: Annotated[str | None, "token TEXT UNIQUE"] = None


@dataclass(frozen=True)
class ClassEdit:
    """How a class is called and shown from then on; the last row of each class counts.

    A class keeps its id whatever it is called. One that is deleted is not offered, and can be restored.
    """

    id: Annotated[int, "id INTEGER PRIMARY KEY"]
    choice: Annotated[int, "class INTEGER NOT NULL REFERENCES class"]
    name: str
    place: float
    deleted: int
    annotator: str
    token: Annotated[str, "token TEXT NOT NULL UNIQUE"]
    description: str = ""
    example: Annotated[str | None, "example TEXT REFERENCES item"] = None
    key: Annotated[str | None, "key TEXT"] = None
    edited: str = field(default_factory=now)


@dataclass(frozen=True)
class Guess:
    """What a model would answer, and the probability it gives that."""

    choice: int
    confidence: float


@dataclass(frozen=True)
class AskedQuestion:
    """Who was asked about what, when and why; the guess was made before any answer to it."""

    id: Annotated[int, "id INTEGER PRIMARY KEY"]
    item: Annotated[str, "item TEXT NOT NULL REFERENCES item"]
    annotator: str
    asked: str
    reason: Reason
    version: int | None
    why: str
    numbers: Numbers = field(default_factory=dict)
    guess: Annotated[
        Guess | None,
        "guess INTEGER REFERENCES class, "
        "confidence REAL CHECK ((confidence IS NULL) = (guess IS NULL))",
    ] = None


@dataclass(frozen=True)
class Event:
    """What a person did with a question: answered it, skipped it, or took an earlier act back."""

    id: Annotated[int, "id INTEGER PRIMARY KEY"]
    kind: Act
    question: Annotated[int, "question INTEGER NOT NULL REFERENCES question"]
    annotator: str
    time: str
    token: Annotated[str, "token TEXT NOT NULL UNIQUE"]
    choice: Annotated[
        int | None, "class INTEGER REFERENCES class CHECK ((class IS NOT NULL) = (kind = 'answer'))"
    ] = None
    undoes: Annotated[
        int | None,
        "undoes INTEGER UNIQUE REFERENCES event CHECK ((undoes IS NOT NULL) = (kind = 'undo'))",
    ] = None


@dataclass(frozen=True)
class EventGroup:
    """Events that were done at once, and are undone at once: those from `first` to `last`.

    Answers given while looking through the items are a group, be it of one.
    """

    first: Annotated[int, "first INTEGER PRIMARY KEY REFERENCES event"]
    last: Annotated[int, "last INTEGER NOT NULL REFERENCES event CHECK (last >= first)"]


@dataclass(frozen=True)
class ModelVersion:
    """A trained model: of all answers that stood after event `event`, held-out ones left out."""

    version: Annotated[int, "version INTEGER PRIMARY KEY CHECK (version > 0)"]
    made: str
    event: int
    trained_on: int
    classes: int
    model: str
    strategy: str
    seconds: float


@dataclass(frozen=True)
class RankedPick:
    """An item a model (version 0: chance) wants answered, and why; the best has rank 0."""

    version: int
    rank: int
    item: Annotated[str, "item TEXT NOT NULL REFERENCES item"]
    why: str
    numbers: Numbers = field(default_factory=dict)
    guess: Annotated[Guess | None, "guess INTEGER, confidence REAL"] = None


@dataclass(frozen=True)
class HeldOutGuess:
    """What one version says of a held-out item; it was never trained on any of them."""

    version: Annotated[int, "version INTEGER NOT NULL REFERENCES version"]
    item: Annotated[str, "item TEXT NOT NULL REFERENCES item"]
    guess: Annotated[Guess, "guess INTEGER NOT NULL, confidence REAL NOT NULL"]


def checked_name(text: str, what: str) -> str:
    """The name without the spaces around it; one that cannot be shown or stored is refused."""
    name = text.strip()
    if not 1 <= len(name) <= NAME_LENGTH:
        raise InputError(f"{what} must have 1 to {NAME_LENGTH} characters, got {len(name)}")
    # Surrogates cannot be written as UTF-8; control and format characters cannot be seen.
    if not name.isprintable():
        raise InputError(f"{what} must be printable, got {name!r}; use letters, digits and signs")
    return name


def seconds_of(time: str) -> float:
    """A stored moment as seconds since 1970."""
    return datetime.fromisoformat(time).timestamp()
