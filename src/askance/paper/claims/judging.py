"""`judging.toml`: which seeds of a folder decide, and which experiments cannot be judged.

    seeds = "5-24"
    exploratory = "0-4"
    studies = 100

    [[unfit]]
    experiment = "pokerhand-mlp"
    seeds = "0-4"
    why = "its cards are not sorted"

A folder without the file is judged on all of its seeds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from askance.errors import AskanceError, StoreError
from askance.experiments.seeds import parse_seeds
from askance.experiments.statistics.table import ExperimentResults
from askance.report.facts import Facts

FILE = "judging.toml"
_KEYS = {"seeds": str, "exploratory": str, "studies": int, "unfit": list}
_UNFIT = {"experiment", "seeds", "why"}


@dataclass(frozen=True)
class Unfit:
    """Seeds of an experiment that say nothing of the paper, and why."""

    experiment: str
    seeds: tuple[int, ...]
    why: str


@dataclass(frozen=True)
class Judging:
    """Args:
    seeds: those that decide; None for all there are.
    exploratory: those that were seen before.
    studies: the seed from which on a study's draws decide.
    """

    seeds: tuple[int, ...] | None = None
    exploratory: tuple[int, ...] = ()
    studies: int = 0
    unfit: tuple[Unfit, ...] = ()

    def fit(self, one: ExperimentResults) -> ExperimentResults:
        """An experiment without the seeds that cannot be judged."""
        gone = {s for entry in self.unfit if entry.experiment == one.name for s in entry.seeds}
        return one.of_seeds([seed for seed in one.seeds if seed not in gone])


def read(folder: Path) -> Judging:
    """What a folder's `judging.toml` says; every seed decides where there is none."""
    path = folder / FILE
    if not path.is_file():
        return Judging()
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        _check(found)
        return Judging(
            parse_seeds(found["seeds"]),
            parse_seeds(found["exploratory"]) if "exploratory" in found else (),
            found.get("studies", 0),
            tuple(
                Unfit(entry["experiment"], parse_seeds(entry["seeds"]), entry["why"])
                for entry in found.get("unfit", [])
            ),
        )
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, AskanceError) as error:
        raise StoreError(f"{path}: {error}") from error


def _check(found: Mapping[str, Any]) -> None:
    if "seeds" not in found:
        raise StoreError('expected the seeds that decide, such as seeds = "5-24"')
    for key, value in found.items():
        if key not in _KEYS:
            raise StoreError(f"unknown key {key!r}; known: {', '.join(_KEYS)}")
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):
            raise StoreError(f"{key} must be a {_KEYS[key].__name__}, got {value!r}")
    for entry in found.get("unfit", []):
        texts = isinstance(entry, dict) and all(isinstance(v, str) for v in entry.values())
        if not texts or set(entry) != _UNFIT:
            raise StoreError(
                f"each [[unfit]] needs the texts {', '.join(sorted(_UNFIT))}, got {entry!r}"
            )


def shown(facts: Facts, seeds: tuple[int, ...] | None) -> Facts:
    """Of each experiment the runs of some seeds, or all where it has none of these."""
    chosen = set(seeds or ())
    has = {row.experiment for row in facts.rows if row.seed in chosen}
    rows = [row for row in facts.rows if row.experiment not in has or row.seed in chosen]
    if len(rows) == len(facts.rows):
        return facts
    stores = [one.of_seeds(chosen) if one.name in has else one for one in facts.stores]
    return replace(facts, rows=rows, stores=stores)
