"""A store's runs at a glance: one line a rule, best first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askance.experiments.formats import ResultRow
from askance.experiments.statistics.curves import areas, labels_to
from askance.experiments.statistics.table import BASELINE


@dataclass(frozen=True)
class Rank:
    """How a rule did in one experiment.

    Args:
        strategy: its label.
        seeds: how many runs it is the mean of.
        mean_accuracy: the area under the budget curve, divided by the labels spent, over seeds.
        spread: standard deviation of that over seeds; None with one seed.
        final_accuracy: of the last round, over seeds.
        labels_to_match: with how many labels the mean curve first is where random's ends, between
            rounds by a straight line; None where it never is, or random did not run.
    """

    strategy: str
    seeds: int
    mean_accuracy: float
    spread: float | None
    final_accuracy: float
    labels_to_match: float | None


def ranking(rows: Iterable[ResultRow]) -> list[Rank]:
    """The rules of one experiment by mean accuracy, from rounds that all of their seeds have."""
    curves: dict[str, dict[int, dict[int, ResultRow]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        curves[row.strategy][row.seed][row.round] = row
    tables = {strategy: _table(list(seeds.values())) for strategy, seeds in curves.items()}
    goal = np.inf
    if BASELINE in tables:
        goal = tables[BASELINE][1].mean(axis=0)[-1]
    ranks = []
    for strategy, (labels_T, accuracies_ST) in tables.items():
        means_S = areas(np.broadcast_to(labels_T, accuracies_ST.shape), accuracies_ST)
        curve_T = accuracies_ST.mean(axis=0)
        needs = float(labels_to(labels_T, curve_T, np.asarray(goal)))
        ranks.append(
            Rank(
                strategy=strategy,
                seeds=len(means_S),
                mean_accuracy=float(means_S.mean()),
                spread=float(means_S.std(ddof=1)) if len(means_S) > 1 else None,
                final_accuracy=float(curve_T[-1]),
                labels_to_match=needs if np.isfinite(needs) else None,
            )
        )
    return sorted(ranks, key=lambda rank: (-rank.mean_accuracy, rank.strategy))


def _table(runs: list[dict[int, ResultRow]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(labels, accuracies) over the rounds all runs have: (T,) mean over seeds, (S, T)."""
    rounds = sorted(set.intersection(*(set(run) for run in runs)))
    labels = np.array([[run[r].labels for r in rounds] for run in runs], dtype=np.float64)
    accuracies = np.array([[run[r].accuracy for r in rounds] for run in runs])
    return labels.mean(axis=0), accuracies
