"""`judging.toml`: which seeds of a folder decide, and which experiments cannot be judged.

    seeds = "5-24"
    exploratory = "0-4"
    studies = 100
    variants = "../variants"

    [[unfit]]
    experiment = "pokerhand-mlp"
    seeds = "0-4"
    why = "its cards are not sorted"

A folder without the file is judged on all of its seeds.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from askance.errors import AskanceError, StoreError
from askance.experiments import reader
from askance.experiments.seeds import parse_seeds
from askance.experiments.statistics.table import ExperimentResults
from askance.report.facts import Facts

FILE = "judging.toml"
_SEEDS = Annotated[
    str, reader.Expected('text such as "5-24"'), lambda text, node: parse_seeds(text)
]


class Seeds(tuple[int, ...]):
    """Seeds, in a file as text such as "5-24" or "0,3"."""

    @classmethod
    def read(cls, node: reader.Node) -> Seeds:
        """The seeds of a file."""
        return cls(reader.read(_SEEDS, node))


NO_SEEDS = Seeds()


@dataclass(frozen=True)
class Unfit:
    """Seeds of an experiment that say nothing of the paper, and why."""

    experiment: str
    seeds: Seeds
    why: str


@dataclass(frozen=True)
class Judging:
    """Which data decide.

    Args:
        seeds: those that decide; None for all there are.
        exploratory: those that were seen before.
        studies: the seed from which on a study's draws decide.
        unfit: what cannot be judged.
        variants: the folder of the runs of variants, from that of the file; "" for none.
    """

    seeds: Seeds | None = None
    exploratory: Seeds = NO_SEEDS
    studies: int = 0
    unfit: tuple[Unfit, ...] = ()
    variants: str = ""

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
        text = path.read_text(encoding="utf-8")
        node = reader.Node(str(path), tomllib.loads(text), text, Judging)
        judging: Judging = reader.read(Judging, node)
        if judging.seeds is None:
            raise node.error('expected the seeds that decide, such as seeds = "5-24"')
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StoreError(f"{path}: {error}") from error
    except AskanceError as error:
        raise StoreError(str(error)) from error
    return judging


def shown(facts: Facts, seeds: tuple[int, ...] | None) -> Facts:
    """Of each experiment the runs of some seeds, or all where it has none of these."""
    chosen = set(seeds or ())
    has = {row.experiment for row in facts.rows if row.seed in chosen}
    rows = [row for row in facts.rows if row.experiment not in has or row.seed in chosen]
    if len(rows) == len(facts.rows):
        return facts
    stores = [one.of_seeds(chosen) if one.name in has else one for one in facts.stores]
    return replace(facts, rows=rows, stores=stores)
