"""What claims of one experiment's learning curves are judged by: numbers over its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from askance.experiments.statistics.resample import Interval
from askance.experiments.statistics.stages import Rounds, Stage
from askance.experiments.statistics.table import ExperimentResults
from askance.paper.claims import measures
from askance.paper.claims.case import Case, case_later
from askance.paper.claims.judge import HALF, HALF_POINT, Measure, Measurement
from askance.paper.claims.measures import accuracies, least, others, pairs_of, student
from askance.paper.suite import RULES
from askance.report.formatting import plural

ABSENT = "no seed of it that judges is here"


@case_later
def only(case: Case, experiment: str, measure: Measure, absent: str = "") -> Measurement:
    """What is measured of one experiment alone; where it is not here, `absent` says so."""
    those = [one for one in case.experiments if one.name == experiment]
    if not those:
        return Measurement(absent or ABSENT)
    return measure(replace(case, experiments=those))


@case_later
def above(
    case: Case, high: Sequence[str], low: Sequence[str], stage: Stage = "all", limit: float = 0.0
) -> Measurement:
    """The accuracy of each of some rules less that of each of others: the least difference."""
    part = case.experiments[0].only({*high, *low})
    pairs, values_SM = pairs_of(high, low), accuracies(part, stage, case.reading)
    pair, interval = least(values_SM, part.methods, pairs, student, case.reading.level)
    return _over_seeds(case, f"mean accuracy, {stage} rounds, {pair}", interval, limit)


def difference(experiment: str, rule: str, other: str, limit: float = 0.0) -> Measure:
    """A rule's mean accuracy less another's in one experiment."""
    what, measure = f"mean accuracy, {rule} less {other}", above([rule], [other], limit=limit)
    return only(experiment, lambda case: replace(measure(case), what=what), what)


def near(*rules: str, stage: Stage = "all") -> Measure:
    """How far rules are behind the best, if at all: at most half a point."""
    return above(rules, RULES, stage, -HALF_POINT)


@case_later
def together(case: Case, rule: str, other: str, stage: Stage) -> Measurement:
    """How far two rules' accuracies are from being half a point apart."""
    values_SM = accuracies(case.experiments[0].only({rule, other}), stage, case.reading)
    what = f"{HALF} less the size of the mean difference, {stage} rounds"
    if values_SM.shape[1] < 2 or not len(values_SM):
        return Measurement(what)
    apart = student(values_SM[:, 0] - values_SM[:, 1], case.reading.level)
    interval = measures.within(apart, HALF_POINT)
    return _over_seeds(case, what, interval)


@case_later
def wider(case: Case, stage: Rounds, *than: Rounds, rules: Sequence[str] = RULES) -> Measurement:
    """How much further rules are from each other in some rounds than in others."""
    what = f"variance between rules, {stage} less {' or '.join(than)} rounds, its signed root"
    part = _all_of(case, rules)
    interval = measures.wider(part, stage, *than, reading=case.reading) if part else None
    return _over_seeds(case, what, interval)


@case_later
def catches_up(case: Case, rule: str, *leaders: str) -> Measurement:
    """How far a rule is behind some others early, less how far late."""
    what = f"how far {rule} is behind {' and '.join(leaders)} in the mean, early less late"
    part = _all_of(case, {rule, *leaders})
    interval = measures.narrowing(part, rule, case.reading) if part else None
    return _over_seeds(case, what, interval)


@case_later
def unsteady(case: Case, rule: str) -> Measurement:
    """How much further a rule's accuracy falls below what it had reached than any other's."""
    part = case.experiments[0].only(RULES)
    falls_SM = measures.falls(part, case.reading)
    pairs, level = pairs_of([rule], others(rule)), case.reading.level
    pair, interval = least(falls_SM, part.methods, pairs, student, level)
    return _over_seeds(case, f"largest fall below the accuracy reached, {pair}", interval)


def _all_of(case: Case, rules: Sequence[str] | set[str]) -> ExperimentResults | None:
    """The experiment with these rules alone; None where it lacks one."""
    part = case.experiments[0].only(rules)
    return part if len(part.methods) == len(rules) else None


def _over_seeds(
    case: Case, what: str, interval: Interval | None, limit: float = 0.0
) -> Measurement:
    n = plural(interval.n, "seed") if interval else "–"
    return Measurement(what, interval, n, limit, case.reading.least_seeds)
