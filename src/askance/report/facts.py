"""What a report is written from: the table of results, and what stores hold besides."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from askance import data
from askance.errors import StoreError
from askance.experiments import export
from askance.experiments import spec as specs
from askance.experiments.export import PathLike
from askance.experiments.formats import ResultRow
from askance.experiments.records import RoundRecord, SweepResult
from askance.experiments.seeds import seed_ranges
from askance.experiments.statistics.curves import Curves, curves
from askance.experiments.statistics.suite import PLAIN, Suite
from askance.experiments.statistics.table import ExperimentResults, experiments
from askance.experiments.statistics.untrained import leave_out
from askance.experiments.store import ResultStore
from askance.figures.catalog import figures
from askance.figures.lazy import LazyFigure
from askance.report.elements import Picture
from askance.report.formatting import join_names
from askance.report.overall import verdict
from askance.report.verdict import Verdict

OVERLAP = "†"  # marks experiments whose encoder was trained on such images
Seconds = dict[str, list[dict[str, float]]]


@dataclass(frozen=True)
class StoreFacts:
    """What one store says, read once.

    Args:
        path: of the store's file.
        progress: how many rounds each run has, by rule and seed.
        sizes_and_file: see `ResultStore.facts`.
    """

    path: Path
    spec: dict[str, Any]
    info: dict[str, Any]
    machines: list[dict[str, Any]]
    sweep: list[SweepResult]
    progress: dict[tuple[str, int], int]
    records: list[RoundRecord]
    sizes_and_file: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.spec["name"]

    @property
    def expected(self) -> int:
        """How many rounds each run is to have, round 0 included."""
        return int(self.spec["schedule"]["rounds"]) + 1

    @property
    def file(self) -> Path | None:
        """The experiment's own file, where it had one; it may have moved since."""
        file = self.sizes_and_file.get("file")
        return None if file is None else Path(os.path.normpath(self.path.parent / file))

    @property
    def unfinished(self) -> list[tuple[str, int]]:
        """Rule and seed of each run that lacks rounds."""
        return [run for run, done in self.progress.items() if done < self.expected]

    def of_seeds(self, seeds: Collection[int]) -> StoreFacts:
        """The same with the runs of some seeds alone."""
        return replace(
            self,
            progress={run: done for run, done in self.progress.items() if run[1] in seeds},
            records=[record for record in self.records if record.seed in seeds],
        )


