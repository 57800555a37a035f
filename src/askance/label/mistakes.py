"""What the model gets wrong on held-out answers, and where people disagree: functions of records.

Shapes: C classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import isnan

from askance.label.accuracy import fair_sample
from askance.label.planning import ProjectView, TrainingState
from askance.label.state import AnnotationState
from askance.stopping import Estimate, cohen_kappa, wilson

BINS = (0.0, 0.5, 0.7, 0.9, 1.0)  # of confidence
DOUBT = 0.2  # an answer that the model gives less than this is doubtful


@dataclass(frozen=True)
class Confusion:
    """How many held-out items of a class are guessed as another, or as it."""

    said: int
    guessed: int
    n: int


@dataclass(frozen=True)
class ClassAccuracy:
    """How often held-out items of a class are guessed right."""

    choice: int
    right: int
    estimate: Estimate


@dataclass(frozen=True)
class ConfidenceBin:
    """How often guesses of some confidence are right."""

    least: float
    most: float
    n: int
    right: int
    mean: float


@dataclass(frozen=True)
class PairAgreement:
    """How two people agree on the items that both answered; kappa is None where it says nothing."""

    one: str
    other: str
    n: int
    agree: int
    kappa: float | None


@dataclass(frozen=True)
class Mistakes:
    """What is known of the newest model's mistakes.

    Args:
        version: of the model.
        n: held-out answers that count.
        confusion: every pair that occurs.
        by_class: the least accurate class first.
        by_confidence: of rising confidence, where there are guesses.
        doubtful: answers that the model finds less probable than 20%.
    """

    version: int
    n: int
    confusion: list[Confusion]
    by_class: list[ClassAccuracy]
    by_confidence: list[ConfidenceBin]
    doubtful: int


def mistakes(view: ProjectView, training: TrainingState) -> Mistakes | None:
    """The newest model's mistakes on held-out answers; None before there is a model."""
    if training.guesses is None:
        return None
    labels = view.annotations.labels
    judged = [
        (labels[item], guess)
        for item in fair_sample(view, training)
        if item in labels and (guess := training.guesses.guess(item)) is not None
    ]
    pairs = Counter((label, guess.choice) for label, guess in judged)
    totals = Counter(label for label, _ in judged)
    by_class = [
        ClassAccuracy(label, pairs[label, label], wilson(pairs[label, label], n))
        for label, n in totals.items()
    ]
    bins = []
    for least, most in pairwise(BINS):
        inside = [
            (guess.confidence, guess.choice == label)
            for label, guess in judged
            if least <= guess.confidence < most or (most == BINS[-1] == guess.confidence)
        ]
        if inside:
            mean = sum(confidence for confidence, _ in inside) / len(inside)
            bins.append(ConfidenceBin(least, most, len(inside), sum(r for _, r in inside), mean))
    return Mistakes(
        training.guesses.version,
        len(judged),
        [Confusion(said, guessed, n) for (said, guessed), n in sorted(pairs.items())],
        sorted(by_class, key=lambda one: (one.estimate.accuracy, -one.estimate.n)),
        bins,
        n_doubtful(view, training),
    )


def n_doubtful(view: ProjectView, training: TrainingState) -> int:
    """How many answers the model finds less probable than 20%."""
    guesses, labels = training.guesses, view.annotations.labels
    if guesses is None:
        return 0
    count = 0
    for item, label in labels.items():
        guess = guesses.guess(item)
        if item in view.split.held:
            count += guess is not None and guess.choice != label and guess.confidence > 1 - DOUBT
        elif training.trained_labels.get(item) == label:
            support = guesses.support_of(item)
            count += support is not None and support < DOUBT
    return count


def agreement(annotations: AnnotationState) -> list[PairAgreement]:
    """Every two people with items in common, those with the most first."""
    both: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for item in annotations.answers:
        said = annotations.current(item)
        for one, other in combinations(sorted(said), 2):
            both.setdefault((one, other), []).append((said[one], said[other]))
    found = [_pair(one, other, answers) for (one, other), answers in both.items()]
    return sorted(found, key=lambda pair: (-pair.n, pair.one, pair.other))


def _pair(one: str, other: str, answers: Iterable[tuple[int, int]]) -> PairAgreement:
    first, second = zip(*answers, strict=True)
    kappa = cohen_kappa(first, second)
    agree = sum(a == b for a, b in zip(first, second, strict=True))
    return PairAgreement(one, other, len(first), agree, None if isnan(kappa) else kappa)
