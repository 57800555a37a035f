"""What comes next: which question a person gets, and whether to train. Only functions of records.

Training is due when the labels of `batch` items have changed since the last model (given, undone,
changed or come to a tie), or when somebody waits and nothing is queued. Fewer changed labels are
trained on when somebody asks for it, and, once there is a model, after a pause. Picks come as one batch
and `ahead` more; a newer model's picks replace those of an older one. With one person who does not
pause, nothing held out and `ahead` 0 this is Algorithm 1. With more ahead it is so too where a person
is slower than the training and is asked one question at a time, for rules whose first n of m picks are
their n picks: all but those whose shortlist or clusters depend on m, as `grad-spread`'s and
`typiclust`'s do.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from askance.label import messages
from askance.label.guesses import HeldOutGuesses, ModelGuesses
from askance.label.items import Items
from askance.label.learner import TrainingOutcome, TrainingTask
from askance.label.project import ItemSplit
from askance.label.records import (
    COUNTED,
    Guess,
    ModelVersion,
    RankedPick,
    Reason,
    now,
    seconds_of,
)
from askance.label.source import LabelingOptions
from askance.label.state import AnnotationState
from askance.seeding import Draws

Ending = Literal["waiting", "finished"]
Step = Literal["prepare", "cover", "train"]


@dataclass(frozen=True, eq=False)
class ProjectView:
    """The data, and what people said of it. The parts are live: use them while the lock is held.

    Args:
        items: what there is to label.
        split: which items are held out, and which are asked twice.
        annotations: questions, answers and labels.
        repeats: items with an answer that a second person is to be asked about.
        broken: items that cannot be shown.
        kept_for: seconds an open question is kept for a person who does nothing.
        newcomers: whether questions are kept for those who have never done anything too.
    """

    items: Items
    split: ItemSplit
    annotations: AnnotationState
    repeats: Collection[str] = ()
    broken: Collection[str] = ()
    kept_for: float = math.inf
    newcomers: bool = True

    @cached_property
    def kept(self) -> set[str]:
        """Items that wait for the answer of somebody who is there."""
        moment = seconds_of(now())
        return self.annotations.kept(moment, self.kept_for, newcomers=self.newcomers)

    @cached_property
    def without_newcomers(self) -> ProjectView:
        """The same, as if nothing were kept for those who have never done anything."""
        return replace(self, newcomers=False)

    def is_done(self, item: str) -> bool:
        """Whether somebody has answered or skipped an item."""
        return item in self.annotations.answers or item in self.annotations.skips

    def is_free(self, item: str, annotator: str | None = None) -> bool:
        """Whether an item can be asked about anew: nobody was asked, or they have let it lie.

        Args:
            item: its id.
            annotator: who would be asked; nobody is asked twice in this way.
        """
        asked = self.annotations.asked.get(item)
        return not asked or not (annotator in asked or self.is_done(item) or item in self.kept)

    def not_free(self) -> set[str]:
        """Items that no model need ask for; those of newcomers only as long as there are others."""
        items = {*self.broken, *(i for i in self.annotations.asked if not self.is_free(i))}
        if not self.newcomers or any(
            self.items.ids[row] not in items for row in self.split.trained
        ):
            return items
        return self.without_newcomers.not_free()

    def can_be_shown(self, item: str) -> bool:
        """Whether a person can look at this item: it is in the data, and readable."""
        return item in self.items.position and item not in self.broken

    def trainable(self, item: str) -> bool:
        """Whether a label of this item is trained on."""
        return item not in self.split.held and item in self.items.position


@dataclass(frozen=True, eq=False)
class TrainingState:
    """What the trainings so far have come to. It is replaced as a whole, never changed.

    Args:
        versions: the models, oldest first.
        picks: what the newest model, or chance, wants answered; best first.
        guesses: what the newest model says of each item; None before there is one.
        held_out_guesses: what every model says of the held-out items.
        trained_labels: the label of each item the newest model was trained on.
        unreadable: items whose files could not be read at the last training.
        covered: whether the picks are a first batch that covers the items.
        running: whether a model is being trained now.
        preparing: (items done, items) while a pretrained encoder makes their features; else None.
        error: why the last training failed.
    """

    versions: tuple[ModelVersion, ...] = ()
    picks: tuple[RankedPick, ...] = ()
    guesses: ModelGuesses | None = None
    held_out_guesses: HeldOutGuesses = field(default_factory=HeldOutGuesses)
    trained_labels: dict[str, int] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()
    covered: bool = False
    running: bool = False
    preparing: tuple[int, int] | None = None
    error: str | None = None


@dataclass(frozen=True)
class NextQuestion:
    """An item to ask about, and why; it becomes an `AskedQuestion` when it is handed out."""

    item: str
    reason: Reason
    version: int | None
    why: str
    numbers: dict[str, float | int | None] = field(default_factory=dict)
    guess: Guess | None = None


# Which question is next?


def next_question(
    view: ProjectView,
    training: TrainingState,
    options: LabelingOptions,
    annotator: str,
    taken: Mapping[str, Reason] = MappingProxyType({}),
) -> NextQuestion | Ending:
    """The next question for this person, or why there is none now.

    Args:
        view: the project.
        training: the models and their picks.
        options: the share of held-out questions.
        annotator: who asks for a question.
        taken: items of questions that this person gets in the same request, and why each is asked.
    """
    step = _next_question(view, training, options, annotator, taken)
    if isinstance(step, str) and view.annotations.acts.get(annotator):
        # Better two are asked than that something is kept for a name which may be nobody's.
        step = _next_question(view.without_newcomers, training, options, annotator, taken)
    return step


def _next_question(
    view: ProjectView,
    training: TrainingState,
    options: LabelingOptions,
    annotator: str,
    taken: Mapping[str, Reason],
) -> NextQuestion | Ending:
    def about(item: str, reason: Reason, why: str) -> NextQuestion:
        version, guess = model_guess(view, training, item)
        return NextQuestion(item, reason, version, why, {}, guess)

    annotations = view.annotations
    conflict = annotations.next_conflict_for(annotator, view.can_be_shown)
    if conflict is not None and conflict not in taken:
        return about(conflict, "disagreement", messages.DISAGREEMENT)
    for item in view.repeats:
        free = annotator not in annotations.asked[item] and item not in taken
        if free and view.can_be_shown(item):
            return about(item, "repeat", messages.REPEAT)
    n_asked = annotations.n_asked + sum(reason in COUNTED for reason in taken.values())
    share = options.held_out
    left = held_out_left(view, training, annotator)
    held = next((item for item in left if item not in taken), None)
    if held is not None and int((n_asked + 1) * share) > int(n_asked * share):
        return about(held, "held-out", messages.HELD_OUT)
    pick = next((p for p in open_picks(view, training, annotator) if p.item not in taken), None)
    if pick is not None:
        reason: Reason = "rule" if pick.version else "first"
        return NextQuestion(
            pick.item, reason, pick.version or None, pick.why, pick.numbers, pick.guess
        )
    if _pool_left(view, training, annotator, taken):
        return "waiting"
    return "finished" if held is None else about(held, "held-out", messages.HELD_OUT)


def model_guess(
    view: ProjectView, training: TrainingState, item: str
) -> tuple[int | None, Guess | None]:
    """The newest model's number and its guess on an item."""
    if training.guesses is None or item not in view.items.position:
        return None, None
    return training.guesses.version, training.guesses.guess(item)


