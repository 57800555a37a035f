"""Answers from outside the page: what is sound is kept in one transaction, the rest is told.

What is sound is decided answer by answer and does not depend on their order:

- the same person saying the same of an item again counts once;
- a person who says two things of an item in one go is believed in neither;
- what a person said before stands, unless `replace`: then it is taken back and the new answer kept;
- a skip gives way to an answer, an answer to a skip only with `replace`;
- another person's other answer is a disagreement, which a project knows how to treat.
"""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from askance.errors import InputError
from askance.label import messages
from askance.label.project import existing
from askance.label.records import MOST_CLASSES, Act, AskedQuestion, Class, Event, checked_name, now
from askance.label.state import replayed
from askance.label.store import ProjectStore

TOKEN_LENGTH = 200
_NAMED = 12  # classes that are told of an unknown one
_SHOWN = 80  # characters of what is told of a bad identifier or label


@dataclass(frozen=True)
class ExternalAnswer:
    """What somebody said of an item.

    Args:
        item: its identifier in the project.
        label: the name of a class; None for a skip.
        annotator: who says so.
        time: when, in ISO 8601 (UTC where it names no offset); the moment it is kept when None.
        where: where it was found, for the report.
        token: names this one act for ever: what was kept under it is not kept again, even after it was
            taken back on the page.
    """

    item: str
    label: str | None
    annotator: str
    time: str | None = None
    where: str = ""
    token: str | None = None


class Refusal(NamedTuple):
    """An answer that was not kept, and why."""

    where: str
    item: str
    why: str


@dataclass
class Ingested:
    """What came of each answer, in the order of the answers.

    Args:
        applied: kept now.
        unchanged: what the project says already, or an earlier answer of this lot.
        refused: not kept.
        classes: names of the classes that were added.
    """

    applied: list[ExternalAnswer] = field(default_factory=list)
    unchanged: list[ExternalAnswer] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)


def ingest(
    project: str | os.PathLike[str] | ProjectStore,
    answers: Iterable[ExternalAnswer],
    *,
    replace: bool = False,
    add_classes: bool = False,
    dry_run: bool = False,
) -> Ingested:
    """Keep what is sound of these answers, all of it or (killed, a full disk) nothing.

    Args:
        project: the folder of a project that exists and that nobody serves, or its open store.
        answers: in any order.
        replace: whether an answer may take the place of what the same person said before.
        add_classes: whether an unknown class is added rather than refused.
        dry_run: only say what would come of it.
    """
    if not isinstance(project, ProjectStore):
        with existing(project) as store:
            return ingest(store, answers, replace=replace, add_classes=add_classes, dry_run=dry_run)
    lot = list(answers)
    clerk = _Clerk(project, replace, add_classes)
    clerk.take(lot)
    if not dry_run and clerk.events:
        project.add_outside(clerk.classes, clerk.questions, clerk.events)
    done = Ingested(classes=[each.name for each in clerk.classes])
    for place, answer in enumerate(lot):
        if place in clerk.refused:
            refusal = Refusal(answer.where, shown(answer.item), clerk.refused[place])
            done.refused.append(refusal)
        else:
            (done.applied if place in clerk.applied else done.unchanged).append(answer)
    return done


@dataclass(frozen=True)
class _Said:
    """An answer seen to be well formed; two that are equal in `act` say the same."""

    place: int
    answer: ExternalAnswer
    who: tuple[str, str]  # (item, annotator)
    label: str | None  # as a key of classes
    name: str | None
    time: str

    @property
    def act(self) -> tuple[tuple[str, str], str | None]:
        return self.who, self.label


