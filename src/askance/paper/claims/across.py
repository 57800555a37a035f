"""What claims over experiments are judged by: how often, how much in the mean, and loss scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from askance.experiments.statistics.blocks import whole
from askance.experiments.statistics.clusters import how_many
from askance.experiments.statistics.resample import Interval
from askance.experiments.statistics.stages import Stage
from askance.experiments.statistics.table import Floats
from askance.paper.claims.case import Case, case_later
from askance.paper.claims.evidence import counted
from askance.paper.claims.judge import HALF, HALF_POINT, Measurement
from askance.paper.claims.measures import least, losses, over, pairs_of, seeds_of, within
from askance.paper.suite import RULES
from askance.report.formatting import number, plural

BEST = ("grad", "badge")


@case_later
def often(case: Case, rule: str, other: str, limit: float = 0.0) -> Measurement:
    """In how many experiments a rule is above another by more than a limit: more than half of them."""
    each = _differences(case, rule, other)
    points = number(100 * limit, 1 if limit else 0)
    what = f"experiments in which mean accuracy, {rule} less {other}, is above {points}"
    if not each:
        return Measurement(what)
    count = how_many(list(each.values()), limit, case.reading.level)
    what += f"; significantly above in {count.low:.0f}, below in {count.n - count.high:.0f}"
    if len(set(case.datasets(list(each)))) < case.reading.datasets:
        return Measurement(what)
    figure = f"{count.value:.0f} [{count.low:.0f}, {count.high:.0f}] of {count.n}"
    behind = (case.reading.level, *np.concatenate(list(each.values())).tolist())
    return Measurement(
        what, count, _n(case, each), count.n // 2 + 0.5, least=0, figure=figure, rests_on=behind
    )


@case_later
def mean(case: Case, rule: str, other: str, limit: float = 0.0) -> Measurement:
    """A rule's mean accuracy less another's."""
    each = _differences(case, rule, other)
    what = f"mean accuracy, {rule} less {other}"
    if each:
        count = how_many(list(each.values()), level=case.reading.level)
        what += f"; significantly above 0 in {count.low:.0f}, below in {count.n - count.high:.0f}"
    return _measured(case, what, each, _mean(case, each), limit=limit)


@case_later
def competitive(case: Case, rule: str, limit: float = 0.0) -> Measurement:
    """A rule's mean accuracy less that of each of the paper's other rules."""
    each = seeds_of(case, "all", *RULES)
    mean_EM = np.array([each_SM.mean(axis=0) for each_SM in each.values()])
    mean = over(case, list(each))
    what, interval = least(mean_EM, RULES, pairs_of([rule], RULES), mean, case.reading.level)
    return _measured(case, f"mean accuracy, {what}", each, interval, limit=limit)


@case_later
def in_rounds(case: Case, rule: str, other: str, stage: Stage) -> Measurement:
    """A rule's accuracy in some rounds less another's."""
    each = _differences(case, rule, other, stage)
    what = f"accuracy in those rounds, {rule} less {other}"
    return _measured(case, what, each, _mean(case, each))


@case_later
def alike(case: Case, rule: str, other: str) -> Measurement:
    """How far two rules' mean accuracies are from being half a point apart."""
    each = _differences(case, rule, other)
    mean = _mean(case, each)
    what = f"{HALF} less the size of the mean difference of {rule} and {other}"
    return _measured(case, what, each, within(mean, HALF_POINT) if mean else None)


@case_later
def loss(case: Case, pairs: Sequence[tuple[str, str]], stage: Stage) -> Measurement:
    """The paper's loss scores: in each pair the first rule's less the second's."""
    names, loss_EM = losses(case, stage)
    what, interval = least(loss_EM, RULES, pairs, over(case, names), case.reading.level)
    return _loss_score(case, f"loss score an experiment, {what}", names, interval)


@case_later
def loss_grows(case: Case) -> Measurement:
    """The mean loss score of the other rules less that of grad and BADGE, late less early."""
    best = [RULES.index(rule) for rule in BEST]

    def ahead(stage: Stage) -> dict[str, float]:
        """By experiment."""
        names, loss_EM = losses(case, stage)
        more_E = np.delete(loss_EM, best, axis=1).mean(axis=1) - loss_EM[:, best].mean(axis=1)
        return dict(zip(names, more_E.tolist(), strict=True))

    early, late = ahead("early"), ahead("late")
    names = [name for name in early if name in late]
    more_E = np.array([late[name] - early[name] for name in names])
    interval = over(case, names)(more_E, case.reading.level) if names else None
    what = (
        "mean loss score an experiment of the other rules less that of these two, late less early"
    )
    return _loss_score(case, what, names, interval)


def _differences(case: Case, rule: str, other: str, stage: Stage = "all") -> dict[str, Floats]:
    """By experiment the (S,) differences of two rules."""
    both = seeds_of(case, stage, rule, other)
    return {name: pair_SM[:, 0] - pair_SM[:, 1] for name, pair_SM in both.items()}


def _mean(case: Case, each: dict[str, Floats]) -> Interval | None:
    """Over experiments."""
    values_E = np.array([values_S.mean() for values_S in each.values()])
    return over(case, list(each))(values_E, case.reading.level) if each else None


def _loss_score(
    case: Case, what: str, names: Sequence[str], interval: Interval | None
) -> Measurement:
    """A measurement of experiments' loss scores: its seeds are those in their penalty matrices."""
    seeds = {one.name: whole(one.only(RULES)).seeds for one in case.experiments}
    size = case.reading.block or 1
    each = {name: seeds[name][: len(seeds[name]) // size * size] for name in names}
    return _measured(case, what, each, interval, unit=1, digits=3, of_wins=True)


def _measured(
    case: Case,
    what: str,
    each: Mapping[str, Sequence[object] | Floats],
    interval: Interval | None,
    **options: Any,
) -> Measurement:
    """A measurement over experiments, of whose datasets there must be enough."""
    return Measurement(what, interval, _n(case, each), least=case.reading.datasets, **options)


def _n(case: Case, each: Mapping[str, Sequence[object] | Floats]) -> str:
    """How many experiments, of how many datasets where they share some, and seeds of each."""
    datasets = len(set(case.datasets(list(each))))
    of = f" of {plural(datasets, 'dataset')}" if datasets < len(each) else ""
    head, *tail = counted(each, "experiment", [len(seeds) for seeds in each.values()]).split(" × ")
    return " × ".join([head + of, *tail])
