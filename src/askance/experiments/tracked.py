"""Report an experiment to a tracker."""

from __future__ import annotations

from typing import Any

import numpy as np

from askance.data import Dataset
from askance.experiments.dotted import dotted
from askance.experiments.records import RoundRecord
from askance.experiments.runner import RunObserver
from askance.experiments.spec import Spec
from askance.tracking import Fact, Round, Tracker


class Tracked(RunObserver):
    """Reports every round to a tracker, also those that were already in the store."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker

    def began(self, spec: Spec, dataset: Dataset, how: str, total: int, done: int) -> None:
        self.rounds = spec.schedule.rounds
        self.tracker.began(facts_of(spec, dataset))

    def resumed(self, record: RoundRecord) -> None:
        self.stored(record)

    def stored(self, record: RoundRecord) -> None:
        metrics = {name: getattr(record, name) for name in ("accuracy", "loss", "learning_rate")}
        done = Round(
            strategy=record.strategy,
            seed=record.seed,
            round=record.round,
            labels=record.labels,
            metrics=metrics,
            seconds=record.seconds,
            picks=record.picks,
            scores=np.empty(0) if record.scores is None else record.scores.astype(np.float64),
            last=record.round == self.rounds,
        )
        self.tracker.round(done)


def facts_of(spec: Spec, dataset: Dataset) -> dict[str, Fact]:
    """What is true of all runs of an experiment, by dotted name."""
    entry = {key: value for key, value in spec.to_dict().items() if key != "strategies"}
    facts = {key: _fact(value) for key, value in dotted(entry).items()}
    return {**facts, "identity": spec.identity, "data": dataset.fingerprint}


def _fact(value: Any) -> Fact:
    return value if isinstance(value, (str, int, float, bool)) else str(value)
