"""A store's runs at a glance: one line a rule, best first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from askance.experiments.formats import ResultRow
from askance.experiments.statistics.curves import areas, labels_to
from askance.experiments.statistics.table import BASELINE, ExperimentResults, Floats, experiments


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
    (one,) = experiments(rows)
    curves = {method: _curves(one, m) for m, method in enumerate(one.methods)}
    goal = curves[BASELINE][1].mean(axis=0)[-1] if BASELINE in curves else np.inf
    ranks = []
    for strategy, (labels_T, accuracy_ST) in curves.items():
        means_S = areas(np.broadcast_to(labels_T, accuracy_ST.shape), accuracy_ST)
        curve_T = accuracy_ST.mean(axis=0)
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


def _curves(one: ExperimentResults, method: int) -> tuple[Floats, Floats]:
    """Labels (T,), the mean over seeds, and accuracies (S, T): of the rounds that all seeds have."""
    there_ST = np.isfinite(one.accuracy_MST[method])
    seeds = np.flatnonzero(there_ST.any(axis=1)).tolist()
    rounds = np.flatnonzero(there_ST[seeds].all(axis=0)).tolist()
    part = one.part([method], seeds, rounds)
    return part.labels_MST[0].mean(axis=0), part.accuracy_MST[0]
