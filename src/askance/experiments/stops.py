"""Where each stopping rule of an experiment would have stopped its runs, and what it had there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from askance.experiments.stop_spec import StopSpec
from askance.experiments.store import ResultStore
from askance.stopping import Checkpoint


@dataclass(frozen=True)
class StopResult:
    """What a stopping rule does to the runs of a rule.

    Args:
        stop: the stopping rule's label.
        strategy: the rule's label.
        seeds: runs with all their rounds.
        stopped: how many of them it would have stopped.
        labels: where it stops, in the mean; a run that it does not stop counts with all its labels.
        accuracy: there, in the mean.
        final_accuracy: with all labels, in the mean.
        unknown: why nothing is known, else empty.
    """

    stop: str
    strategy: str
    seeds: int = 0
    stopped: int = 0
    labels: float | None = None
    accuracy: float | None = None
    final_accuracy: float | None = None
    unknown: str = ""


def stops(path: str | os.PathLike[str], rules: Sequence[StopSpec]) -> list[StopResult]:
    """Every stopping rule on every rule's finished runs of a store.

    The last round stops nothing: there is nothing left to ask.
    """
    with ResultStore.read(path) as store:
        items = int(store.facts.get("test", 0)) or None
        ended = store.spec["schedule"]["rounds"] + 1
        runs: dict[str, list[list[Checkpoint]]] = {}
        for strategy, seed in store.runs:
            rounds = store.history(strategy, seed)
            predicted = store.predictions(strategy, seed)
            history = [
                Checkpoint(one.labels, predicted.get(one.round), accuracy=one.accuracy, n=items)
                for one in rounds
            ]
            runs.setdefault(strategy, [])
            if len(history) == ended:
                runs[strategy].append(history)
    return [
        _result(rule, strategy, histories, items)
        for rule in rules
        for strategy, histories in runs.items()
    ]


def _result(
    spec: StopSpec, strategy: str, histories: Sequence[list[Checkpoint]], items: int | None
) -> StopResult:
    rule = spec.build()
    unknown = ""
    if not histories:
        unknown = "no run is finished"
    elif "predictions" in rule.needs and any(
        one.predictions is None for h in histories for one in h
    ):
        unknown = "predictions were not stored: the runs were made without this rule"
    elif spec.name == "target-accuracy" and items is None:
        unknown = "the store does not say how many test items there are"
    if unknown:
        return StopResult(spec.label, strategy, len(histories), unknown=unknown)
    places = [
        next((i for i in range(len(history) - 1) if rule(history[: i + 1])), None)
        for history in histories
    ]
    ends = [
        history[-1 if place is None else place]
        for history, place in zip(histories, places, strict=True)
    ]
    return StopResult(
        spec.label,
        strategy,
        seeds=len(histories),
        stopped=sum(place is not None for place in places),
        labels=float(np.mean([one.labels for one in ends])),
        accuracy=float(np.mean([one.accuracy for one in ends])),
        final_accuracy=float(np.mean([history[-1].accuracy for history in histories])),
    )
