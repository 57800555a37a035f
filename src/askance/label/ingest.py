"""Answers from outside the page: what is sound is kept in one transaction, the rest is reported.

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
from askance.label.project import existing_project
from askance.label.records import MOST_CLASSES, Act, AskedQuestion, Class, Event, checked_name, now
from askance.label.store import ProjectStore

TOKEN_LENGTH = 200
_CLASSES_LISTED = 12  # classes that are named where one is unknown
_MOST_SHOWN = 80  # characters that are shown of a bad identifier or label


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
class IngestResult:
    """What came of each answer, in the order of the answers.

    Args:
        applied: kept now.
        unchanged: what the project says already, or an earlier answer of the same call.
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
) -> IngestResult:
    """Keep what is sound of these answers, all of it or (killed, a full disk) nothing.

    Args:
        project: the folder of a project that exists and that nobody serves, or its open store.
        answers: in any order.
        replace: whether an answer may take the place of what the same person said before.
        add_classes: whether an unknown class is added rather than refused.
        dry_run: only say what would come of it.
    """
    if not isinstance(project, ProjectStore):
        with existing_project(project) as store:
            return ingest(store, answers, replace=replace, add_classes=add_classes, dry_run=dry_run)
    answers = list(answers)
    sorter = _AnswerSorter(project, replace, add_classes)
    sorter.take(answers)
    if not dry_run and sorter.events:
        project.add([*sorter.classes, *sorter.questions, *sorter.events])
    done = IngestResult(classes=[each.name for each in sorter.classes])
    for place, answer in enumerate(answers):
        if place in sorter.refused:
            refusal = Refusal(answer.where, excerpt(answer.item), sorter.refused[place])
            done.refused.append(refusal)
        else:
            (done.applied if place in sorter.applied else done.unchanged).append(answer)
    return done


@dataclass(frozen=True)
class _CheckedAnswer:
    """An answer that is well formed; two that are equal in `act` say the same."""

    place: int
    answer: ExternalAnswer
    who: tuple[str, str]  # (item, annotator)
    label: str | None  # as a key of classes
    name: str | None
    time: str

    @property
    def act(self) -> tuple[tuple[str, str], str | None]:
        return self.who, self.label