def held_out_left(
    view: ProjectView, training: TrainingState, annotator: str | None = None
) -> Iterator[str]:
    """Held-out items that are free, in their random order."""
    return (
        item
        for item in view.split.held_out
        if view.is_free(item, annotator)
        and item not in training.unreadable
        and item not in view.broken
    )


def open_picks(
    view: ProjectView, training: TrainingState, annotator: str | None = None
) -> Iterator[RankedPick]:
    """Picks that can be shown and are free (see `ProjectView.is_free`), best first."""
    return (
        pick
        for pick in training.picks
        if view.is_free(pick.item, annotator)
        and pick.item not in training.unreadable
        and view.can_be_shown(pick.item)
    )


def _pool_left(
    view: ProjectView, training: TrainingState, annotator: str, taken: Collection[str]
) -> bool:
    """Whether there is an item to train with that this person can be asked about."""
    ids = view.items.ids
    candidates = (ids[row] for row in view.split.trained)
    return any(
        view.is_free(item, annotator)
        and item not in taken
        and item not in training.unreadable
        and item not in view.broken
        for item in candidates
    )


# Is a training due?


def next_step(
    view: ProjectView,
    training: TrainingState,
    options: LabelingOptions,
    n_changed: int,
    picks_requested: bool,
    rest_wanted: bool = False,
) -> Step | None:
    """What the scheduler does now: cover the data with a first batch, train, or nothing.

    Args:
        view: the project.
        training: the models and their picks.
        options: how often to train.
        n_changed: items whose label is another than the newest model was trained on.
        picks_requested: somebody waits for a question.
        rest_wanted: changed labels are to be trained on even if they are fewer than a batch.
    """
    if options.first in ("kcenter", "maxherding") and _is_new(view, training):
        return "cover"
    due = n_changed >= options.batch or picks_requested or (rest_wanted and n_changed > 0)
    if due and has_labels(view):
        return "train"
    covers = options.covers_when_ready and not (training.covered or training.versions)
    return "cover" if covers else None


