"""How good the models are on the held-out items, as the page shows it.

Shapes: V versions; N held-out items that have a label and count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from askance.label import estimate
from askance.label.estimate import Advice
from askance.label.guesses import NONE
from askance.label.planning import ProjectView, TrainingState, held_out_left
from askance.stopping import Checkpoint, Estimate, wilson

SURE = 0.9  # a confidence that is worth a word
_CURVE = 200  # points of the curve at most


@dataclass(frozen=True)
class VersionEstimate:
    """The estimated accuracy of one model, and how many answers it was trained on."""

    version: int
    trained_on: int
    estimate: Estimate


@dataclass(frozen=True, eq=False)
class HeldOutResults:
    """(V, N): whether each version's guess is right, and whether it made one."""

    right_VN: NDArray[np.bool_]
    guessed_VN: NDArray[np.bool_]

    def of(self, version: int) -> Estimate | None:
        """The accuracy of the version at this place; None where no item of it counts."""
        right_N, guessed_N = self.right_VN[version], self.guessed_VN[version]
        if not guessed_N.any():
            return None
        return wilson(int(right_N[guessed_N].sum()), int(guessed_N.sum()))


def held_out_results(view: ProjectView, training: TrainingState) -> HeldOutResults:
    """The guesses of every version on the held-out items that count, against their labels."""
    labels = view.annotations.labels
    items = [item for item in fair_sample(view, training) if item in labels]
    labels_N = np.asarray([labels[item] for item in items], np.int64)
    guesses_VN = training.held_out_guesses.of(items)
    return HeldOutResults(guesses_VN == labels_N, guesses_VN != NONE)


def fair_sample(view: ProjectView, training: TrainingState) -> Sequence[str]:
    """The held-out items that count once they are answered, in their random order."""
    return view.split.held_out[: _n_fair(view, training)]


def _n_fair(view: ProjectView, training: TrainingState) -> int:
    """How many held-out items count: all, once nobody needs to be asked about another."""
    held, annotations = view.split.held_out, view.annotations
    if next(held_out_left(view, training), None) is None:
        return len(held)
    return estimate.fair(held, annotations.asked_held, annotations.asked)


def curve(training: TrainingState, results: HeldOutResults) -> list[VersionEstimate]:
    """The estimate of every version that has one; evenly thinned out where there are many."""
    points = [
        VersionEstimate(version.version, version.trained_on, accuracy)
        for place, version in enumerate(training.versions)
        if (accuracy := results.of(place)) is not None
    ]
    if len(points) <= _CURVE:
        return points
    kept = np.unique(np.linspace(0, len(points) - 1, _CURVE).round().astype(int))
    return [points[place] for place in kept]


class RightOf(NamedTuple):
    """How many of n are right."""

    right: int
    n: int


def where_sure(view: ProjectView, training: TrainingState) -> RightOf | None:
    """How often the newest model is right on held-out answers of which it is at least 90% sure."""
    labels, guesses = view.annotations.labels, training.guesses
    if guesses is None:
        return None
    items = [item for item in fair_sample(view, training) if item in labels]
    sure = [
        guess.choice == labels[item]
        for item in items
        if (guess := guesses.guess(item)) is not None and guess.confidence >= SURE
    ]
    return RightOf(sum(sure), len(sure)) if sure else None


def history(
    view: ProjectView, training: TrainingState, results: HeldOutResults
) -> list[Checkpoint]:
    """Every model, on the held-out items that all of them guessed: as stopping rules see them."""
    by_all = results.guessed_VN.all(axis=0)
    sample_VN = training.held_out_guesses.of(view.split.held_out)
    sample_VN = sample_VN[:, (sample_VN != NONE).all(axis=0)]
    return [
        Checkpoint(version.trained_on, predictions=sample_N, correct=right_N[by_all])
        for version, sample_N, right_N in zip(
            training.versions, sample_VN, results.right_VN, strict=True
        )
    ]


def advice(
    view: ProjectView, training: TrainingState, results: HeldOutResults, batch: int
) -> Advice:
    """Whether more answers look worth it, on the items that every version guessed."""
    reserved = len(view.split.held_out)
    if reserved < estimate.ENOUGH:
        text = (
            f"{reserved or 'No'} items are held out, which is too few to measure what more answers "
            f"bring; {estimate.ENOUGH} would do."
        )
        return Advice(text, None, None, False)
    return estimate.advise(history(view, training, results), batch)