class _AnswerSorter:
    """Sorts answers, and makes the rows for those that are to be kept."""

    def __init__(self, store: ProjectStore, replace: bool, add_classes: bool) -> None:
        self.annotations = store.annotations()
        self.items = store.items()
        self.replace, self.add_classes = replace, add_classes
        former, classes = self.annotations.former_names, self.annotations.classes
        self.names = {name: classes[number] for name, number in former.items()}
        self.names |= {each.name.casefold(): each for each in classes}
        self.refused: dict[int, str] = {}  # place → why
        self.applied: set[int] = set()
        self.classes: list[Class] = []
        self.questions: list[AskedQuestion] = []
        self.events: list[Event] = []
        self.moment = now()
        self._tokens = f"outside-{uuid.uuid4().hex}"
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
        """Sort them. What is neither refused nor applied changes nothing."""
        sound: list[_CheckedAnswer] = []
        for place, answer in enumerate(answers):
            try:
                checked = self._checked(place, answer)
                if not self._is_stored(checked):
                    sound.append(checked)
            except InputError as error:
                self.refused[place] = str(error)
        for checked in self._without_contradictions(self._without_reused_tokens(sound)):
            try:
                self._apply(checked)
            except InputError as error:
                self.refused[checked.place] = str(error)

    # Is it sound in itself?

    def _checked(self, place: int, answer: ExternalAnswer) -> _CheckedAnswer:
        if not isinstance(answer.item, str) or not answer.item:
            raise InputError(
                f"the item must be a text that is not empty, got {excerpt(answer.item)}"
            )
        if answer.item not in self.items:
            near = answer.item.strip()
            hint = f"; {near!r} is one: remove the spaces" if near in self.items else ""
            raise InputError(f"the project has no such item{hint}")
        if not isinstance(answer.annotator, str):
            raise InputError(f"annotator must be a text, got {excerpt(answer.annotator)}")
        annotator = checked_name(answer.annotator, "annotator")
        name = self._class(answer.label)
        time = self.moment if answer.time is None else moment(answer.time)
        if answer.token is not None:
            _check_token(answer.token)
        label = None if name is None else name.casefold()
        return _CheckedAnswer(place, answer, (answer.item, annotator), label, name, time)

    def _class(self, label: object) -> str | None:
        if label is None:
            return None
        if not isinstance(label, str):
            raise InputError(f"the label must be the name of a class, got {excerpt(label)}")
        name = checked_name(label, "the label")
        if name.casefold() not in self.names and not self.add_classes:
            there = [each.name for each in self.annotations.classes]
            listed = ", ".join(there[:_CLASSES_LISTED]) + ", …" * (len(there) > _CLASSES_LISTED)
            raise InputError(
                f"the project has no class {name!r}; it has {listed}; --add-classes adds it"
            )
        return name

    def _is_stored(self, checked: _CheckedAnswer) -> bool:
        """Whether its token names an act that was kept; another act of that token is refused."""
        before = self.annotations.events.get(checked.answer.token or "")
        if before is None:
            return False
        item = self.annotations.questions[before.question].item
        classes = self.annotations.classes
        label = None if before.choice is None else classes[before.choice].name.casefold()
        if before.kind == "undo" or ((item, before.annotator), label) != checked.act:
            raise InputError("its token was used for another act")
        return True

    # Does it agree with the others?

    def _without_reused_tokens(self, answers: list[_CheckedAnswer]) -> list[_CheckedAnswer]:
        acts = defaultdict(set)
        for checked in answers:
            acts[checked.answer.token].add(checked.act)
        kept = []
        for checked in answers:
            if checked.answer.token is not None and len(acts[checked.answer.token]) > 1:
                self.refused[checked.place] = "its token is used for another act too"
            else:
                kept.append(checked)
        return kept

    def _without_contradictions(self, answers: list[_CheckedAnswer]) -> list[_CheckedAnswer]:
        """The first of those that say the same; none where a person contradicts themselves."""
        groups: dict[tuple[str, str], list[_CheckedAnswer]] = defaultdict(list)
        for checked in answers:
            groups[checked.who].append(checked)
        kept = []
        for group in groups.values():
            first, *rest = group
            if all(checked.label == first.label for checked in rest):
                kept.append(first)
                continue
            for checked in group:
                other = next(one for one in group if one.label != checked.label)
                place = f", at {other.answer.where}" if other.answer.where else ""
                self.refused[checked.place] = (
                    f"{checked.who[1]} says {_quoted(checked.name)} here and {_quoted(other.name)} "
                    f"too{place}; neither was kept"
                )
        return kept

    # What does it change?

    def _apply(self, checked: _CheckedAnswer) -> None:
        item, annotator = checked.who
        stack = self.annotations.answers.get(item, {}).get(annotator, [])
        skips = self._skips.get(checked.who, [])
        if stack:
            choice = stack[-1].choice
            assert choice is not None
            current = self.annotations.classes[choice].name
            if checked.label == current.casefold():
                return
            if not self.replace:
                raise InputError(
                    f"{annotator} said {current!r} before and now {_quoted(checked.name)}; "
                    f"--replace takes back what was said before"
                )
        elif skips and checked.label is None:
            return
        choice = self._number(checked.name)
        # A skip takes back every answer of theirs, an answer the one that it stands in for.
        taken = (stack[-1:] if checked.label is not None else stack) or skips[-1:]
        for event in taken:
            self._add("undo", event.question, checked, undoes=event.id)
        asked = [event.question for event in taken] or [self._question(checked)]
        for place, number in enumerate(asked):
            token = checked.answer.token if place == 0 else None
            self._add("skip" if choice is None else "answer", number, checked, choice, token=token)
        self.applied.add(checked.place)

    def _number(self, name: str | None) -> int | None:
        if name is None:
            return None
        made = self.names.get(name.casefold())
        if made is None:
            number = len(self.annotations.classes) + len(self.classes)
            if number >= MOST_CLASSES:
                raise InputError(f"there are {MOST_CLASSES} classes, which is the most")
            made = Class(number, name)
            self.names[name.casefold()] = made
            self.classes.append(made)
        return made.id

    def _question(self, checked: _CheckedAnswer) -> int:
        """What this person was asked about the item and left open, else a question of its own."""
        number = self._open.get(checked.who)
        if number is None:
            number = self._next_question + len(self.questions)
            item, annotator = checked.who
            why = messages.OUTSIDE
            self.questions.append(
                AskedQuestion(number, item, annotator, checked.time, "outside", None, why)
            )
        return number

    def _add(
        self,
        kind: Act,
        question: int,
        checked: _CheckedAnswer,
        choice: int | None = None,
        undoes: int | None = None,
        token: str | None = None,
    ) -> None:
        number = self.annotations.last_event + len(self.events) + 1
        time = self.moment if kind == "undo" else checked.time
        token = token or f"{self._tokens}-{number}"
        self.events.append(
            Event(number, kind, question, checked.who[1], time, token, choice, undoes)
        )


def moment(time: str) -> str:
    """A time as the store writes them."""
    try:
        if not isinstance(time, str):
            raise ValueError
        read = datetime.fromisoformat(time.strip())
        read = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"time must be like 2024-05-01T12:30:00+00:00, got {excerpt(time)}"
        ) from None
    return read.isoformat(timespec="milliseconds")


def _check_token(token: object) -> None:
    sound = isinstance(token, str) and 1 <= len(token) <= TOKEN_LENGTH and token.isprintable()
    if not sound:
        raise InputError(
            f"a token must have 1 to {TOKEN_LENGTH} printable characters, got {excerpt(token)}"
        )


def _quoted(name: str | None) -> str:
    return "a skip" if name is None else repr(name)


def excerpt(value: object) -> str:
    """What came, in short and in characters that can be shown anywhere."""
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    return short if short.isprintable() else short.encode("unicode_escape").decode()
