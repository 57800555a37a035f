"""The numbers a claim is judged by: each with an interval, over experiments or over seeds.

Shapes as in `bench.stats`: M rules, S seeds, T rounds, E experiments, B resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

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


def within(values_N: Floats, margin: float) -> Interval | None:
    """A margin less the size of a mean: how far two rules are from being so far apart."""
    if not len(values_N):
        return None
    return _resampled(values_N, lambda v_BN: margin - np.abs(v_BN.mean(axis=-1)))


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
    """The pair that speaks most against the first rule of each being above the second.

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
    values_NM: Floats, names: Sequence[str], pairs: Sequence[tuple[str, str]], limit: float = 0.0
) -> Pair | None:
    """Whether in every pair of rules the first is above the second in the mean over N rows.

    They are where every pair's interval lies above the limit, and so does that of the pair returned.
    They are not where one lies below; then that pair is returned. (The lowest of some less the highest
    of others would not do: of rules that are all alike it is below 0 in every resample.)
    """
    if not len(values_NM):
        return None
    level = 1 - (1 - LEVEL) / len(pairs)
    found = []
    for one, other in pairs:
        difference_N = values_NM[:, names.index(one)] - values_NM[:, names.index(other)]
        found.append(Pair(one, other, mean_interval(difference_N, level), len(pairs)))
    beaten = min(found, key=lambda pair: pair.found.high)
    return beaten if beaten.found.high < limit else min(found, key=lambda pair: pair.found.low)


def worst_told(
    values_NM: Floats, names: Sequence[str], pairs: Sequence[tuple[str, str]], limit: float = 0.0
) -> tuple[str, Interval | None]:
    """The worst pair in words, and its interval; none where rules or rows are missing."""
    there = {rule for pair in pairs for rule in pair} <= set(names)
    pair = worst(values_NM, names, pairs, limit) if there else None
    if pair is None:
        return "every rule of one kind less every rule of the other", None
    of = f", the worst of {pair.pairs} pairs" if pair.pairs > 1 else ""
    return f"{pair.upper} less {pair.lower}{of}", pair.found


def others(*rules: str) -> tuple[str, ...]:
    """The paper's other rules."""
    return tuple(rule for rule in PAPER if rule not in rules)


def pairs_of(upper: Sequence[str], lower: Sequence[str]) -> list[tuple[str, str]]:
    """Every rule of some with every rule of others."""
    return list(product(upper, lower))


def accuracies(one: Experiment, stage: Stage = "all") -> Floats:
    """(S, M): mean accuracy over the labels spent, or over early or late rounds, of whole seeds."""
    if stage == "all":
        found = curves(one).area_MS.T
    else:
        later = [i for i, r in enumerate(one.rounds) if r >= 1]
        at = [i for i in later if one.rounds[i] <= EDGE] if stage == "early" else later[-EDGE:]
        found = one.accuracy_MST[:, :, at].mean(axis=2).T
    return found[np.isfinite(found).all(axis=1)]


def falls(one: Experiment) -> Floats:
    """(S, M): the most that accuracy falls below what it had reached, of whole seeds."""
    accuracy_SMT = one.accuracy_MST.swapaxes(0, 1)
    whole_SMT = accuracy_SMT[np.isfinite(accuracy_SMT).all(axis=(1, 2))]
    return (np.maximum.accumulate(whole_SMT, axis=2) - whole_SMT).max(axis=2, initial=0.0)


def converging(one: Experiment) -> Interval | None:
    """How much closer the rules are late than early: best less worst mean accuracy, of each."""
    both_SM2 = _early_and_late(one)
    if len(one.methods) < 2 or not len(both_SM2):
        return None
    return _resampled(both_SM2, lambda a_BSM2: -np.diff(_width(a_BSM2))[..., 0])


def narrowing(one: Experiment, rule: str) -> Interval | None:
    """How far a rule is behind the mean of the others early, less how far late."""
    both_SM2 = _early_and_late(one)
    if len(one.methods) < 2 or not len(both_SM2):
        return None
    at = one.index(rule)
    behind_S2 = np.delete(both_SM2, at, axis=1).mean(axis=1) - both_SM2[:, at]
    return mean_interval(behind_S2[:, 0] - behind_S2[:, 1])


def _early_and_late(one: Experiment) -> Floats:
    """(S, M, 2) accuracies of the seeds that have both; none where some have only one of them."""
    early_SM, late_SM = accuracies(one, "early"), accuracies(one, "late")
    if len(early_SM) != len(late_SM):
        early_SM = late_SM = early_SM[:0]
    return np.stack([early_SM, late_SM], axis=-1)


def _width(a_BSM2: Floats) -> Floats:
    return np.ptp(a_BSM2.mean(axis=-3), axis=-2)


def _resampled(rows: Floats, statistic: Callable[[Floats], Floats]) -> Interval:
    """A statistic of rows (n, …), with the interval of its resamples."""
    n = len(rows)
    drawn: NDArray[np.int64] = resamples(n)
    return interval(float(statistic(rows)), statistic(rows[drawn]), n)
