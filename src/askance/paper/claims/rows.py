"""Claims over experiments, one function a form: how often, how much in the mean, and loss scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from askance.experiments.statistics.blocks import whole
from askance.experiments.statistics.clusters import how_many
from askance.experiments.statistics.resample import Interval
from askance.experiments.statistics.stages import Stage
from askance.experiments.statistics.table import Floats
from askance.paper.claims.case import Case
from askance.paper.claims.evidence import counted
from askance.paper.claims.judge import HALF, HALF_POINT, Judged, counted_in, judged
from askance.paper.claims.measures import (
    accuracies,
    least,
    losses,
    over,
    pairs_of,
    seeds_of,
    student,
    within,
)
from askance.paper.suite import RULES
from askance.report.formatting import number, plural

BEST = ("grad", "badge")


def often(case: Case, claim: str, rule: str, other: str, *, limit: float = 0.0) -> Judged:
    """Whether a rule is above another, by more than a limit, in more than half of the experiments."""
    each = _apart(case, rule, other)
    names = list(each)
    enough = len(set(case.datasets(names))) >= case.reading.datasets
    found = how_many(list(each.values()), limit, case.reading.level) if each else None
    points = number(100 * limit, 1 if limit else 0)
    measure = f"experiments in which mean accuracy, {rule} less {other}, is above {points}"
    if found:
        above, below = found.low, found.n - found.high
        measure += f"; significantly above in {above:.0f}, below in {below:.0f}"
    return counted_in(claim, measure, found, _n(case, each), enough)


def pair(case: Case, claim: str, rule: str, other: str, *, limit: float = 0.0) -> Judged:
    """A rule's mean accuracy less another's, over experiments."""
    each = _apart(case, rule, other)
    measure = f"mean accuracy, {rule} less {other}"
    if each:
        found = how_many(list(each.values()), level=case.reading.level)
        above, below = found.low, found.n - found.high
        measure += f"; significantly above 0 in {above:.0f}, below in {below:.0f}"
    return _judged(case, claim, measure, each, _mean(case, each), limit=limit)


def competitive(case: Case, claim: str) -> Judged:
    """grad's mean accuracy less that of each of the paper's other rules, over experiments."""
    each = seeds_of(case, "all", *RULES)
    mean_EM = np.array([each_SM.mean(axis=0) for each_SM in each.values()])
    pairs, mean = pairs_of(["grad"], RULES), over(case, list(each))
    measure, found = least(mean_EM, RULES, pairs, mean, case.reading.level)
    return _judged(case, claim, f"mean accuracy, {measure}", each, found, limit=-HALF_POINT)


def stage(case: Case, claim: str, rule: str, other: str, stage: Stage) -> Judged:
    """A rule's accuracy in some rounds less another's, over experiments."""
    each = _apart(case, rule, other, stage)
    measure = f"accuracy in those rounds, {rule} less {other}"
    return _judged(case, claim, measure, each, _mean(case, each))


def alike(case: Case, claim: str, rule: str, other: str) -> Judged:
    """Whether two rules' mean accuracies are closer than half a point, over experiments."""
    each = _apart(case, rule, other)
    mean = _mean(case, each)
    found = within(mean, HALF_POINT) if mean else None
    measure = f"{HALF} less the size of the mean difference of {rule} and {other}"
    return _judged(case, claim, measure, each, found)


def _apart(case: Case, rule: str, other: str, stage: Stage = "all") -> dict[str, Floats]:
    """By experiment the (S,) differences of two rules."""
    both = seeds_of(case, stage, rule, other)
    return {name: pair_SM[:, 0] - pair_SM[:, 1] for name, pair_SM in both.items()}


def _mean(case: Case, each: dict[str, Floats]) -> Interval | None:
    """Over experiments."""
    values_E = np.array([values_S.mean() for values_S in each.values()])
    return over(case, list(each))(values_E, case.reading.level) if each else None


def one(case: Case, claim: str, name: str, rule: str, other: str, limit: float = 0.0) -> Judged:
    """A rule's mean accuracy less another's, over the seeds of one experiment."""
    found = None
    for one in case.experiments:
        if one.name == name:
            part, pair = one.only({rule, other}), [(rule, other)]
            accuracy_SM = accuracies(part, "all", case.reading)
            _, found = least(accuracy_SM, part.methods, pair, student, case.reading.level)
    n = plural(found.n, "seed") if found else "–"
    measure, enough = f"mean accuracy, {rule} less {other}", case.reading.least_seeds
    return judged(claim, measure, found, n, limit=limit, least=enough)


def loss(case: Case, claim: str, pairs: Sequence[tuple[str, str]], stage: Stage = "all") -> Judged:
    """The paper's loss scores: in each pair the first rule's is above the second's."""
    names, loss_EM = losses(case, stage)
    measure, found = least(loss_EM, RULES, pairs, over(case, names), case.reading.level)
    measure = f"loss score an experiment, {measure}"
    return _judged(case, claim, measure, _blocks(case, names), found, unit=1, digits=3)


def grows(case: Case, claim: str) -> Judged:
    """The mean loss score of the other rules less that of grad and BADGE, late less early."""
    best = [RULES.index(rule) for rule in BEST]
    stages: list[Stage] = ["early", "late"]
    ahead: list[dict[str, float]] = []
    for stage in stages:
        names, loss_EM = losses(case, stage)
        more_E = np.delete(loss_EM, best, axis=1).mean(axis=1) - loss_EM[:, best].mean(axis=1)
        ahead.append(dict(zip(names, more_E.tolist(), strict=True)))
    both = [name for name in ahead[0] if name in ahead[1]]
    more_E = np.array([ahead[1][name] - ahead[0][name] for name in both])
    found = over(case, both)(more_E, case.reading.level) if both else None
    measure = (
        "mean loss score an experiment of the other rules less that of these two, late less early"
    )
    return _judged(case, claim, measure, _blocks(case, both), found, unit=1, digits=3)


def _judged(
    case: Case,
    claim: str,
    measure: str,
    each: Mapping[str, Sequence[object] | Floats],
    found: Interval | None,
    *,
    unit: float = 100,
    digits: int = 2,
    limit: float = 0.0,
) -> Judged:
    """A claim over experiments, of whose datasets there must be enough."""
    return judged(
        claim,
        measure,
        found,
        _n(case, each),
        unit=unit,
        digits=digits,
        limit=limit,
        least=case.reading.datasets,
    )


def _n(case: Case, each: Mapping[str, Sequence[object] | Floats]) -> str:
    """How many experiments, of how many datasets where they share some, and seeds of each."""
    datasets = len(set(case.datasets(list(each))))
    of = f" of {plural(datasets, 'dataset')}" if datasets < len(each) else ""
    head, *tail = counted(each, "experiment", [len(seeds) for seeds in each.values()]).split(" × ")
    return " × ".join([head + of, *tail])


def _blocks(case: Case, names: Sequence[str]) -> dict[str, list[int]]:
    """By experiment the seeds that are in its penalty matrices."""
    found = {one.name: list(whole(one.only(RULES)).seeds) for one in case.experiments}
    size = case.reading.block or 1
    return {name: found[name][: len(found[name]) // size * size] for name in names}
