"""Rounds in which a network did not train: left out for every rule of the seed.

A rule is compared with others on the same seed. Where one of their networks did not train, the round
says nothing of the rules; leaving out that rule's run alone would compare different rounds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from askance.experiments.statistics.table import ExperimentResults


def flags(one: ExperimentResults) -> NDArray[np.bool_]:
    """(S, T): whether any rule's network is flagged. What was not recorded is not flagged."""
    if one.flagged_MST is None:
        return np.zeros(one.accuracy_MST.shape[1:], dtype=bool)
    return np.asarray((one.flagged_MST == 1).any(axis=0))


def left_out(one: ExperimentResults, *, keep: bool = False) -> NDArray[np.bool_]:
    """(S, T): the rounds that do not count: those that are flagged, or none where they are kept."""
    out_ST = flags(one)
    return np.zeros_like(out_ST) if keep else out_ST


def shared(one: ExperimentResults) -> ExperimentResults:
    """The same with a flag of one rule on all rules of that seed and round.

    So that a part of the rules leaves out what all of them do.
    """
    if one.flagged_MST is None:
        return one
    return replace(one, flagged_MST=np.where(flags(one), 1.0, one.flagged_MST))


def leave_out(one: ExperimentResults) -> ExperimentResults:
    """The same with NaN, for every rule, where any rule of the seed is flagged; the flag is on all."""
    out = flags(one)
    return replace(
        shared(one),
        labels_MST=np.where(out, np.nan, one.labels_MST),
        accuracy_MST=np.where(out, np.nan, one.accuracy_MST),
    )


def is_recorded(one: ExperimentResults) -> bool:
    """Whether every round there is has been recorded as trained or not."""
    there = np.isfinite(one.accuracy_MST)
    return one.flagged_MST is not None and bool(np.isfinite(one.flagged_MST[there]).all())
