"""The pairwise penalty matrix, and the loss scores.

P[i, j] is how often i significantly beats j: in every experiment and round a paired t-test on the
seeds' accuracies for every pair, Benjamini–Hochberg over the round's pairs, a win where adjusted p <
0.05. A win adds 1/n_e, n_e the rounds counted in that experiment, so that an experiment adds at most 1.
Round 0 is before any acquisition, the same for all methods, and is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askance.experiments.statistics.paired import ALPHA, Pairs, pairwise
from askance.experiments.statistics.stages import Stage, positions
from askance.experiments.statistics.suite import PLAIN, Suite
from askance.experiments.statistics.table import ExperimentResults, Floats, in_order, methods_of


@dataclass(frozen=True, eq=False)
class Penalty:
    """One view of the penalty matrix.

    Args:
        methods: M labels.
        matrix_MM: P; row i's wins over column j.
        experiments_MM: in how many experiments i and j were tested at all: the most P[i, j] could be.
        rounds: rounds counted, over all experiments.
        infinite: wins that rest on a difference that was the same for every seed.
        left_out: in words, what was not tested.
    """

    methods: tuple[str, ...]
    matrix_MM: Floats
    experiments_MM: NDArray[np.int64]
    rounds: int
    infinite: int
    left_out: tuple[str, ...]

    @property
    def loss_M(self) -> Floats:
        """The mean of each column, its zero diagonal included: how often a method is beaten."""
        return self.matrix_MM.mean(axis=0) if len(self.methods) else np.empty(0)


def penalty(
    results: Sequence[ExperimentResults],
    stage: Stage = "all",
    *,
    methods: Sequence[str] | None = None,
    alpha: float = ALPHA,
) -> Penalty:
    """The matrix over some experiments.

    Args:
        stage: "all" rounds from 1 on, "early" (1 to 3) or "late" (the last three that were counted).
        methods: those compared, in their order, and no others are in the correction; all of them when
            left out.
    """
    return total(results, methods, lambda one: _of_one(one, stage, alpha))


def total(
    results: Sequence[ExperimentResults],
    methods: Sequence[str] | None,
    of_one: Callable[[ExperimentResults], Penalty],
) -> Penalty:
    """The sum of each experiment's matrix, over all methods or over those that are named."""
    present = methods_of(results)
    names = present if methods is None else tuple(m for m in methods if m in present)
    matrix = np.zeros((len(names), len(names)))
    experiments_MM = np.zeros((len(names), len(names)), dtype=np.int64)
    parts = [of_one(one.only(names)) for one in results]
    for part in parts:
        at = np.ix_(*[[names.index(m) for m in part.methods]] * 2)
        matrix[at] += part.matrix_MM
        experiments_MM[at] += part.experiments_MM
    return Penalty(
        names,
        matrix,
        experiments_MM,
        sum(part.rounds for part in parts),
        sum(part.infinite for part in parts),
        tuple(words for part in parts for words in part.left_out),
    )


By = Literal["rounds", "backbone", "dataset"]
BYS: tuple[By, ...] = get_args(By)
STAGES: dict[str, Stage] = {
    "All rounds": "all",
    "Early: rounds 1–3": "early",
    "Late: last three rounds": "late",
}


def views(
    results: Sequence[ExperimentResults],
    by: By = "rounds",
    suite: Suite = PLAIN,
    *,
    methods: Sequence[str] | None = None,
    alpha: float = ALPHA,
) -> dict[str, Penalty]:
    """The matrices of one figure, by title: all, early and late rounds; or one a backbone, or one a
    dataset, over all rounds. The suite's backbones and datasets come first."""
    if by == "rounds":
        return {
            title: penalty(results, stage, methods=methods, alpha=alpha)
            for title, stage in STAGES.items()
        }
    groups: dict[str, list[ExperimentResults]] = {}
    for one in results:
        groups.setdefault(one.model if by == "backbone" else one.dataset, []).append(one)
    first = suite.backbones if by == "backbone" else suite.datasets
    return {
        name: penalty(groups[name], methods=methods, alpha=alpha)
        for name in in_order(groups, first)
    }


def wins(one: ExperimentResults, alpha: float = ALPHA) -> tuple[tuple[int, ...], NDArray[np.bool_]]:
    """The rounds counted in an experiment, and (T, M, M) whether i beats j in each."""
    at, pairs = _tests(one)
    return tuple(one.rounds[i] for i in at), pairs.wins(len(one.methods), alpha)


def _tests(one: ExperimentResults) -> tuple[NDArray[np.int64], Pairs]:
    """Indices of the rounds ≥ 1 in which any pair was tested, and their tests."""
    later = np.array([i for i, r in enumerate(one.rounds) if r >= 1], dtype=np.int64)
    pairs = pairwise(np.moveaxis(one.accuracy_MST[:, :, later], 2, 0))
    some = np.flatnonzero(np.isfinite(pairs.p).any(axis=-1))
    return later[some], pairs.at(some)


def _of_one(one: ExperimentResults, stage: Stage, alpha: float) -> Penalty:
    """The shares of rounds won in one experiment."""
    size = len(one.methods)
    at, pairs = _tests(one)
    rounds = [one.rounds[i] for i in at]
    here = positions(rounds, stage)
    pairs = pairs.at(here)
    tested_TP = np.isfinite(pairs.p)
    tested = np.zeros((size, size), dtype=np.int64)
    tested[pairs.first, pairs.second] = tested[pairs.second, pairs.first] = tested_TP.any(axis=0)
    missing = []
    for pair in np.flatnonzero(~tested_TP.all(axis=0)):
        names = f"{one.methods[pairs.first[pair]]} and {one.methods[pairs.second[pair]]}"
        gaps = [str(rounds[here[t]]) for t in np.flatnonzero(~tested_TP[:, pair])]
        missing.append(
            f"{one.name}: {names} have fewer than two seeds in common in round "
            f"{', '.join(gaps)} and were not tested there"
        )
    if not here and size > 1:
        missing.append(f"{one.name}: no round from 1 on could be tested")
    share = pairs.wins(size, alpha).mean(axis=0) if here else np.zeros((size, size))
    infinite = int((pairs.infinite & (pairs.adjusted < alpha)).sum())
    return Penalty(one.methods, share, tested, len(here), infinite, tuple(missing))
