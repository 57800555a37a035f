"""The numbers a claim is judged by: each with an interval, over experiments or over seeds.

Shapes: M rules, S seeds, T rounds, E experiments, B resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from askance.experiments.statistics import clusters
from askance.experiments.statistics.blocks import block_shares, whole
from askance.experiments.statistics.curves import Difference
from askance.experiments.statistics.resample import LEVEL, Interval
from askance.experiments.statistics.stages import Rounds, Stage, is_enough, positions
from askance.experiments.statistics.table import ExperimentResults, Floats
from askance.experiments.statistics.untrained import left_out
from askance.paper.claims.case import PLAIN, Case, Reading
from askance.paper.suite import RULES


def over_experiments(each: Sequence[Difference], datasets: Sequence[str]) -> Interval | None:
    """The mean of differences, one an experiment; `datasets` says of which dataset each is."""
    return clusters.clustered(np.array([d.mean.value for d in each]), datasets) if each else None


def within(mean: Interval, margin: float) -> Interval:
    """A margin less the size of a mean: how far two rules are from being so far apart."""
    nearest, farthest = sorted((abs(mean.low), abs(mean.high)))
    if mean.low <= 0 <= mean.high:
        nearest = 0.0
    return replace(
        mean, value=margin - abs(mean.value), low=margin - farthest, high=margin - nearest
    )


def student(values_N: Floats, level: float = LEVEL) -> Interval:
    """A mean with Student's interval, for numbers as few as seeds.

    A bootstrap never leaves the range of what was seen, and five numbers around 0 are all below it once
    in 32: no level, however high, makes its interval lie below 0 more seldom.
    """
    return clusters.clustered(values_N, range(len(values_N)), level)


def slope(x_N: Floats, y_N: Floats) -> Interval:
    """How much y grows with x, by least squares, with Student's interval."""
    n = len(x_N)
    if n < 3:
        return Interval(np.nan, np.nan, np.nan, n)
    line = stats.linregress(x_N, y_N)
    width = float(stats.t.ppf((1 + LEVEL) / 2, n - 2) * line.stderr)
    return Interval(float(line.slope), line.slope - width, line.slope + width, n)


def seeds_of(case: Case, stage: Rounds, *rules: str) -> dict[str, Floats]:
    """By experiment (S, M) accuracies: of those in which enough seeds have all of these rules."""
    each = {}
    for one in case.experiments:
        part = one.only(rules)
        values_SM = accuracies(part, stage, case.reading)
        if len(part.methods) == len(rules) and len(values_SM) >= case.reading.least_seeds:
            each[one.name] = values_SM[:, [part.index(rule) for rule in rules]]
    return each


def losses(case: Case, stage: Stage = "all") -> tuple[list[str], Floats]:
    """(names, (E, M) loss scores) of the experiments in which the paper's rules have enough blocks.

    A loss score of several experiments is the sum of theirs.
    """
    reading, tested = case.reading, {}
    for one in case.experiments:
        part = one.only(RULES)
        size = reading.block or max(len(whole(part).seeds), 1)
        share, count = block_shares(
            part,
            stage,
            first=reading.first,
            flagged=reading.flagged,
            size=size,
            alpha=reading.alpha,
            corrected=reading.corrected,
        )
        if len(part.methods) == len(RULES) and share is not None and count >= reading.least_blocks:
            tested[one.name] = share.mean(axis=0)
    return list(tested), np.array(list(tested.values())).reshape(-1, len(RULES))


Mean = Callable[[Floats, float], Interval]
"""Of numbers, at a level: `student` where they are seeds, `over` where experiments."""


def over(case: Case, names: Sequence[str]) -> Mean:
    """The mean over these experiments, their datasets the units."""
    kind = clusters.resampled if case.reading.resample else clusters.clustered

    def mean(values_E: Floats, level: float = LEVEL) -> Interval:
        return kind(values_E, case.datasets(names) if case.reading.clustered else names, level)

    return mean


def least(
    values_NM: Floats,
    names: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    mean: Mean,
    level: float = LEVEL,
) -> tuple[str, Interval | None]:
    """How far in every pair of rules the first is above the second: the least of the differences.

    δ = min δ_k over K pairs of means over N rows. Its interval is [min low_k, min high_k]. The low end
    errs only where that of the least pair does, so it needs no correction; the high end may err in any
    pair, so each of them is widened for K (Bonferroni). Then the interval lies above a limit that δ is
    not above no more often than that of a single pair, and below one likewise. (The lowest of some
    rules less the highest of others, resampled, would not do: of rules that are all alike it is below
    0 in every resample.)

    Returns:
        The pair of the least difference in words, and the interval; none where rules or rows lack.
    """
    if not len(values_NM) or not set(chain(*pairs)) <= set(names):
        return "every rule of one kind less every rule of the other", None
    columns = [
        (values_NM[:, names.index(one)], values_NM[:, names.index(two)]) for one, two in pairs
    ]
    at, interval = _least([partial(mean, one_N - two_N) for one_N, two_N in columns], level)
    of = f", the least of {len(pairs)} differences" if len(pairs) > 1 else ""
    return f"{pairs[at][0]} less {pairs[at][1]}{of}", interval


def _least(
    each: Sequence[Callable[[float], Interval]], level: float = LEVEL
) -> tuple[int, Interval]:
    """The least of K numbers, each given as its interval at a level: which it is, and its interval."""
    intervals = [one(level) for one in each]
    widened = [one(1 - (1 - level) / len(each)) for one in each]
    at = min(range(len(each)), key=lambda k: intervals[k].value)
    low, high = min(one.low for one in intervals), min(one.high for one in widened)
    return at, replace(intervals[at], low=low, high=high)


