"""The numbers a claim is judged by: each with an interval, over experiments or over seeds.

Shapes as in `bench.stats`: M rules, S seeds, T rounds, E experiments, B resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from askance.bench.stats.curves import Curves, Difference, curves, difference
from askance.bench.stats.penalty import EDGE, Stage, penalty
from askance.bench.stats.resample import LEVEL, Interval, interval, mean_interval, resamples
from askance.bench.stats.table import PAPER, Experiment, Floats


def differences(found: Sequence[Curves], rule: str, other: str) -> list[Difference]:
    """A rule's mean accuracy less another's in every experiment that has both, over its seeds."""
    both = [one for one in found if {rule, other} <= set(one.methods)]
    return [d for d in (difference(one, rule, other) for one in both) if d.mean.n]


def over_experiments(each: Sequence[Difference]) -> Interval | None:
    """The mean of differences, one an experiment: an experiment is one observation."""
    return mean_interval(np.array([d.mean.value for d in each])) if each else None


def within(each: Sequence[Difference], margin: float) -> Interval | None:
    """A margin less the size of the mean difference: how far two rules are from being so far apart."""
    if not each:
        return None
    values_E1 = np.array([[d.mean.value] for d in each])
    return _resampled(values_E1, lambda v_BE1: margin - np.abs(v_BE1.mean(axis=-2))[..., 0])


def student(values_N: Floats, level: float = LEVEL) -> Interval:
    """A mean with Student's interval, for numbers so few that a bootstrap knows too little of them."""
    n, value = len(values_N), float(values_N.mean())
    if n < 2:
        return Interval(value, np.nan, np.nan, n, level)
    width = float(stats.t.ppf((1 + level) / 2, n - 1) * values_N.std(ddof=1) / np.sqrt(n))
    return Interval(value, value - width, value + width, n, level)


def losses(found: Sequence[Experiment], stage: Stage = "all") -> tuple[list[str], Floats]:
    """(names, (E, M) loss scores) of the experiments that have all of the paper's rules, in its order.

    A loss score of several experiments is the sum of theirs.
    """
    whole = [one for one in found if set(PAPER) <= set(one.methods)]
    rows = [penalty([one], stage, methods=PAPER).loss_M for one in whole]
    return [one.name for one in whole], np.array(rows).reshape(-1, len(PAPER))


@dataclass(frozen=True)
class Pair:
    """The pair that speaks most against some rules being above others, of all pairs there are.

    Args:
        found: the upper rule's less the lower one's. Its interval is widened for the number of pairs
            (Bonferroni), so that it lies below 0 by chance no more often than that of a single pair.
        pairs: how many there are.
    """

    upper: str
    lower: str
    found: Interval
    pairs: int


def worst(
    values_NM: Floats, names: Sequence[str], upper: Collection[str], lower: Collection[str]
) -> Pair | None:
    """Whether each of some rules is above each of some others in the mean over N rows.

    They are where every pair's interval lies above 0, and so does that of the pair returned. They are
    not where one lies below; then that pair is returned. (The lowest of some less the highest of others
    would not do: of rules that are all alike it is below 0 in every resample.)
    """
    if not len(values_NM):
        return None
    count = len(upper) * len(lower)
    level = 1 - (1 - LEVEL) / count
    found = []
    for one in upper:
        for other in lower:
            difference_N = values_NM[:, names.index(one)] - values_NM[:, names.index(other)]
            found.append(Pair(one, other, mean_interval(difference_N, level), count))
    beaten = min(found, key=lambda pair: pair.found.high)
    return beaten if beaten.found.high < 0 else min(found, key=lambda pair: pair.found.low)


def accuracies(one: Experiment, stage: Stage = "all") -> Floats:
    """(S, M): mean accuracy over the labels spent, or over early or late rounds, of whole seeds."""
    if stage == "all":
        found = curves(one).area_MS.T
    else:
        later = [i for i, r in enumerate(one.rounds) if r >= 1]
        at = [i for i in later if one.rounds[i] <= EDGE] if stage == "early" else later[-EDGE:]
        found = one.accuracy_MST[:, :, at].mean(axis=2).T
    return found[np.isfinite(found).all(axis=1)]


def converging(one: Experiment) -> Interval | None:
    """How much closer the paper's rules are late than early: best less worst mean accuracy, of each."""
    part = one.only(PAPER)
    early_SM, late_SM = accuracies(part, "early"), accuracies(part, "late")
    if len(part.methods) < 2 or not len(early_SM) or len(early_SM) != len(late_SM):
        return None
    return _resampled(
        np.stack([early_SM, late_SM], axis=-1), lambda a_BSM2: -np.diff(_width(a_BSM2))[..., 0]
    )


def _width(a_BSM2: Floats) -> Floats:
    return np.ptp(a_BSM2.mean(axis=-3), axis=-2)


def _resampled(rows: Floats, statistic: Callable[[Floats], Floats]) -> Interval:
    """A statistic of rows (n, …), with the interval of its resamples."""
    n = len(rows)
    drawn: NDArray[np.int64] = resamples(n)
    return interval(float(statistic(rows)), statistic(rows[drawn]), n)
