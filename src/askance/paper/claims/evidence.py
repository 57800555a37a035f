"""What claims are judged from: the stores of a folder, and the studies in its folder `studies`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from askance.errors import DataError
from askance.experiments.statistics import untrained
from askance.experiments.statistics.curves import Curves, curves
from askance.experiments.statistics.table import ExperimentResults
from askance.paper import studies
from askance.paper.claims import judging
from askance.paper.claims.case import Case, Reading
from askance.paper.claims.judging import Judging, Seeds
from askance.paper.claims.variant_runs import VariantRuns, read_variants
from askance.paper.suite import SUITE
from askance.report.facts import Facts, StoreFacts, read
from askance.report.formatting import plural

STUDIES = "studies"
EARLIER = "earlier"  # in that folder: results whose draws were seen before, kept beside later ones


@dataclass(frozen=True)
class Evidence:
    """What a folder holds.

    Args:
        folder: as it was given.
        facts: of every store in it, with the seeds that are shown.
        studies: results, by the study's name.
        judging: which seeds decide.
        everything: facts of all seeds, where they are not those that are shown.
        earlier: results of studies that were seen before.
        variants: runs of experiments with one choice made otherwise.
    """

    folder: Path
    facts: Facts
    studies: dict[str, Any]
    judging: Judging = field(default_factory=Judging)
    everything: Facts | None = None
    earlier: dict[str, Any] = field(default_factory=dict)
    variants: Sequence[VariantRuns] = ()

    @cached_property
    def experiments(self) -> list[ExperimentResults]:
        """Those of the paper's suite, in its order, with the seeds that are shown.

        A round of a seed in which a network did not train is NaN for all of its rules.
        """
        return _suite(self.facts.experiments)

    @cached_property
    def every_round(self) -> list[ExperimentResults]:
        """The same, rounds in which a network did not train included, every rule of them flagged."""
        return [untrained.shared(one) for one in _suite(self.facts.every_round)]

    @cached_property
    def fresh(self) -> Case | None:
        """What decides; None where no run has the seeds that do, or they were seen before."""
        if self.judging.seeds is None:
            return Case(self._those(None))
        if set(self.judging.seeds) <= set(self.judging.exploratory):
            return None
        return self._case(self.judging.seeds)

    @cached_property
    def explored(self) -> Case | None:
        """What was seen before; None where there is nothing of the kind."""
        seeds = self.judging.exploratory
        return self._case(seeds) if seeds else None

    @property
    def case(self) -> Case:
        """What decides, or what was seen before where nothing does."""
        return self.fresh or self.explored or Case([])

    @property
    def is_exploratory(self) -> bool:
        """Whether nothing here was judged by a rule that was fixed before."""
        return self.judging.seeds is not None and self.fresh is None

    def _case(self, seeds: Sequence[int]) -> Case | None:
        """What can be judged on some seeds; None where nothing can."""
        those = self._those(seeds)
        return Case(those, Reading(len(seeds))) if those else None

    def _those(self, seeds: Sequence[int] | None) -> list[ExperimentResults]:
        """The suite's experiments that can be judged on some seeds, every round of theirs there."""
        those = []
        for one in _suite(self.all_seeds.every_round):
            part = self.judging.fit(one if seeds is None else one.of_seeds(seeds))
            ended = all(len(one.rounds) >= store.expected for store in self.stores(one.name))
            if part.seeds and ended:
                those.append(untrained.shared(part))
        return those

    @cached_property
    def curves(self) -> list[Curves]:
        """With every rule there is: their corrections are over all pairs of them."""
        return [curves(one) for one in self.experiments]

    @property
    def deciding(self) -> list[Curves]:
        """Those of experiments that have seeds that decide; all of them where none does."""
        seeds = set(self.judging.seeds or ())
        those = [one for one in self.curves if seeds & set(one.seeds)]
        return those or self.curves

    @cached_property
    def seen_before(self) -> list[Curves]:
        """The same of the seeds that were seen before; none where these are what is shown."""
        seeds = self.judging.exploratory
        if self.everything is None or self.is_exploratory or not seeds:
            return []
        those = _suite(self.everything.of_seeds(seeds).experiments)
        return [curves(part) for one in those if (part := self.judging.fit(one)).seeds]

    @property
    def datasets(self) -> dict[str, str]:
        """By experiment."""
        return {one.name: one.dataset for one in self.experiments}

    @property
    def rules(self) -> tuple[str, ...]:
        """Every rule of an experiment here, the paper's first."""
        return SUITE.sort(rule for one in self.experiments for rule in one.methods)

    @property
    def missing(self) -> list[str]:
        """The paper's experiments that are not here."""
        there = {one.name for one in self.experiments}
        return [name for name in SUITE.experiments if name not in there]

    @property
    def all_seeds(self) -> Facts:
        """The facts of all seeds, shown or not."""
        return self.everything or self.facts

    def stores(self, name: str) -> list[StoreFacts]:
        """The stores of an experiment, of all seeds; none where its rows are of a table."""
        return [one for one in self.all_seeds.stores if one.name == name]


def gather(folder: Path, seeds: tuple[int, ...] | None = None) -> Evidence:
    """Everything a folder holds.

    Args:
        seeds: those that decide, in place of what the folder's `judging.toml` says; where it calls
            them exploratory, they are that.
    """
    wanted = judging.read(folder)
    if seeds is not None:
        chosen = Seeds(seeds)
        is_exploratory = set(chosen) <= set(wanted.exploratory)
        exploratory = chosen if is_exploratory else wanted.exploratory
        wanted = replace(wanted, seeds=chosen, exploratory=exploratory)
    everything = read(folder, SUITE)
    if seeds is not None:
        everything.of_seeds(seeds)  # refused where there are none
    visible = judging.shown(everything, wanted.seeds)
    later, earlier = _studies(folder / STUDIES), _studies(folder / STUDIES / EARLIER)
    variants = read_variants(folder / wanted.variants) if wanted.variants else []
    return Evidence(folder, visible, later, wanted, everything, earlier, variants)


def _suite(experiments: Sequence[ExperimentResults]) -> list[ExperimentResults]:
    by_name = {one.name: one for one in experiments}
    return [by_name[name] for name in SUITE.experiments if name in by_name]


def _studies(folder: Path) -> dict[str, Any]:
    results = {}
    for path in sorted(folder.glob("*.json")):
        study, result = studies.read(path)
        if path.stem != study.name:
            raise DataError(
                f"{path} holds the study {study.name!r}; call it {study.name}.json, or move it away"
            )
        results[study.name] = result
    return results


def counted(items: Collection[Any], noun: str, seeds: Sequence[int] = ()) -> str:
    """ "7 experiments × 5 seeds": of how many, and of how many seeds each."""
    many = plural(len(items), noun)
    if not seeds:
        return many
    low, high = min(seeds), max(seeds)
    return f"{many} × {plural(high, 'seed') if low == high else f'{low}–{high} seeds'}"
