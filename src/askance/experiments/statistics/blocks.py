"""Penalty matrices of five seeds each: with more seeds, a test sees smaller differences.

An experiment of twenty seeds is four blocks of five in rising order. Each gives a matrix with the power
of five seeds, and their mean is the experiment's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from askance.experiments.statistics.paired import ALPHA, pairwise
from askance.experiments.statistics.penalty import Penalty, total
from askance.experiments.statistics.stages import Rounds, is_enough, positions
from askance.experiments.statistics.table import ExperimentResults, Floats
from askance.experiments.statistics.untrained import left_out

BLOCK = 5


def whole(one: ExperimentResults) -> ExperimentResults:
    """The seeds of which every rule has every round."""
    there_S = np.isfinite(one.accuracy_MST).all(axis=(0, 2))
    return one.part(seeds=np.flatnonzero(there_S).tolist())


def blocks(one: ExperimentResults, size: int = BLOCK) -> list[ExperimentResults]:
    """The whole seeds in rising order, so many at a time; those left over are in no block."""
    complete = whole(one)
    order = np.argsort(complete.seeds).tolist()
    return [
        complete.part(seeds=order[start : start + size])
        for start in range(0, len(order) - size + 1, size)
    ]


def shares(
    one: ExperimentResults,
    stage: Rounds = "all",
    *,
    first: int = 1,
    flagged: bool = False,
    alpha: float = ALPHA,
    corrected: bool = True,
) -> Floats | None:
    """(M, M): in what share of a stage's rounds i significantly beats j; None with under half of them.

    Args:
        first: the first round that is counted.
        flagged: whether a round in which a network did not train is counted all the same.
        alpha, corrected: which tests are wins, as in `Pairs.wins`.
    """
    at = positions(one.rounds, stage, first)
    out_T: NDArray[np.bool_] = np.asarray(left_out(one, keep=flagged).any(axis=0))
    kept = [i for i in at if not out_T[i]]
    if not is_enough(len(kept), len(at)) or len(one.seeds) < 2:
        return None
    pairs = pairwise(np.moveaxis(one.accuracy_MST[:, :, kept], 2, 0))
    return np.asarray(pairs.wins(len(one.methods), alpha, corrected=corrected).mean(axis=0))


def block_shares(
    one: ExperimentResults,
    stage: Rounds = "all",
    *,
    first: int = 1,
    flagged: bool = False,
    size: int = BLOCK,
    alpha: float = ALPHA,
    corrected: bool = True,
) -> tuple[Floats | None, int]:
    """The mean (M, M) over the blocks of an experiment that count, and how many count."""
    each = [
        shares(part, stage, first=first, flagged=flagged, alpha=alpha, corrected=corrected)
        for part in blocks(one, size)
    ]
    there = [share for share in each if share is not None]
    return (np.mean(there, axis=0) if there else None), len(there)


def block_penalty(
    results: Sequence[ExperimentResults],
    stage: Rounds = "all",
    *,
    methods: Sequence[str] | None = None,
) -> Penalty:
    """The matrix over some experiments, each the mean of its blocks; those without one are named."""
    return total(results, methods, lambda one: _of_blocks(one, stage))


def _of_blocks(one: ExperimentResults, stage: Rounds) -> Penalty:
    share, count = block_shares(one, stage)
    size = len(one.methods)
    tested = np.ones((size, size), dtype=np.int64) - np.eye(size, dtype=np.int64)
    if share is None:
        left_out = (f"{one.name}: no five seeds with half of the rounds",)
        return Penalty(one.methods, np.zeros((size, size)), 0 * tested, 0, 0, left_out)
    rounds = count * len(positions(one.rounds, stage))
    return Penalty(one.methods, share, tested, rounds, 0, ())
