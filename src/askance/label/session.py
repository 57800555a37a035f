"""A labelling session: a project that people answer in, and a model that is trained beside them.

Everything a person does goes through here, one act at a time: it is stored, then entered in the
annotations, then acknowledged. The scheduler's thread trains whenever a batch of answers has come.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import uuid4

from askance.errors import AskanceError, InputError
from askance.label import goal as goals
from askance.label import messages, planning
from askance.label.browse import ItemFilter, containing, matching
from askance.label.goal import Goal
from askance.label.identity import DataChanges
from askance.label.items import Items
from askance.label.keys import KEYS
from askance.label.media import PageImages
from askance.label.planning import NextQuestion, ProjectView, TrainingState
from askance.label.project import ItemSplit, OpenProject, match_items, open_project
from askance.label.records import (
    DESCRIPTION_LENGTH,
    MOST_CLASSES,
    Act,
    AskedQuestion,
    Class,
    ClassEdit,
    Event,
    EventGroup,
    Guess,
    ModelVersion,
    checked_name,
    now,
)
from askance.label.scheduler import TrainingScheduler
from askance.label.source import ItemSource, LabelingOptions
from askance.label.watch import DataWatcher
from askance.label.worker import Worker, open_worker


class RefusedError(AskanceError):
    """An act that cannot be done as things stand: a conflict, or something unknown."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class QuestionBatch(NamedTuple):
    """Questions for a person, and whether there are more."""

    questions: list[AskedQuestion]
    more: Literal["yes", "waiting", "finished"]


class ActResult(NamedTuple):
    """An act that is on the disk; a `duplicate` was there before, and may have been undone since."""

    event: Event
    item: str
    duplicate: bool
    undone: bool = False


class UndoResult(NamedTuple):
    """An undo that is on the disk, and the act it took back, which may be of several events."""

    event: Event
    undone: list[Event]
    duplicate: bool


class ItemsResult(NamedTuple):
    """What was said of several items at once, on the disk; some may have had that answer before."""

    events: list[Event]
    duplicate: bool


def _already(there: Class, name: str) -> str:
    if there.name.casefold() == name.casefold():
        return f"there is a class {there.name!r} already"
    return f"the class {there.name!r} was called {name!r} before; choose another name"


class _Act(NamedTuple):
    """One of the acts that are done at once."""

    kind: Act
    question: int
    choice: int | None = None
    undoes: int | None = None