class _Clerk:
    """Sorts answers, and makes the rows for those that are to be kept."""

    def __init__(self, store: ProjectStore, replace: bool, add_classes: bool) -> None:
        self.annotations = replayed(store.classes(), store.questions(), store.events())
        self.known = store.items()
        self.replace, self.add_classes = replace, add_classes
        self.names = {each.name.casefold(): each for each in self.annotations.classes}
        self.refused: dict[int, str] = {}  # place → why
        self.applied: set[int] = set()
        self.classes: list[Class] = []
        self.questions: list[AskedQuestion] = []
        self.events: list[Event] = []
        self.moment = now()
        self._lot = f"outside-{uuid.uuid4().hex}"
        self._next_question = max(self.annotations.questions, default=0) + 1
        asked = self.annotations.questions
        self._open = {
            (asked[number].item, who): number
            for who, numbers in self.annotations.open.items()
            for number in numbers
        }
        self._skips: dict[tuple[str, str], list[Event]] = defaultdict(list)
        for event in self.annotations.standing.values():
            if event.kind == "skip":
                self._skips[asked[event.question].item, event.annotator].append(event)

    def take(self, answers: Sequence[ExternalAnswer]) -> None:
        """Sort them; what is neither refused nor applied changes nothing."""
        sound: list[_Said] = []
        for place, answer in enumerate(answers):
            try:
                said = self._checked(place, answer)
                if not self._kept_before(said):
                    sound.append(said)
            except InputError as error:
                self.refused[place] = str(error)
        for said in self._of_one_mind(self._of_one_token(sound)):
            try:
                self._apply(said)
            except InputError as error:
                self.refused[said.place] = str(error)

    # Is it sound in itself?

    def _checked(self, place: int, answer: ExternalAnswer) -> _Said:
        if not isinstance(answer.item, str) or not answer.item:
            raise InputError(f"the item must be a text that is not empty, got {shown(answer.item)}")
        if answer.item not in self.known:
            near = answer.item.strip()
            hint = f"; {near!r} is one: remove the spaces" if near in self.known else ""
            raise InputError(f"the project has no such item{hint}")
        if not isinstance(answer.annotator, str):
            raise InputError(f"annotator must be a text, got {shown(answer.annotator)}")
        annotator = checked_name(answer.annotator, "annotator")
        name = self._class(answer.label)
        time = self.moment if answer.time is None else moment(answer.time)
        if answer.token is not None:
            _check_token(answer.token)
        label = None if name is None else name.casefold()
        return _Said(place, answer, (answer.item, annotator), label, name, time)

    def _class(self, label: object) -> str | None:
        if label is None:
            return None
        if not isinstance(label, str):
            raise InputError(f"the label must be the name of a class, got {shown(label)}")
        name = checked_name(label, "the label")
        if name.casefold() not in self.names and not self.add_classes:
            there = [each.name for each in self.annotations.classes]
            more = ", …" * (len(there) > _NAMED)
            raise InputError(
                f"the project has no class {name!r}; it has {', '.join(there[:_NAMED])}{more}; "
                f"--add-classes adds it"
            )
        return name

    def _kept_before(self, said: _Said) -> bool:
        """Whether its token names an act that was kept; another act of that token is refused."""
        before = (
            None if said.answer.token is None else self.annotations.events.get(said.answer.token)
        )
        if before is None:
            return False
        item = self.annotations.questions[before.question].item
        label = (
            None
            if before.choice is None
            else self.annotations.classes[before.choice].name.casefold()
        )
        if before.kind == "undo" or ((item, before.annotator), label) != said.act:
            raise InputError("its token was used for another act")
        return True

    # Does it agree with the others?

    def _of_one_token(self, lot: list[_Said]) -> list[_Said]:
        acts = defaultdict(set)
        for said in lot:
            acts[said.answer.token].add(said.act)
        kept = []
        for said in lot:
            if said.answer.token is not None and len(acts[said.answer.token]) > 1:
                self.refused[said.place] = "its token is used for another act too"
            else:
                kept.append(said)
        return kept

    def _of_one_mind(self, lot: list[_Said]) -> list[_Said]:
        """The first of those that say the same; none where a person contradicts themselves."""
        groups: dict[tuple[str, str], list[_Said]] = defaultdict(list)
        for said in lot:
            groups[said.who].append(said)
        kept = []
        for group in groups.values():
            first, *rest = group
            if all(said.label == first.label for said in rest):
                kept.append(first)
                continue
            for said in group:
                other = next(one for one in group if one.label != said.label)
                place = f", at {other.answer.where}" if other.answer.where else ""
                self.refused[said.place] = (
                    f"{said.who[1]} says {_told(said.name)} here and {_told(other.name)} too{place}; "
                    f"neither was kept"
                )
        return kept

    # What does it change?

    def _apply(self, said: _Said) -> None:
        item, annotator = said.who
        stack = self.annotations.answers.get(item, {}).get(annotator, [])
        skips = self._skips.get(said.who, [])
        if stack:
            choice = stack[-1].choice
            assert choice is not None
            current = self.annotations.classes[choice].name
            if said.label == current.casefold():
                return
            if not self.replace:
                raise InputError(
                    f"{annotator} said {current!r} before and now {_told(said.name)}; --replace takes "
                    f"back what was said before"
                )
        elif skips and said.label is None:
            return
        choice = self._number(said.name)
        # A skip takes back every answer of theirs, an answer the one that it stands in for.
        taken = (stack[-1:] if said.label is not None else stack) or skips[-1:]
        for event in taken:
            self._add("undo", event.question, said, undoes=event.id)
        asked = [event.question for event in taken] or [self._question(said)]
        for place, number in enumerate(asked):
            token = said.answer.token if place == 0 else None
            self._add("skip" if choice is None else "answer", number, said, choice, token=token)
        self.applied.add(said.place)

    def _number(self, name: str | None) -> int | None:
        if name is None:
            return None
        known = self.names.get(name.casefold())
        if known is None:
            if len(self.names) >= MOST_CLASSES:
                raise InputError(f"there are {MOST_CLASSES} classes, which is the most")
            known = Class(len(self.names), name)
            self.names[name.casefold()] = known
            self.classes.append(known)
        return known.id

    def _question(self, said: _Said) -> int:
        """What this person was asked about the item and left open, else a question of its own."""
        number = self._open.get(said.who)
        if number is None:
            number = self._next_question + len(self.questions)
            item, annotator = said.who
            question = AskedQuestion(
                number, item, annotator, said.time, "outside", None, messages.OUTSIDE
            )
            self.questions.append(question)
        return number

    def _add(
        self,
        kind: Act,
        question: int,
        said: _Said,
        choice: int | None = None,
        undoes: int | None = None,
        token: str | None = None,
    ) -> None:
        number = self.annotations.last_event + len(self.events) + 1
        time = self.moment if kind == "undo" else said.time
        token = token or f"{self._lot}-{number}"
        self.events.append(Event(number, kind, question, said.who[1], time, token, choice, undoes))


def moment(time: str) -> str:
    """A time as the store writes them."""
    try:
        if not isinstance(time, str):
            raise ValueError
        read = datetime.fromisoformat(time.strip())
        read = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"time must be like 2024-05-01T12:30:00+00:00, got {shown(time)}"
        ) from None
    return read.isoformat(timespec="milliseconds")


def _check_token(token: object) -> None:
    sound = isinstance(token, str) and 1 <= len(token) <= TOKEN_LENGTH and token.isprintable()
    if not sound:
        raise InputError(
            f"a token must have 1 to {TOKEN_LENGTH} printable characters, got {shown(token)}"
        )


def _told(name: str | None) -> str:
    return "a skip" if name is None else repr(name)


def shown(value: object) -> str:
    """What came, in short and in characters that can be shown anywhere."""
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return short if short.isprintable() else short.encode("unicode_escape").decode()