def _is_new(view: ProjectView, training: TrainingState) -> bool:
    """Whether nothing was trained or asked so far, nor is queued."""
    if training.versions or view.annotations.asked:
        return False
    return next(open_picks(view, training), None) is None


def has_labels(view: ProjectView) -> bool:
    """Whether there is a label to train on."""
    return any(map(view.trainable, view.annotations.labels))


def changed_labels(view: ProjectView, training: TrainingState) -> set[str]:
    """Items whose label is another than the newest model was trained on."""
    labels, trained = view.annotations.labels, training.trained_labels
    return {item for item in {*trained, *labels} if label_changed(view, training, item)}


def label_changed(view: ProjectView, training: TrainingState, item: str) -> bool:
    """Whether an item's label is another than the newest model was trained on."""
    label = view.annotations.labels.get(item)
    return view.trainable(item) and label != training.trained_labels.get(item)


# What is trained, and what comes of it


def training_task(
    view: ProjectView, options: LabelingOptions, version: int, out: Path
) -> TrainingTask:
    """The next model, from all labels there are."""
    position, digests = view.items.position, view.items.digests
    labels = {
        item: label for item, label in view.annotations.labels.items() if view.trainable(item)
    }
    return TrainingTask(
        version,
        tuple((item, digests[position[item]]) for item in labels),
        np.asarray(list(labels.values()), np.int64),
        tuple(each.name for each in view.annotations.classes),
        view.split.held | view.not_free(),
        options.batch * (1 + options.ahead),
        out,
    )


def model_picks(
    view: ProjectView, version: ModelVersion, outcome: TrainingOutcome, guesses: ModelGuesses
) -> tuple[RankedPick, ...]:
    """What a new model wants answered, of the items that are in the data now."""
    names = [each.name for each in view.annotations.classes]
    explained = zip(outcome.picks, outcome.explanations, outcome.doubts, strict=True)
    return tuple(
        RankedPick(
            version.version,
            rank,
            item,
            messages.ONE_CLASS if outcome.one_class else doubt.text(names),
            {} if outcome.one_class else messages.numbers_of(why, doubt, rank),
            guesses.guess(item),
        )
        for rank, (item, why, doubt) in enumerate(explained)
        if item in view.items.position
    )


def random_picks(view: ProjectView, options: LabelingOptions) -> tuple[RankedPick, ...]:
    """Random picks; the first batch is that of `askance.loop` with the same rows and seed."""
    asked, ids = view.annotations.asked, view.items.ids
    draws, batch = Draws(options.seed), options.batch
    left_out = view.not_free()
    free = np.asarray([row for row in view.split.trained if ids[row] not in left_out], np.int64)
    start = draws.generator("start").choice(len(free), min(batch, len(free)), replace=False)
    rest = np.setdiff1d(np.arange(len(free)), start)
    spare = draws.generator("spare").permutation(rest)[: batch * options.ahead]
    rows = free[np.concatenate([start, spare]).astype(np.int64)]
    why = messages.SPARE if asked else messages.FIRST
    return first_picks([ids[row] for row in rows], why)


def first_picks(items: Collection[str], why: str) -> tuple[RankedPick, ...]:
    """Picks that no model made."""
    return tuple(RankedPick(0, rank, item, why) for rank, item in enumerate(items))