class LabelingSession:
    """Open with `open_session`, and close."""

    def __init__(self, project: OpenProject, options: LabelingOptions) -> None:
        store = project.store
        self.store, self.options = store, options
        self.lock = threading.RLock()  # held while anything here is changed, or read as a whole
        self.images = PageImages()
        self._digests_at_start, self._digests = project.before, store.items()
        self._set_items(project.items, ItemSplit.of(project.items, options))
        self.goal = goals.load(self.folder)
        self.trouble: str | None = None  # why the data could not be read again
        self.annotations = store.annotations()
        self._revision = 1
        self._next_question = max(self.annotations.questions, default=0) + 1
        self._repeats: dict[str, None] = {}
        self._matched: tuple[tuple[ItemFilter, int], list[str]] | None = None
        self._searched: tuple[Items, str, frozenset[str]] | None = None
        self._offer_repeats()
        self.scheduler = TrainingScheduler(store, options, self.view, self.lock)
        self.watch = DataWatcher(self, project.digests)

    def view(self) -> ProjectView:
        """The project as it is now; hold the lock while it is used."""
        return ProjectView(
            self.items,
            self.split,
            self.annotations,
            self._repeats.keys(),
            self.broken.keys(),
            self.options.kept_for,
        )

    @property
    def training(self) -> TrainingState:
        """What the trainings so far have come to."""
        return self.scheduler.state

    @property
    def versions(self) -> tuple[ModelVersion, ...]:
        """The models so far, oldest first."""
        return self.training.versions

    @property
    def revision(self) -> int:
        """A number that rises with every change of what the page shows."""
        return self._revision + self.scheduler.revision

    @property
    def folder(self) -> Path:
        """The project's folder."""
        return self.store.path.parent

    # What there is to label

    def _set_items(self, items: Items, split: ItemSplit) -> None:
        self.items, self.split = items, split
        self.broken: dict[str, str] = {}  # items that cannot be shown, and why
        self._looked_at: set[str] = set()  # items of which that is known
        self._digests |= zip(items.ids, items.digests, strict=True)
        self.changes = DataChanges.between(
            self._digests_at_start, self._digests, items.ids, items.names
        )
        self.missing = [item for item in self._digests if item not in items.position]

    def replace_items(self, items: Items) -> None:
        """Go on with the data as it is now: new items join, others are missing."""
        items, new = match_items(self._digests, items, self.folder)
        split = ItemSplit.of(items, self.options)  # before the lock: it may take a second
        with self.lock:
            self.store.add(new)
            before = self.items
            self._set_items(items, split)
            self._offer_repeats()
            self.scheduler.items_changed(before)
            self.trouble = None
            self._revision += 1

    def report_trouble(self, why: str | None) -> None:
        """Go on with the data as it was, since it cannot be read now; None: it is as it was."""
        if why != self.trouble:
            with self.lock:
                self.trouble = why
                self._revision += 1

    def matching(self, wanted: ItemFilter) -> list[str]:
        """The items that match, in order; kept until something changes, for the next page of them."""
        contains = self._containing(wanted.search) if wanted.search else None
        with self.lock:
            key = wanted, self.revision
            if self._matched is None or self._matched[0] != key:
                likeness = self.scheduler.likeness
                found = matching(self.view(), self.training, wanted, likeness, contains)
                self._matched = key, found
            return self._matched[1]

    def _containing(self, search: str) -> frozenset[str]:
        """The items with this text; made while others answer, and kept for the next page."""
        items, kept = self.items, self._searched
        if kept is None or kept[0] is not items or kept[1] != search:
            kept = self._searched = items, search, containing(items, search)
        return kept[2]

    # What a person is given

    def questions(self, annotator: str, n: int) -> QuestionBatch:
        """Up to n questions for this person.

        Those they have open come first, so that a reload or a second tab sees the same. What cannot be
        shown is never asked: each item is looked at before, while the others go on.
        """
        while True:
            batch = self.next_questions(annotator, n)
            if isinstance(batch, QuestionBatch):
                return batch
            self.look_at(batch)

    def next_questions(self, annotator: str, n: int) -> QuestionBatch | list[str]:
        """The same at once; or the items that must be looked at before, by `look_at`."""
        name = checked_name(annotator, "annotator")
        with self.lock:
            open_now = self.open_for(name)[:n]
            new: dict[str, AskedQuestion] = {}  # by item
            more: Literal["yes", "waiting", "finished"] = "yes"
            view = self.view()
            while len(open_now) + len(new) < n and more == "yes":
                taken = {item: question.reason for item, question in new.items()}
                step = planning.next_question(view, self.training, self.options, name, taken)
                if isinstance(step, NextQuestion):
                    number = self._next_question + len(new)
                    new[step.item] = AskedQuestion(
                        id=number, annotator=name, asked=now(), **vars(step)
                    )
                else:
                    more = step
            unseen = [item for item in new if self._must_look_at(item)]
            unseen += [each.item for each in open_now if self._must_look_at(each.item)]
            if unseen:
                return unseen
            if new:
                self._hand_out(list(new.values()))
            if more == "finished" and not open_now and not new:
                skipped = self._skipped_by(name, once=True)
                if skipped:  # at the end they come back, once
                    self._take_back(skipped, name, uuid4().hex)
                    return self.next_questions(name, n)
            if more == "waiting" and not open_now and not new:
                self.scheduler.request_picks()
            return QuestionBatch([*open_now, *new.values()], more)

    def open_for(self, annotator: str) -> list[AskedQuestion]:
        """The questions somebody has before them; those about what cannot be shown wait."""
        annotations, view = self.annotations, self.view()
        asked = (annotations.questions[each] for each in annotations.open.get(annotator, ()))
        return [question for question in asked if view.can_be_shown(question.item)]

    def _must_look_at(self, item: str) -> bool:
        return self.items.kind == "image" and item not in self._looked_at

    def look_at(self, names: Sequence[str]) -> None:
        """Find out which of these items can be shown; the page's copy of each image is made."""
        items = self.items
        problems = {item: self.images.problem(items, item) for item in names}
        with self.lock:
            if items is not self.items:
                return
            self._looked_at.update(names)
            broken = {item: why for item, why in problems.items() if why is not None}
            if broken:
                self.broken.update(broken)
                self._revision += 1

    def guess(self, item: str) -> tuple[int | None, Guess | None]:
        """The newest model's number and its guess on an item."""
        return planning.model_guess(self.view(), self.training, item)

    def _hand_out(self, questions: Sequence[AskedQuestion]) -> None:
        self.store.add(questions)
        for question in questions:
            self.annotations.ask(question)
            self._offer_repeat(question.item)
        self._next_question += len(questions)
        self._revision += 1

    # What a person does

    def answer(self, question: int, choice: int, annotator: str, token: str) -> ActResult:
        """Keep an answer."""
        return self._act("answer", question, annotator, token, choice)

    def skip(self, question: int, annotator: str, token: str) -> ActResult:
        """Leave a question without an answer."""
        return self._act("skip", question, annotator, token, None)

    def _act(
        self, kind: Act, number: int, annotator: str, token: str, choice: int | None
    ) -> ActResult:
        name = checked_name(annotator, "annotator")
        with self.lock:
            question = self.annotations.questions.get(number)
            if question is None:
                raise RefusedError("not-found", f"there is no question {number}")
            if choice is not None:
                self._check_choice(choice)
            before = self.annotations.events.get(token)
            if before is not None:
                same = (before.kind, before.question, before.choice, before.annotator)
                if same != (kind, number, choice, name):
                    raise RefusedError("conflict", "this token was used for another act")
                undone = self.annotations.standing.get(number) is not before
                return ActResult(before, question.item, True, undone)
            if kind == "answer":
                self._check_shown(question.item)
            if question.annotator != name:
                raise RefusedError(
                    "conflict",
                    f"question {number} was asked of {question.annotator}, not of {name}",
                )
            stands = self.annotations.standing.get(number)
            if stands is not None:
                if (stands.kind, stands.choice) == (kind, choice):
                    return ActResult(stands, question.item, True)
                raise RefusedError(
                    "conflict", f"question {number} has been answered or skipped; undo that first"
                )
            event = Event(self.annotations.last_event + 1, kind, number, name, now(), token, choice)
            return ActResult(event, self._keep(event), False)

    def _check_choice(self, choice: int) -> None:
        if not 0 <= choice < len(self.annotations.classes):
            raise InputError(
                f"class must be one of 0 to {len(self.annotations.classes) - 1}, got {choice}"
            )
        edit = self.annotations.class_edits.get(choice)
        if edit is not None and edit.deleted:
            raise RefusedError("conflict", f"the class {edit.name!r} has been deleted")

    def _check_shown(self, item: str) -> None:
        if item in self.broken:
            why = self.broken[item]
            raise RefusedError(
                "conflict", f"this image cannot be shown, so it cannot be answered: {why}"
            )

    def undo(self, annotator: str, token: str) -> UndoResult:
        """Take back this person's latest act that stands."""
        name = checked_name(annotator, "annotator")
        with self.lock:
            events = self.annotations.events
            before = events.get(token)
            if before is not None:
                if (before.kind, before.annotator) != ("undo", name):
                    raise RefusedError("conflict", "this token was used for another act")
                took_back = {event.undoes for event in self._done_with(before)}
                undone = [event for event in events.values() if event.id in took_back]
                return UndoResult(before, undone, True)
            acts = self.annotations.acts[name]
            if not acts:
                raise RefusedError("conflict", "there is nothing to undo")
            last = acts[next(reversed(acts))]
            undone = [event for event in self._done_with(last) if event.id in acts]
            return UndoResult(self._take_back(undone, name, token), undone, False)

    def _done_with(self, event: Event) -> list[Event]:
        """The events that were done at once with this one, itself among them; the earliest first."""
        group = self.annotations.groups.get(event.id)
        if group is None:
            return [event]
        numbers = range(group.first, group.last + 1)
        return [each for each in self.annotations.events.values() if each.id in numbers]

    def _take_back(self, undone: Sequence[Event], name: str, token: str) -> Event:
        """Undo these acts at once; the first of them is asked again first."""
        acts = [_Act("undo", event.question, undoes=event.id) for event in reversed(undone)]
        return self._keep_all(acts, name, token)[0]

    def _keep_all(
        self,
        acts: Sequence[_Act],
        name: str,
        token: str,
        questions: Sequence[AskedQuestion] = (),
    ) -> list[Event]:
        """Keep acts that are done at once, and their questions, all of them or none."""
        first, moment = self.annotations.last_event + 1, now()
        events = [
            Event(
                first + place,
                act.kind,
                act.question,
                name,
                moment,
                uuid4().hex if place else token,
                act.choice,
                act.undoes,
            )
            for place, act in enumerate(acts)
        ]
        grouped = len(events) > 1 or events[0].kind == "answer"
        groups = [EventGroup(first, events[-1].id)] if grouped else []
        self.store.add([*questions, *events, *groups])
        for question in questions:
            self.annotations.ask(question)
        self._next_question += len(questions)
        for group in groups:
            self.annotations.group(group)
        for event in events:
            self._enter(event)
        return events

    def _keep(self, event: Event) -> str:
        """Store first: the annotations hold only what is on the disk."""
        self.store.add([event])
        return self._enter(event)

    def _enter(self, event: Event) -> str:
        item = self.annotations.apply(event)
        self._revision += 1
        self._offer_repeat(item)
        self.scheduler.label_may_have_changed(item)
        return item

    def answer_items(
        self, items: Sequence[str], choice: int, annotator: str, token: str
    ) -> ItemsResult:
        """Answer items that were not asked about, or change what this person said, as one act.

        An item that is open before this person is answered there. What they say of an item already is
        not said again.
        """
        name = checked_name(annotator, "annotator")
        with self.lock:
            self._check_choice(choice)
            before = self.annotations.events.get(token)
            if before is not None:
                done = self._done_with(before)
                if (before.kind, before.choice, before.annotator) != ("answer", choice, name):
                    raise RefusedError("conflict", "this token was used for another act")
                return ItemsResult(done, True)
            for item in items:
                if item not in self.items.position:
                    raise RefusedError("not-found", f"there is no item {item!r}")
                self._check_shown(item)
            standing = self.annotations.current
            new = [item for item in dict.fromkeys(items) if standing(item).get(name) != choice]
            if not new:
                return ItemsResult([], True)
            open_now = {question.item: question.id for question in self.open_for(name)}
            why = messages.BROWSED if len(new) == 1 else messages.TOGETHER.format(len(new))
            asked: dict[str, AskedQuestion] = {}
            for item in new:
                if item not in open_now:
                    number, (version, guess) = self._next_question + len(asked), self.guess(item)
                    asked[item] = AskedQuestion(
                        number, item, name, now(), "outside", version, why, guess=guess
                    )
            numbers = open_now | {item: question.id for item, question in asked.items()}
            acts = [_Act("answer", numbers[item], choice) for item in new]
            return ItemsResult(self._keep_all(acts, name, token, list(asked.values())), False)

    def ask_skipped_again(self, annotator: str, token: str) -> list[Event]:
        """Take back this person's skips of items that nobody answered, so that they are asked again."""
        name = checked_name(annotator, "annotator")
        with self.lock:
            before = self.annotations.events.get(token)
            if before is not None:
                if (before.kind, before.annotator) != ("undo", name):
                    raise RefusedError("conflict", "this token was used for another act")
                return self._done_with(before)
            skipped = self._skipped_by(name)
            if not skipped:
                raise RefusedError("conflict", "there is no skipped item to ask again")
            return self._done_with(self._take_back(skipped, name, token))

    def _skipped_by(self, annotator: str, once: bool = False) -> list[Event]:
        """This person's skips of items that can be shown and that nobody answered.

        Args:
            annotator: the person.
            once: only of questions that were skipped once.
        """
        annotations, view = self.annotations, self.view()
        return [
            event
            for event in annotations.acts.get(annotator, {}).values()
            if event.kind == "skip"
            and (item := annotations.questions[event.question].item) not in annotations.answers
            and view.can_be_shown(item)
            and not (once and annotations.times_skipped[event.question] > 1)
        ]

    def n_skipped_by(self, annotator: str) -> int:
        """How many items `ask_skipped_again` would ask again."""
        return len(self._skipped_by(annotator))

    def _offer_repeats(self) -> None:
        self._repeats.clear()
        for item in self.annotations.answers:
            self._offer_repeat(item)

    def _offer_repeat(self, item: str) -> None:
        wanted = item in self.split.repeated and item in self.items.position
        answered_once = item in self.annotations.answers and len(self.annotations.asked[item]) < 2
        if wanted and answered_once:
            self._repeats[item] = None
        else:
            self._repeats.pop(item, None)

    def add_class(self, text: str, token: str) -> tuple[Class, bool]:
        """A new class, and whether it was made before by the same token."""
        name = checked_name(text, "a class")
        with self.lock:
            classes = self.annotations.classes
            made = next((each for each in classes if each.token == token), None)
            if made is not None:
                if self.annotations.class_named(name) is not made:
                    raise RefusedError("conflict", "this token was used for another class")
                return made, True
            there = self.annotations.class_named(name)
            if there is not None:
                raise RefusedError("conflict", _already(there, name))
            if len(classes) >= MOST_CLASSES:
                raise RefusedError(
                    "conflict", f"there are {MOST_CLASSES} classes, which is the most"
                )
            new = Class(len(classes), name, token=token)
            self.store.add([new])
            self.annotations.add_class(new)
            self._revision += 1
            return new, False

    def edit_class(self, edit: ClassEdit) -> bool:
        """Call or show a class otherwise from now on, delete or restore it; True for a duplicate.

        The edit's number and time are replaced.
        """
        checked_name(edit.annotator, "annotator")
        name, description = checked_name(edit.name, "a class"), edit.description.strip()
        with self.lock:
            annotations = self.annotations
            if edit.token in annotations.class_edit_tokens:
                return True
            if not 0 <= edit.choice < len(annotations.classes):
                raise RefusedError("not-found", f"there is no class {edit.choice}")
            there = annotations.class_named(name)
            if there is not None and there.id != edit.choice:
                raise RefusedError("conflict", _already(there, name))
            self._check_edit(edit, description)
            made = replace(
                edit,
                id=annotations.last_class_edit + 1,
                name=name,
                description=description,
                edited=now(),
            )
            self.store.add([made])
            annotations.edit_class(made)
            self._revision += 1
            return False

    def _check_edit(self, edit: ClassEdit, description: str) -> None:
        annotations, key = self.annotations, edit.key
        if not (description.isprintable() and len(description) <= DESCRIPTION_LENGTH):
            raise InputError(
                f"a description must be a line of at most {DESCRIPTION_LENGTH} characters, got "
                f"{len(description)}"
            )
        if not math.isfinite(edit.place):
            raise InputError(f"a class's place must be a number, got {edit.place}")
        if edit.example is not None and edit.example not in self.items.position:
            raise RefusedError("not-found", f"there is no item {edit.example!r}")
        if key is not None and (len(key) != 1 or key not in KEYS):
            raise InputError(f"a class's key must be one of {' '.join(KEYS)}, got {key!r}")
        others = [each for each in annotations.offered() if each.id != edit.choice]
        for each in others if key is not None else ():
            other = annotations.class_edits.get(each.id)
            if other is not None and other.key == key:
                raise RefusedError("conflict", f"{key!r} is the key of {each.name!r}")
        if edit.deleted and len(others) < 2:
            raise RefusedError("conflict", "two classes must be left")
        stacks = (stack for by in annotations.answers.values() for stack in by.values())
        n = sum(any(event.choice == edit.choice for event in stack) for stack in stacks)
        if edit.deleted and n:
            raise RefusedError(
                "conflict",
                f"{n} items are or were answered as {annotations.classes[edit.choice].name!r}; answer "
                f"them otherwise and rename the class, since its answers are not deleted",
            )

    def set_goal(self, goal: Goal | None) -> None:
        """Keep a goal for the project, or none."""
        with self.lock:
            goals.save(self.folder, goal)
            self.goal = goal
            self._revision += 1

    def close(self) -> None:
        """Stop training and let the project go; what was acknowledged is kept."""
        self.watch.close()
        self.scheduler.close()
        with self.lock:
            self.store.close()


def open_session(
    project: str | Path,
    data: str | Path | ItemSource,
    classes: Sequence[str] = (),
    options: LabelingOptions | None = None,
    worker: Worker | None = None,
    *,
    add_classes: bool = False,
) -> LabelingSession:
    """A session of a project, its worker ready.

    Args:
        project: the folder of the project, made where there is none.
        data: what there is to label.
        classes: their names; only a new project needs them.
        options: how to ask and to train.
        worker: what trains; by the options when None.
        add_classes: whether classes that a project does not have are added rather than refused.
    """
    options = options or LabelingOptions()
    checked_name(options.annotator, "annotator")
    parts = open_project(project, data, classes, options, add_classes)
    try:
        session = LabelingSession(parts, parts.options)
    except BaseException:
        parts.store.close()
        raise
    try:
        session.scheduler.start(worker or open_worker(parts.items, parts.options))
        session.watch.start()
    except BaseException:
        session.close()
        raise
    return session
