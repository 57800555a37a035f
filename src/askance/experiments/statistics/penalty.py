"""The pairwise penalty matrix, and the loss scores.

P[i, j] is how often i significantly beats j: in every experiment and round a paired t-test on the
seeds' accuracies for every pair, Benjamini–Hochberg over the round's pairs, a win where adjusted p <
0.05. A win adds 1/n_e, n_e the rounds counted in that experiment, so that an experiment adds at most 1.
Round 0 is before any acquisition, the same for all methods, and is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askance.experiments.statistics.paired import ALPHA, Pairs, pairwise
from askance.experiments.statistics.suite import PLAIN, Suite
from askance.experiments.statistics.table import ExperimentResults, Floats, in_order, methods_of

Stage = Literal["all", "early", "late"]
EDGE = 3  # rounds that are early, and rounds that are late


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
    found: Sequence[ExperimentResults],
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
    present = methods_of(found)
    names = present if methods is None else tuple(m for m in methods if m in present)
    matrix = np.zeros((len(names), len(names)))
    experiments_MM = np.zeros((len(names), len(names)), dtype=np.int64)
    counted, infinite, left_out = 0, 0, []
    for one in found:
        part = one.only(names)
        at = np.ix_(*[[names.index(m) for m in part.methods]] * 2)
        share, tested, rounds, sure, missing = _of_one(part, stage, alpha)
        matrix[at] += share
        experiments_MM[at] += tested
        counted += rounds
        infinite += sure
        left_out += missing
    return Penalty(names, matrix, experiments_MM, counted, infinite, tuple(left_out))


By = Literal["rounds", "backbone", "dataset"]
BYS: tuple[By, ...] = get_args(By)
STAGES: dict[str, Stage] = {
    "All rounds": "all",
    "Early: rounds 1–3": "early",
    "Late: last three rounds": "late",
}


def views(
    found: Sequence[ExperimentResults],
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
            title: penalty(found, stage, methods=methods, alpha=alpha)
            for title, stage in STAGES.items()
        }
    groups: dict[str, list[ExperimentResults]] = {}
    for one in found:
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


def _of_one(
    one: ExperimentResults, stage: Stage, alpha: float
) -> tuple[Floats, NDArray[np.int64], int, int, list[str]]:
    """Shares of rounds won and pairs tested (M, M), rounds, wins without variance, what is left out."""
    size = len(one.methods)
    at, pairs = _tests(one)
    here = [i for i, t in enumerate(at) if stage != "early" or one.rounds[t] <= EDGE]
    here = here[-EDGE:] if stage == "late" else here
    pairs = pairs.at(here)
    tested_TP = np.isfinite(pairs.p)
    tested = np.zeros((size, size), dtype=np.int64)
    tested[pairs.first, pairs.second] = tested[pairs.second, pairs.first] = tested_TP.any(axis=0)
    missing = []
    for pair in np.flatnonzero(~tested_TP.all(axis=0)):
        names = f"{one.methods[pairs.first[pair]]} and {one.methods[pairs.second[pair]]}"
        rounds = [str(one.rounds[at[here[t]]]) for t in np.flatnonzero(~tested_TP[:, pair])]
        missing.append(
            f"{one.name}: {names} have fewer than two seeds in common in round "
            f"{', '.join(rounds)} and were not tested there"
        )
    if not here:
        if size > 1:
            missing.append(f"{one.name}: no round from 1 on could be tested")
        return np.zeros((size, size)), tested, 0, 0, missing
    share = pairs.wins(size, alpha).mean(axis=0)
    sure = int((pairs.infinite & (pairs.adjusted < alpha)).sum())
    return share, tested, len(here), sure, missing
