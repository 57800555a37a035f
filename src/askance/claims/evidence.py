"""What claims are judged from: the stores of a folder, and the studies in its folder `studies`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from askance import studies
from askance.bench.stats.curves import Curves, curves
from askance.bench.stats.table import ExperimentResults, methods_of
from askance.errors import DataError
from askance.figures.paper import GRIDS
from askance.report.facts import Facts, StoreFacts, read
from askance.report.words import several

STUDIES = "studies"
SUITE = tuple(name for names in GRIDS.values() for name in names)


@dataclass(frozen=True)
class Evidence:
    """Args:
    folder: as it was given.
    facts: of every store in it.
    studies: results, by the study's name.
    """

    folder: Path
    facts: Facts
    studies: dict[str, Any]

    @cached_property
    def experiments(self) -> list[ExperimentResults]:
        """Those of the paper's suite, in its order."""
        found = {one.name: one for one in self.facts.experiments}
        return [found[name] for name in SUITE if name in found]

    @cached_property
    def curves(self) -> list[Curves]:
        """With every rule there is: their corrections are over all pairs of them."""
        return [curves(one) for one in self.experiments]

    @property
    def rules(self) -> tuple[str, ...]:
        return methods_of(self.experiments)

    @property
    def missing(self) -> list[str]:
        there = {one.name for one in self.experiments}
        return [name for name in SUITE if name not in there]

    def store(self, name: str) -> StoreFacts | None:
        return next((one for one in self.facts.stores if one.name == name), None)


def gather(folder: Path, facts: Facts | None = None) -> Evidence:
    """Everything a folder holds; the facts of its stores are read where they are not given."""
    found = {}
    for path in sorted((folder / STUDIES).glob("*.json")):
        study, result = studies.read(path)
        if path.stem != study.name:
            raise DataError(
                f"{path} holds the study {study.name!r}; call it {study.name}.json, or move it away"
            )
        found[study.name] = result
    return Evidence(folder, facts or read(folder), found)


def counted(found: Sequence[Any], noun: str, seeds: Sequence[int] = ()) -> str:
    """ "7 experiments × 5 seeds": of how many, and of how many seeds each."""
    many = several(len(found), noun)
    if not seeds:
        return many
    low, high = min(seeds), max(seeds)
    return f"{many} × {several(high, 'seed') if low == high else f'{low}–{high} seeds'}"
