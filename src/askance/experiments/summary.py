"""A store's runs at a glance: one line a rule, best first.

A round of a seed in which a network did not train is left out for all rules of that seed, as in a
report of the same store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from askance.experiments.formats import ResultRow
from askance.experiments.statistics.curves import areas, labels_to
from askance.experiments.statistics.stages import is_enough
from askance.experiments.statistics.table import BASELINE, ExperimentResults, Floats, experiments
from askance.experiments.statistics.untrained import flags


@dataclass(frozen=True)
class Rank:
    """How a rule did in one experiment.

    Args:
        strategy: its label.
        seeds: how many runs it is the mean of.
        mean_accuracy: the area under the budget curve, divided by the labels spent, over seeds; None
            where no seed has half of its rounds with networks that trained.
        spread: standard deviation of that over seeds; None with one seed.
        final_accuracy: of the last round, over seeds; None likewise.
        labels_to_match: with how many labels the mean curve first is where random's ends, between
            rounds by a straight line; None where it never is, or random did not run.
    """

    strategy: str
    seeds: int
    mean_accuracy: float | None
    spread: float | None
    final_accuracy: float | None
    labels_to_match: float | None


def ranking(rows: Iterable[ResultRow]) -> list[Rank]:
    """The rules of one experiment by mean accuracy, from rounds that all of their seeds have."""
    (one,) = experiments(rows)
    curves = {method: _curves(one, m) for m, method in enumerate(one.methods)}
    random_T = _mean_curve(*curves[BASELINE])[1] if BASELINE in curves else np.empty(0)
    goal = np.asarray(random_T[-1] if len(random_T) else np.inf)
    ranks = [_rank(strategy, *curve, goal) for strategy, curve in curves.items()]
    return sorted(ranks, key=lambda rank: (-(rank.mean_accuracy or 0), rank.strategy))


def _rank(strategy: str, labels_T: Floats, accuracy_ST: Floats, goal: Floats) -> Rank:
    if not accuracy_ST.size:
        return Rank(strategy, 0, None, None, None, None)
    means_S = areas(np.broadcast_to(labels_T, accuracy_ST.shape), accuracy_ST)
    ends_S = accuracy_ST[np.isfinite(accuracy_ST[:, -1]), -1]
    mean_labels_T, mean_T = _mean_curve(labels_T, accuracy_ST)
    needs = float(labels_to(mean_labels_T, mean_T, goal)) if len(mean_T) else np.inf
    return Rank(
        strategy=strategy,
        seeds=len(means_S),
        mean_accuracy=float(means_S.mean()),
        spread=float(means_S.std(ddof=1)) if len(means_S) > 1 else None,
        final_accuracy=float(ends_S.mean()) if len(ends_S) else None,
        labels_to_match=needs if np.isfinite(needs) else None,
    )


def left_out(rows: Iterable[ResultRow]) -> int:
    """How many rounds of seeds are left out, because a network did not train."""
    return sum(int(flags(one).sum()) for one in experiments(rows))


def _curves(one: ExperimentResults, method: int) -> tuple[Floats, Floats]:
    """Labels (T,) and accuracies (S, T): the rounds all seeds have, the seeds that keep half of them.

    NaN in the rounds of a seed in which a network of any rule did not train.
    """
    there_ST, out_ST = np.isfinite(one.accuracy_MST[method]), flags(one)
    seeds = np.flatnonzero(there_ST.any(axis=1))
    rounds = np.flatnonzero(there_ST[seeds].all(axis=0) & ~out_ST[seeds].all(axis=0))
    here = np.ix_(seeds, rounds)
    enough_S = [is_enough(n, len(rounds)) for n in (~out_ST[here]).sum(axis=1)]
    accuracy_ST = np.where(out_ST, np.nan, one.accuracy_MST[method])[here]
    labels_T = one.labels_MST[method][here].mean(axis=0)
    return labels_T, accuracy_ST[np.array(enough_S, dtype=bool)]


def _mean_curve(labels_T: Floats, accuracy_ST: Floats) -> tuple[Floats, Floats]:
    """Labels and mean accuracies of the rounds that count in all seeds; none where no seed counts."""
    counts_T = np.isfinite(accuracy_ST).all(axis=0)
    if not len(accuracy_ST):
        return np.empty(0), np.empty(0)
    return labels_T[counts_T], accuracy_ST[:, counts_T].mean(axis=0)
