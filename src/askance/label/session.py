"""The desk between the people who answer and the model that asks.

Everything a person does goes through here, one act at a time: it is stored, then entered in the book,
then acknowledged. A thread beside it has the model trained whenever a batch of answers has come.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from askance.errors import AskanceError, InputError
from askance.label import messages
from askance.label.identity import DataChanges
from askance.label.items import Items
from askance.label.project import OpenProject, Shares, matched, opened
from askance.label.records import (
    MOST_CLASSES,
    Act,
    AskedQuestion,
    Class,
    Event,
    ModelVersion,
    RankedPick,
    Reason,
    checked_name,
    now,
)
from askance.label.scheduler import TrainingScheduler
from askance.label.source import ItemSource, LabelingOptions
from askance.label.state import AnnotationState, replayed
from askance.label.watch import DataWatcher
from askance.label.worker import Worker, open_worker


class RefusedError(AskanceError):
    """An act that cannot be done as things stand: a conflict, or something unknown."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class LabelingSession:
    """Open with `open_desk`, and close."""

    def __init__(self, project: OpenProject, options: LabelingOptions) -> None:
        store = project.store
        self.store, self.options = store, options
        self._before, self._known = project.before, store.items()
        self._set_items(project.items, Shares.of(project.items, options))
        self.trouble: str | None = None  # why the data could not be read again
        self.lock = threading.RLock()
        self.annotations: AnnotationState = replayed(
            store.classes(), store.questions(), store.events()
        )
        self.class_tokens = store.class_tokens()
        self.revision = 1
        self._next_question = max(self.annotations.questions, default=0) + 1
        self._repeats: dict[str, None] = {}
        self._offer_repeats()
        self.scheduler = TrainingScheduler(self, store.versions(), store.picks())
        self.watch = DataWatcher(self, project.digests)

    # What there is to label

    def _set_items(self, items: Items, shares: Shares) -> None:
        self.items, self.shares = items, shares
        self._known |= zip(items.ids, items.digests, strict=True)
        self.changes = DataChanges.between(self._before, self._known, items.ids, items.names)
        self.set_aside = [item for item in self._known if item not in items.position]

    def renew(self, items: Items) -> None:
        """Go on with the data as it is now: new items join, missing ones are set aside."""
        items, new = matched(self._known, items, self.folder)
        shares = Shares.of(items, self.options)  # before the lock: it may take a second
        with self.lock:
            if new:
                self.store.add_items(new.items())
            before = self.items
            self._set_items(items, shares)
            self._offer_repeats()
            self.scheduler.renewed(before)
            self.trouble = None
            self.revision += 1

    def lose_sight(self, why: str | None) -> None:
        """Go on with the data as it was, since it cannot be read now; None: it is as it was."""
        if why != self.trouble:
            with self.lock:
                self.trouble = why
                self.revision += 1

    # What a person is given

    def questions(self, annotator: str, n: int) -> tuple[list[AskedQuestion], str]:
        """Up to n questions for this person, and whether there are more: yes, waiting or finished.

        Those they have open come first, so that a reload or a second tab sees the same.
        """
        name = checked_name(annotator, "annotator")
        with self.lock:
            open_now = self.open_for(name)[:n]
            new: list[AskedQuestion] = []
            more = "yes"
            drawn: set[str] = set()
            while len(open_now) + len(new) < n and more == "yes":
                question = self._next(name, len(new), drawn)
                if isinstance(question, str):
                    more = question
                else:
                    new.append(question)
                    drawn.add(question.item)
            if new:
                self.store.add_questions(new)
                for question in new:
                    self.annotations.ask(question)
                    self._offer_repeat(question.item)
                self._next_question += len(new)
                self.revision += 1
            if more == "waiting" and not open_now and not new:
                self.scheduler.request_picks()
            return open_now + new, more

    def open_for(self, annotator: str) -> list[AskedQuestion]:
        """The questions somebody has before them; those about items set aside wait."""
        asked = (
            self.annotations.questions[each] for each in self.annotations.open.get(annotator, ())
        )
        return [question for question in asked if question.item in self.items.position]

    def _next(self, annotator: str, ahead: int, drawn: set[str]) -> AskedQuestion | str:
        """The next question, or "waiting" or "finished"; nothing is stored yet."""
        item = self.annotations.next_conflict_for(annotator, self.items.position)
        if item is not None and item not in drawn:
            return self._question(ahead, item, annotator, "disagreement", messages.DISAGREEMENT)
        for item in self._repeats:
            if annotator not in self.annotations.asked[item] and item not in drawn:
                return self._question(ahead, item, annotator, "repeat", messages.REPEAT)
        asked = self.annotations.n_asked + ahead
        share = self.options.held_out
        held = next((i for i in self.scheduler.held_left if i not in drawn), None)
        if held is not None and int((asked + 1) * share) > int(asked * share):
            return self._held(ahead, held, annotator)
        pick = self.scheduler.next_pick(drawn)
        if pick is not None:
            return self._picked(ahead, pick, annotator)
        if self.scheduler.left(drawn):
            return "waiting"
        return "finished" if held is None else self._held(ahead, held, annotator)

    def _held(self, ahead: int, item: str, annotator: str) -> AskedQuestion:
        return self._question(ahead, item, annotator, "held-out", messages.HELD_OUT)

    def _picked(self, ahead: int, pick: RankedPick, annotator: str) -> AskedQuestion:
        return AskedQuestion(
            self._next_question + ahead,
            pick.item,
            annotator,
            now(),
            "rule" if pick.version else "first",
            pick.version or None,
            pick.why,
            pick.numbers,
            pick.guess,
        )

    def _question(
        self, ahead: int, item: str, annotator: str, reason: Reason, why: str
    ) -> AskedQuestion:
        version, guess = self.scheduler.guess(item)
        return AskedQuestion(
            self._next_question + ahead, item, annotator, now(), reason, version, why, {}, guess
        )

    # What a person does

    def answer(
        self, question: int, choice: int, annotator: str, token: str
    ) -> tuple[Event, str, bool]:
        """Keep an answer: the event, its item, and whether it was kept before."""
        return self._act("answer", question, annotator, token, choice)

    def skip(self, question: int, annotator: str, token: str) -> tuple[Event, str, bool]:
        return self._act("skip", question, annotator, token, None)

    def _act(
        self, kind: Act, number: int, annotator: str, token: str, choice: int | None
    ) -> tuple[Event, str, bool]:
        name = checked_name(annotator, "annotator")
        with self.lock:
            question = self.annotations.questions.get(number)
            if question is None:
                raise RefusedError("not-found", f"there is no question {number}")
            if choice is not None and not 0 <= choice < len(self.annotations.classes):
                raise InputError(
                    f"class must be one of 0 to {len(self.annotations.classes) - 1}, got {choice}"
                )
            before = self.annotations.events.get(token)
            if before is not None:
                same = (before.kind, before.question, before.choice, before.annotator)
                if same != (kind, number, choice, name):
                    raise RefusedError("conflict", "this token was used for another act")
                return before, question.item, True
            if question.annotator != name:
                raise RefusedError(
                    "conflict",
                    f"question {number} was asked of {question.annotator}, not of {name}",
                )
            stands = self.annotations.standing.get(number)
            if stands is not None:
                if (stands.kind, stands.choice) == (kind, choice):
                    return stands, question.item, True
                raise RefusedError(
                    "conflict", f"question {number} has been answered or skipped; undo that first"
                )
            event = Event(self.annotations.last_event + 1, kind, number, name, now(), token, choice)
            return event, self._keep(event), False

    def undo(self, annotator: str, token: str) -> tuple[Event, Event, bool]:
        """Take back this person's latest act that stands: the undo, what it undid, kept before."""
        name = checked_name(annotator, "annotator")
        with self.lock:
            before = self.annotations.events.get(token)
            if before is not None:
                if (before.kind, before.annotator) != ("undo", name):
                    raise RefusedError("conflict", "this token was used for another act")
                undone = next(e for e in self.annotations.events.values() if e.id == before.undoes)
                return before, undone, True
            acts = self.annotations.acts[name]
            if not acts:
                raise RefusedError("conflict", "there is nothing to undo")
            last = acts[next(reversed(acts))]
            number = self.annotations.last_event + 1
            event = Event(number, "undo", last.question, name, now(), token, None, last.id)
            self._keep(event)
            return event, last, False

    def _keep(self, event: Event) -> str:
        """Store first; the book only learns of what is on the disk."""
        self.store.add_event(event)
        item = self.annotations.apply(event)
        self.revision += 1
        self._offer_repeat(item)
        self.scheduler.changed(item)
        return item

    def _offer_repeats(self) -> None:
        self._repeats.clear()
        for item in self.annotations.answers:
            self._offer_repeat(item)

    def _offer_repeat(self, item: str) -> None:
        wanted = item in self.shares.repeated and item in self.items.position
        if wanted and item in self.annotations.answers and len(self.annotations.asked[item]) < 2:
            self._repeats[item] = None
        else:
            self._repeats.pop(item, None)

    def add_class(self, text: str, token: str) -> tuple[Class, bool]:
        """A new class, and whether it was made before by the same token."""
        name = checked_name(text, "a class")
        with self.lock:
            if token in self.class_tokens:
                made = self.annotations.classes[self.class_tokens[token]]
                if made.name != name:
                    raise RefusedError("conflict", "this token was used for another class")
                return made, True
            if name.casefold() in {each.name.casefold() for each in self.annotations.classes}:
                raise RefusedError("conflict", f"there is a class {name!r} already")
            if len(self.annotations.classes) >= MOST_CLASSES:
                raise RefusedError(
                    "conflict", f"there are {MOST_CLASSES} classes, which is the most"
                )
            new = Class(len(self.annotations.classes), name)
            self.store.add_classes([new], token)
            self.annotations.classes.append(new)
            self.class_tokens[token] = new.id
            self.revision += 1
            return new, False

    @property
    def folder(self) -> Path:
        return self.store.path.parent

    @property
    def versions(self) -> list[ModelVersion]:
        return self.scheduler.versions

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
) -> LabelingSession:
    """A project's desk, with its worker ready; classes are needed for a new project alone."""
    options = options or LabelingOptions()
    checked_name(options.annotator, "annotator")
    found = opened(project, data, classes, options)
    try:
        session = LabelingSession(found, options)
    except BaseException:
        found.store.close()
        raise
    session.scheduler.start(worker or open_worker(found.items, options))
    session.watch.start()
    return session
