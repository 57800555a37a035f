"""Which items a person wants to look through: filtered, searched and in order. Functions of records.

A held-out item's guess is known here only once the item has an answer, as everywhere: before, it would
lead the hand that measures the model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from askance.label.items import Items
from askance.label.likeness import Likeness
from askance.label.planning import ProjectView, TrainingState
from askance.label.records import Guess

Show = Literal[
    "all", "answered", "unanswered", "skipped", "held-out", "disagreement", "model-disagrees"
]
Order = Literal["data", "latest", "surest", "least-sure", "doubtful"]


@dataclass(frozen=True)
class ItemFilter:
    """Which items, and in which order; every condition must hold.

    Args:
        show: what was said of them.
        choice: the class that somebody's answer is.
        annotator: who answered or, with `show` "skipped", skipped them.
        guess: the class that the newest model guesses.
        least: the least confidence of that guess.
        most: the most.
        search: part of the text, the name or another column, in capitals or not.
        order: as in the data, the latest answers first, by the confidence of the guess, or "doubtful":
            the answers first that the model finds least probable.
        like: the item that they look like, which decides the order; held-out items are left out.
    """

    show: Show = "all"
    choice: int | None = None
    annotator: str | None = None
    guess: int | None = None
    least: float = 0.0
    most: float = 1.0
    search: str = ""
    order: Order = "data"
    like: str | None = None


def shown_guess(view: ProjectView, training: TrainingState, item: str) -> Guess | None:
    """The newest model's guess, where it may be shown."""
    if training.guesses is None:
        return None
    if item in view.split.held and item not in view.annotations.answers:
        return None
    return training.guesses.guess(item)


def matching(
    view: ProjectView,
    training: TrainingState,
    wanted: ItemFilter,
    likeness: Likeness | None,
    contains: Collection[str] | None,
) -> list[str]:
    """The items that match, in order; hold the lock.

    Args:
        view: the project.
        training: the newest model and its guesses.
        wanted: the filter.
        likeness: how the items look, once that is known.
        contains: the items with the text that is searched; None where none is.
    """
    said = _said(view, wanted)
    guessed = _guessed(view, training, wanted)
    ids = view.items.ids
    if wanted.like is not None:
        held = view.split.held
        ids = [] if likeness is None else likeness.nearest(wanted.like)
        ids = [item for item in ids if item in view.items.position and item not in held]
    hidden = training.unreadable
    found = [
        item
        for item in ids
        if item not in hidden and view.can_be_shown(item) and said(item) and guessed(item)
    ]
    if contains is not None:
        found = [item for item in found if item in contains]
    return found if wanted.like is not None else _ordered(found, view, training, wanted.order)


def _said(view: ProjectView, wanted: ItemFilter) -> Callable[[str], bool]:
    """Whether people said of an item what is wanted."""
    annotations, annotator, choice = view.annotations, wanted.annotator, wanted.choice
    answers, skips, conflicts = annotations.answers, annotations.skips, annotations.conflicts

    def by_and_as(item: str) -> bool:
        if annotator is None and choice is None:
            return True
        if wanted.show == "skipped":
            return choice is None and annotator in skips.get(item, ())
        current = annotations.current(item)
        if annotator is not None:
            current = {who: said for who, said in current.items() if who == annotator}
        return bool(current) and (choice is None or choice in current.values())

    of_kind: dict[Show, Callable[[str], bool]] = {
        "all": lambda item: True,
        "answered": lambda item: item in answers,
        "unanswered": lambda item: item not in answers,
        "skipped": lambda item: item in skips and item not in answers,
        "held-out": lambda item: item in answers and item in view.split.held,
        "disagreement": lambda item: item in conflicts,
        "model-disagrees": lambda item: item in answers,  # and see `_guessed`
    }
    kind = of_kind[wanted.show]
    return lambda item: kind(item) and by_and_as(item)


def _guessed(
    view: ProjectView, training: TrainingState, wanted: ItemFilter
) -> Callable[[str], bool]:
    """Whether the model says of an item what is wanted."""
    every = wanted.least <= 0 and wanted.most >= 1 and wanted.guess is None
    labels, disagrees = view.annotations.labels, wanted.show == "model-disagrees"
    if every and not disagrees:
        return lambda item: True

    def guessed(item: str) -> bool:
        guess = shown_guess(view, training, item)
        if guess is None or not wanted.least <= guess.confidence <= wanted.most:
            return False
        if wanted.guess is not None and guess.choice != wanted.guess:
            return False
        return not disagrees or labels.get(item, guess.choice) != guess.choice

    return guessed


def containing(items: Items, search: str) -> frozenset[str]:
    """The items whose text, name or columns contain what is searched; needs no lock."""
    sought = search.casefold()
    in_columns = items.rows_with(sought)
    texts = items.texts or [""] * len(items)
    return frozenset(
        item
        for row, (item, name, text) in enumerate(zip(items.ids, items.names, texts, strict=True))
        if row in in_columns
        or sought in name.casefold()
        or sought in item.casefold()
        or sought in text.casefold()
    )


def _ordered(
    found: list[str], view: ProjectView, training: TrainingState, order: Order
) -> list[str]:
    if order == "data":
        return found
    if order == "latest":
        answers = view.annotations.answers

        def latest(item: str) -> int:
            return max((stack[-1].id for stack in answers.get(item, {}).values()), default=0)

        return sorted(found, key=latest, reverse=True)
    if order == "doubtful":
        return doubtful(found, view, training)
    sign = -1 if order == "surest" else 1

    def confidence(item: str) -> float:
        guess = shown_guess(view, training, item)
        return 2.0 if guess is None else sign * guess.confidence  # those without one come last

    return sorted(found, key=confidence)


def doubtful(found: list[str], view: ProjectView, training: TrainingState) -> list[str]:
    """Items by the probability that the model gives their answers, the least first; others last.

    It is that of a model that was not trained on the answer, after Northcutt, Jiang and Chuang,
    Confident Learning, JAIR 2021 (their self-confidence), where the model is `linear`.
    """
    labels = view.annotations.labels

    def probability(item: str) -> float:
        label, guess = labels.get(item), shown_guess(view, training, item)
        if label is None or guess is None or training.guesses is None:
            return 2.0
        if item in view.split.held:  # never trained on; at most what the guess leaves
            return guess.confidence if guess.choice == label else 1 - guess.confidence
        if training.trained_labels.get(item) != label:
            return 2.0  # answered anew since
        support = training.guesses.support_of(item)
        return 2.0 if support is None else support

    return sorted(found, key=probability)
