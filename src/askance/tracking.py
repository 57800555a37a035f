"""Trackers: what is called after every round of a loop or an experiment.

A tracker is any object with these two methods. `askance.integrations` has two, for TensorBoard and
MLflow; your own may be as short as

    class Printer:
        def began(self, facts): print(facts)
        def round(self, done): print(done.labels, done.metrics)

    for run in askance.loop(X, oracle, batch=50, rounds=5, track=Printer()): …
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Fact = str | int | float | bool
"""What is true of all rounds: a name, a number."""


@dataclass(frozen=True, eq=False)
class Round:
    """One round of one run: a model was trained, measured, and asked.

    Args:
        strategy: the rule's label.
        seed: of the run.
        round: 0 for the model of the starting set.
        labels: how many points the model was trained on.
        metrics: what was measured of it, by name: `run.log(accuracy=…)`; of an experiment, the
            accuracy and loss on the test split and the learning rate.
        seconds: by stage.
        picks: pool positions, best first; empty in the last round.
        scores: the rule's own score of each pick.
        last: whether the run is over.
    """

    strategy: str
    seed: int
    round: int
    labels: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    picks: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    scores: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    last: bool = False

    def numbers(self) -> dict[str, float]:
        """Everything that makes a curve, by name: the metrics, the round, mean score, seconds."""
        numbers = {name: float(value) for name, value in self.metrics.items()}
        numbers["round"] = float(self.round)
        if len(self.scores):
            numbers["score/mean"] = float(self.scores.mean())
        return numbers | {f"seconds/{stage}": float(s) for stage, s in self.seconds.items()}


class Tracker(Protocol):
    """Follows a run, or an experiment of many runs.

    An experiment that is resumed reports its stored rounds again. A tracker that keeps rounds must skip
    those it has.
    """

    def began(self, facts: Mapping[str, Fact]) -> None:
        """A run or an experiment begins.

        A run's own loop says its `strategy` and `seed`; an experiment its `name`, and an `identity`
        that says which rounds belong together when it is resumed.
        """

    def round(self, done: Round) -> None:
        """A round is over. Runs of one experiment come interleaved, each in order."""
