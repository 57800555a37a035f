"""What is kept: classes, questions, what people did with them, and the models that asked.

Every record is a row that was written once and is never changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from askance.errors import InputError

Reason = Literal["first", "rule", "held-out", "disagreement", "repeat", "outside"]
Act = Literal["answer", "skip", "undo"]
GUESS_SHOWN: tuple[Reason, ...] = ("first", "rule")  # elsewhere a guess would spoil a measurement

NAME_LENGTH = 60
KEYS = "1234567890"
MOST_CLASSES = 1_000


@dataclass(frozen=True)
class Class:
    """A possible answer. Ids count from 0 in the order of making and are the network's outputs."""

    id: int
    name: str

    @property
    def key(self) -> str | None:
        """The number key that answers it."""
        return KEYS[self.id] if self.id < len(KEYS) else None


@dataclass(frozen=True)
class Guess:
    """What a model would answer, and the probability it gives that."""

    choice: int
    confidence: float


@dataclass(frozen=True)
class RankedPick:
    """An item a model (version 0: chance) wants answered, and why; the best has rank 0."""

    version: int
    rank: int
    item: str
    why: str
    numbers: dict[str, float | int | None] = field(default_factory=dict)
    guess: Guess | None = None


@dataclass(frozen=True)
class AskedQuestion:
    """Who was asked about what, when and why; the guess was made before any answer to it."""

    id: int
    item: str
    annotator: str
    asked: str
    reason: Reason
    version: int | None
    why: str
    numbers: dict[str, float | int | None] = field(default_factory=dict)
    guess: Guess | None = None


@dataclass(frozen=True)
class Event:
    """What a person did with a question: answered it, skipped it, or took an earlier act back."""

    id: int
    kind: Act
    question: int
    annotator: str
    time: str
    token: str
    choice: int | None = None
    undoes: int | None = None


@dataclass(frozen=True)
class ModelVersion:
    """A trained model: of all answers that stood after event `event`, held-out ones left out."""

    version: int
    made: str
    event: int
    trained_on: int
    classes: int
    model: str
    strategy: str
    seconds: float


@dataclass(frozen=True)
class HeldOutGuess:
    """What one version says of a held-out item; it was never trained on any of them."""

    item: str
    guess: Guess


def checked_name(text: str, what: str) -> str:
    """The name without the spaces around it; one that cannot be shown or stored is refused."""
    name = text.strip()
    if not 1 <= len(name) <= NAME_LENGTH:
        raise InputError(f"{what} must have 1 to {NAME_LENGTH} characters, got {len(name)}")
    # Surrogates cannot be written as UTF-8; control and format characters cannot be seen.
    if not name.isprintable():
        raise InputError(f"{what} must be printable, got {name!r}; use letters, digits and signs")
    return name


def now() -> str:
    """The moment, in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def seconds_of(time: str) -> float:
    """A stored moment as seconds since 1970."""
    return datetime.fromisoformat(time).timestamp()
