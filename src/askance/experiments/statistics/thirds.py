"""What a rule gains over another in each third of the budget: early, in between, late.

Shapes: S seeds, T rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from askance.experiments.statistics.clusters import clustered
from askance.experiments.statistics.resample import Interval
from askance.experiments.statistics.stages import is_enough
from askance.experiments.statistics.table import BASELINE, ExperimentResults, Floats
from askance.experiments.statistics.untrained import leave_out

NAMES = ("all rounds", "first third", "middle third", "last third")


def thirds(rounds: Sequence[int]) -> list[list[int]]:
    """Where the rounds of each third are; the earlier ones are longer where it cannot be even.

    Round 0 comes before any query and is in none.

    Example:
        >>> thirds([0, 1, 2, 3, 4])
        [[1, 2], [3], [4]]
    """
    counted = [place for place, number in enumerate(rounds) if number > 0]
    return [part.tolist() for part in np.array_split(np.array(counted, dtype=np.int64), 3)]


def gains(one: ExperimentResults, rule: str, other: str = BASELINE) -> list[Interval | None]:
    """Mean accuracy of `rule` less that of `other`: in all rounds, and in each third; see `NAMES`.

    With Student's 95% interval over the seeds that both rules have. A seed counts where at least half
    of the rounds are there and its networks trained; None where no seed counts.
    """
    found: list[Interval | None] = []
    for gains_S in seed_gains(one, rule, other):
        means_S = gains_S[np.isfinite(gains_S)]
        found.append(clustered(means_S, range(len(means_S))) if len(means_S) else None)
    return found


def seed_gains(one: ExperimentResults, rule: str, other: str = BASELINE) -> list[Floats]:
    """The same for each seed, (S,) a stage; NaN for a seed that does not count."""
    parts = thirds(one.rounds)
    trained = leave_out(one)
    a_ST, b_ST = (trained.accuracy_MST[one.methods.index(name)] for name in (rule, other))
    difference_ST = a_ST - b_ST
    found: list[Floats] = []
    for places in [[place for part in parts for place in part], *parts]:
        gains_S = np.full(len(one.seeds), np.nan)
        for seed, row_T in enumerate(difference_ST[:, places]):
            if is_enough(int(np.isfinite(row_T).sum()), len(places)):
                gains_S[seed] = np.nanmean(row_T)
        found.append(gains_S)
    return found


def mean_gains(
    many: Sequence[ExperimentResults], rule: str, other: str = BASELINE
) -> list[Interval | None]:
    """The same in the mean over experiments, whose datasets are the units; all have both rules."""
    each = [gains(one, rule, other) for one in many]
    found: list[Interval | None] = []
    for stage in zip(*each, strict=True):
        there = [(gain.value, one.dataset) for gain, one in zip(stage, many, strict=True) if gain]
        if len(there) < len(many):
            found.append(None)
            continue
        values, datasets = zip(*there, strict=True)
        found.append(clustered(np.array(values), datasets))
    return found