@dataclass(frozen=True)
class Facts:
    """Everything at some paths.

    Args:
        paths: as they were given.
        rows: the tidy table.
        stores: those among the sources; an export has none.
        suite: whose rules and experiments come first.
    """

    paths: list[str]
    rows: list[ResultRow]
    stores: list[StoreFacts]
    suite: Suite = PLAIN

    @cached_property
    def every_round(self) -> list[ExperimentResults]:
        """The results of each experiment as arrays, those of networks that did not train included."""
        return experiments(self.rows, self.suite.rules)

    @cached_property
    def experiments(self) -> list[ExperimentResults]:
        """The same without: a round of a seed in which a network did not train is NaN for all rules."""
        return [leave_out(one) for one in self.every_round]

    @cached_property
    def trained_rows(self) -> list[ResultRow]:
        """The rows without those rounds."""
        out = {(row.experiment, row.seed, row.round) for row in self.rows if row.flagged}
        return [row for row in self.rows if (row.experiment, row.seed, row.round) not in out]

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """The rules of all experiments."""
        return self.suite.sort(row.strategy for row in self.rows)

    @cached_property
    def curves(self) -> list[Curves]:
        """The learning curves of each experiment."""
        return [curves(one) for one in self.experiments]

    @cached_property
    def overlapping(self) -> list[str]:
        """Experiments whose encoder was trained on images that overlap with theirs."""
        encoders = {store.name: store.spec.get("encoder") for store in self.stores}
        for one in self.experiments:
            if one.name not in encoders and one.name in specs.names():
                encoders[one.name] = specs.load(one.name).encoder
        return [
            one.name
            for one in self.experiments
            if data.overlaps(one.dataset, encoders.get(one.name))
        ]

    @property
    def aside(self) -> list[str]:
        """Experiments that do not count where several are summed up: those that overlap, if others
        do not."""
        return self.overlapping if len(self.overlapping) < len(self.experiments) else []

    @cached_property
    def counted(self) -> list[ExperimentResults]:
        """The experiments that count where several are summed up."""
        return [one for one in self.experiments if one.name not in self.aside]

    @cached_property
    def counted_curves(self) -> list[Curves]:
        """The learning curves of these."""
        return [one for one in self.curves if one.name not in self.aside]

    def marked(self, name: str) -> str:
        """An experiment's name as tables show it, with a mark where images overlap."""
        return f"{name} {OVERLAP}" if name in self.overlapping else name

    @cached_property
    def verdict(self) -> Verdict:
        """Whether a rule did better, and how sure that is."""
        result = verdict(self.counted_curves)
        return replace(result, sentences=[*self.left_out, *result.sentences])

    @property
    def left_out(self) -> list[str]:
        """What is not in the numbers over several experiments, in a sentence; none where all is."""
        if not self.aside:
            return []
        verb = "is" if len(self.aside) == 1 else "are"
        return [
            f"{join_names(self.aside)} {verb} not counted here: the encoder was trained on images that "
            "overlap with theirs."
        ]

    @property
    def learner(self) -> str:
        """What learned: "network", "regression", or "model" where some are one and some the other."""
        kinds = {"regression" if row.model == "linear" else "network" for row in self.rows}
        return kinds.pop() if len(kinds) == 1 else "model"

    @cached_property
    def bare(self) -> list[str]:
        """Experiments of which there are rows alone: no store among the sources."""
        of_stores = {store.name for store in self.stores}
        return [one.name for one in self.experiments if one.name not in of_stores]

    @cached_property
    def seconds(self) -> dict[str, Seconds]:
        """By experiment and rule, the stages of every acquisition that was timed."""
        timed = {
            (store.name, record.strategy, record.seed, record.round): dict(record.seconds)
            for store in self.stores
            for record in store.records
            if len(record.picks) and record.seconds
        }  # a round that two stores have counts once
        seconds: dict[str, Seconds] = {}
        for (name, rule, *_), stages in timed.items():
            seconds.setdefault(name, {}).setdefault(rule, []).append(stages)
        return seconds

    @cached_property
    def figures(self) -> dict[str, LazyFigure]:
        """Every figure there can be, by name."""
        return dict(figures(self.experiments, self.suite, self.seconds, self.aside))

    def picture(self, name: str, alt: str, caption: str = "") -> Picture:
        """The figure of that name as a part of the page; `alt` says in words what it shows."""
        return Picture(name, self.figures[name], alt, caption)

    def of_seeds(self, seeds: Collection[int]) -> Facts:
        """The runs of some seeds.

        Raises:
            StoreError: where there are none.
        """
        rows = [row for row in self.rows if row.seed in seeds]
        if not rows:
            there = seed_ranges(row.seed for row in self.rows)
            raise StoreError(f"no run has the seeds {seed_ranges(seeds)}; there are {there}")
        return replace(self, rows=rows, stores=[store.of_seeds(seeds) for store in self.stores])


def read(paths: PathLike | Iterable[PathLike], suite: Suite = PLAIN) -> Facts:
    """The rows and stores at `paths`: stores, exports, or folders of them.

    Args:
        suite: whose rules and experiments come first, and whose figures are drawn.
    """
    places = export.listed(paths)
    stores = [_store(path) for path in export.stores(places)]
    return Facts([str(path) for path in places], export.table(places), stores, suite)


def _store(path: Path) -> StoreFacts:
    with ResultStore.read(path) as store:
        return StoreFacts(
            path,
            store.spec,
            store.info,
            store.machines(),
            store.sweep_results(),
            store.progress(),
            store.rounds(),
            store.facts,
        )
