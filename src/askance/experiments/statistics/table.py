"""From rows to arrays: one experiment as accuracies by method, seed and round.

Shapes: M methods, S seeds, T rounds, P = M(M − 1)/2 pairs, E experiments; NaN where a run has no such
round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from askance.errors import InputError
from askance.experiments.formats import ResultRow

Floats = NDArray[np.float64]

BASELINE = "random"


@dataclass(frozen=True, eq=False)
class ExperimentResults:
    """Every round of every run of one experiment.

    Args:
        methods: M labels of rules, in the order in which they are shown.
        seeds: S seeds that any method has.
        rounds: T rounds that any run has, rising.
        labels_MST: size of the labelled set, NaN where there is no such round.
        accuracy_MST: test accuracy, NaN likewise.
        flagged_MST: 1 where the network counts as untrained, 0 where it trained, NaN where neither was
            recorded; None where it was recorded nowhere.
    """

    name: str
    dataset: str
    model: str
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    rounds: tuple[int, ...]
    labels_MST: Floats
    accuracy_MST: Floats
    flagged_MST: Floats | None = None

    def only(self, methods: Collection[str]) -> ExperimentResults:
        """The same with some methods alone; those it has not are passed over."""
        kept = [i for i, method in enumerate(self.methods) if method in methods]
        return self.part(methods=kept)

    def of_seeds(self, seeds: Collection[int]) -> ExperimentResults:
        """The same with some seeds alone; those it has not are passed over."""
        return self.part(seeds=[i for i, seed in enumerate(self.seeds) if seed in seeds])

    def part(
        self,
        methods: Sequence[int] | None = None,
        seeds: Sequence[int] | None = None,
        rounds: Sequence[int] | None = None,
    ) -> ExperimentResults:
        """Some positions along each axis, all where none are given."""
        axes = zip((methods, seeds, rounds), self.accuracy_MST.shape, strict=True)
        m, s, t = (list(range(size) if at is None else at) for at, size in axes)
        here = np.ix_(m, s, t)
        return replace(
            self,
            methods=tuple(self.methods[i] for i in m),
            seeds=tuple(self.seeds[i] for i in s),
            rounds=tuple(self.rounds[i] for i in t),
            labels_MST=self.labels_MST[here],
            accuracy_MST=self.accuracy_MST[here],
            flagged_MST=None if self.flagged_MST is None else self.flagged_MST[here],
        )

    def index(self, method: str) -> int:
        """The position of a method; an error names those there are."""
        if method not in self.methods:
            raise InputError(f"{self.name} has no {method!r}; it has {', '.join(self.methods)}")
        return self.methods.index(method)


def experiments(
    rows: Iterable[ResultRow], first: Sequence[str] = (BASELINE,)
) -> list[ExperimentResults]:
    """The experiments of a table, by name. The rules of `first` come first, then the others by name."""
    by_name: dict[str, list[ResultRow]] = {}
    for row in rows:
        by_name.setdefault(row.experiment, []).append(row)
    return [_experiment(by_name[name], first) for name in sorted(by_name)]


def methods_of(results: Iterable[ExperimentResults]) -> tuple[str, ...]:
    """Every method of some experiments, in the order in which they come."""
    return tuple(dict.fromkeys(method for one in results for method in one.methods))


def in_order(methods: Iterable[str], first: Sequence[str] = (BASELINE,)) -> tuple[str, ...]:
    """The methods that are in `first`, in its order, then the others by name."""
    names = set(methods)
    return (*(m for m in first if m in names), *sorted(names - set(first)))


def _experiment(rows: list[ResultRow], first: Sequence[str]) -> ExperimentResults:
    methods = in_order((row.strategy for row in rows), first)
    seeds, rounds = sorted({row.seed for row in rows}), sorted({row.round for row in rows})
    places = [{key: i for i, key in enumerate(keys)} for keys in (methods, seeds, rounds)]
    labels = np.full((len(methods), len(seeds), len(rounds)), np.nan)
    accuracy, flagged = labels.copy(), labels.copy()
    for row in rows:
        at = places[0][row.strategy], places[1][row.seed], places[2][row.round]
        labels[at], accuracy[at] = row.labels, row.accuracy
        flagged[at] = np.nan if row.flagged is None else row.flagged
    return ExperimentResults(
        rows[0].experiment,
        rows[0].dataset,
        rows[0].model,
        methods,
        tuple(seeds),
        tuple(rounds),
        labels,
        accuracy,
        None if np.isnan(flagged).all() else flagged,
    )
