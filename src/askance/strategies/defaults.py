"""The rule that is taken where none is named, and the evidence that it rests on.

`defaults.json` is written by `benchmarks/choose_default.py` from the stores of the experiments, as
results/default/CHOOSING.md says. Where its `decided` is false, those experiments are not all in, and
the order of the rules is provisional: a working choice, which no experiment has made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class TrackEvidence:
    """What rules gained over `random` in experiments of one kind.

    Args:
        name: "network", trained from scratch, or "encoder", a pretrained one.
        seeds: as they are written: "5-14".
        datasets: how many there are; they are the units of the intervals.
        order: the rules that are not out, the highest gain first.
        gains: of every rule, over all rounds after the first: a share, and its 95% interval.
    """

    name: str
    seeds: str
    datasets: int
    order: tuple[str, ...]
    gains: Mapping[str, tuple[float, float, float]]


@dataclass(frozen=True)
class ExperimentEvidence:
    """The same in one experiment.

    Args:
        track: the kind of experiment it is.
        per_class: the fewest and the most labels a class in each third of the rounds.
        gains: of every rule, in each third.
    """

    name: str
    track: str
    dataset: str
    classes: int
    per_class: tuple[tuple[float, float], ...]
    gains: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class RuleEvidence:
    """Which rules are taken before which.

    Args:
        decided: whether the experiments that decide are in.
        order: the rules that were compared, the best first; those that are out come last.
        out: the experiments in which such a rule was significantly below `random`.
        tracks, experiments: what the order rests on.
    """

    decided: bool
    order: tuple[str, ...]
    out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tracks: tuple[TrackEvidence, ...] = ()
    experiments: tuple[ExperimentEvidence, ...] = ()

    def track(self, name: str) -> TrackEvidence | None:
        """The experiments of that kind; None before they are in."""
        return next((each for each in self.tracks if each.name == name), None)


@dataclass(frozen=True)
class Default:
    """The rule that is taken, and in words why."""

    name: str
    why: str


@cache
def evidence() -> RuleEvidence:
    """What `defaults.json` says."""
    said = json.loads((files("askance.strategies") / "defaults.json").read_text("utf-8"))
    return RuleEvidence(
        said["decided"],
        tuple(said["order"]),
        {rule: tuple(where) for rule, where in said["out"].items()},
        tuple(
            TrackEvidence(
                each["name"],
                each["seeds"],
                each["datasets"],
                tuple(each["order"]),
                {rule: tuple(gain) for rule, gain in each["gains"].items()},
            )
            for each in said["tracks"]
        ),
        tuple(
            ExperimentEvidence(
                each["name"],
                each["track"],
                each["dataset"],
                each["classes"],
                tuple((low, high) for low, high in each["per_class"]),
                {rule: tuple(gains) for rule, gains in each["gains"].items()},
            )
            for each in said["experiments"]
        ),
    )