def others(*rules: str) -> tuple[str, ...]:
    """The paper's other rules."""
    return tuple(rule for rule in RULES if rule not in rules)


def pairs_of(upper: Sequence[str], lower: Sequence[str]) -> list[tuple[str, str]]:
    """Every rule of some with every rule of others, but none with itself."""
    return [(one, other) for one in upper for other in lower if one != other]


def accuracies(one: ExperimentResults, stage: Rounds = "all", reading: Reading = PLAIN) -> Floats:
    """(S, M): mean accuracy over the rounds of a stage, of whole seeds."""
    return _in_stages(one, stage, reading=reading)[..., 0]


def _in_stages(one: ExperimentResults, *stages: Rounds, reading: Reading = PLAIN) -> Floats:
    """(S, M, K): the same in each of K stages, of whole seeds with enough rounds in all of them."""
    accuracy_SMT = one.accuracy_MST.swapaxes(0, 1)
    means, usable_S = [], np.isfinite(accuracy_SMT).all(axis=(1, 2))
    for stage in stages:
        at, kept_ST, enough_S = _kept(one, stage, reading)
        usable_S &= enough_S
        sums_SM = np.where(kept_ST[:, None], accuracy_SMT[:, :, at], 0.0).sum(axis=2)
        means.append(sums_SM / np.maximum(kept_ST.sum(axis=1), 1)[:, None])
    return np.stack(means, axis=2)[usable_S]


def _kept(
    one: ExperimentResults, stage: Rounds, reading: Reading
) -> tuple[list[int], NDArray[np.bool_], NDArray[np.bool_]]:
    """Where a stage's rounds are, which of each seed are kept, and the seeds that keep half of them.

    Rounds in which a network did not train are left out.
    """
    at = positions(one.rounds, stage, reading.first)
    kept_ST = ~left_out(one, keep=reading.flagged)[:, at]
    return at, kept_ST, np.array([is_enough(n, len(at)) for n in kept_ST.sum(axis=1)], dtype=bool)


def falls(one: ExperimentResults, reading: Reading = PLAIN) -> Floats:
    """(S, M): the most that accuracy falls below what it had reached, of whole seeds."""
    accuracy_SMT = one.accuracy_MST.swapaxes(0, 1)
    at, kept_ST, enough_S = _kept(one, "all", reading)
    usable_S = enough_S & np.isfinite(accuracy_SMT).all(axis=(1, 2))
    kept_SMT, now_SMT = kept_ST[usable_S, None], accuracy_SMT[usable_S][:, :, at]
    reached_SMT = np.maximum.accumulate(np.where(kept_SMT, now_SMT, -np.inf), axis=2)
    return np.where(kept_SMT, reached_SMT - now_SMT, 0.0).max(axis=2, initial=0.0)


def wider(
    one: ExperimentResults, stage: Rounds, *than: Rounds, reading: Reading = PLAIN
) -> Interval | None:
    """How much further rules are apart in some rounds than in any others: √(τ² − τ′²), with its sign.

    τ² is the variance between rules. Each difference has Student's interval of its jackknife over
    seeds; the root keeps its order and brings it back to points.
    """
    stages_SMK = _in_stages(one, stage, *than, reading=reading)
    if len(one.methods) < 2 or len(stages_SMK) < 3:
        return None
    first, *rest = np.moveaxis(stages_SMK, -1, 0)
    each = [partial(student, _jackknife(first, other)) for other in rest]
    _, variance = _least(each, reading.level)
    value, low, high = (
        float(np.sign(end) * np.sqrt(abs(end)))
        for end in (variance.value, variance.low, variance.high)
    )
    return replace(variance, value=value, low=low, high=high)


def _jackknife(one_SM: Floats, other_SM: Floats) -> Floats:
    """(S,) pseudo-values of the difference of variances between rules: S·d − (S − 1)·d without s."""
    count, seeds = len(one_SM), np.arange(len(one_SM))

    def more(kept: NDArray[np.int64]) -> float:
        return between_rules(one_SM[kept]) - between_rules(other_SM[kept])

    without_S = np.array([more(np.delete(seeds, s)) for s in seeds])
    return count * more(seeds) - (count - 1) * without_S


def between_rules(accuracy_SM: Floats) -> float:
    """The variance of rules' true means, without bias: Σ_{s≠t} ⟨c_s, c_t⟩ / (S(S − 1)(M − 1)).

    c_s are a seed's accuracies less their mean. What is noise in one seed is none in another, so the
    mean is 0 where rules are alike; that of best less worst is above 0, the more so the more noise.
    """
    seeds, rules = accuracy_SM.shape
    c_SM = accuracy_SM - accuracy_SM.mean(axis=1, keepdims=True)
    pairs = np.square(c_SM.sum(axis=0)).sum() - np.square(c_SM).sum()
    return float(pairs / (seeds * (seeds - 1) * (rules - 1)))


def narrowing(one: ExperimentResults, rule: str, reading: Reading = PLAIN) -> Interval | None:
    """How far a rule is behind the mean of the others early, less how far late."""
    both_SM2 = _in_stages(one, "early", "late", reading=reading)
    if len(one.methods) < 2 or not len(both_SM2):
        return None
    at = one.index(rule)
    behind_S2 = np.delete(both_SM2, at, axis=1).mean(axis=1) - both_SM2[:, at]
    return student(behind_S2[:, 0] - behind_S2[:, 1], reading.level)
