"""Claims that stores can judge: the paper's over its suite and of single panels, and our own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from askance.bench.stats.penalty import Stage
from askance.bench.stats.resample import Interval, mean_interval
from askance.bench.stats.table import PAPER, Floats
from askance.claims.evidence import Evidence, counted
from askance.claims.judge import HALF_POINT, Judged, judged
from askance.claims.measures import (
    accuracies,
    converging,
    differences,
    losses,
    over_experiments,
    within,
    worst,
)
from askance.report.verdict import is_loss, is_win

HALF = "half a point"


def overall(evidence: Evidence) -> list[Judged]:
    """What the paper says over all of its experiments, from its five rules alone."""
    early, late = "rounds 1–3", "the last three rounds"
    return [
        _pair(evidence, "grad usually beats entropy", "grad", "entropy", paper=True),
        _pair(
            evidence,
            f"grad is competitive with BADGE: at most {HALF} behind",
            "grad",
            "badge",
            paper=True,
            limit=-HALF_POINT,
        ),
        _loss(evidence, "grad and BADGE have the lowest loss scores", {"grad", "badge"}),
        _loss(
            evidence,
            "random and entropy have the highest loss scores",
            {"grad", "badge", "kcenter"},
        ),
        _loss(evidence, f"BADGE leads early: the lowest loss score in {early}", {"badge"}, "early"),
        _stage(evidence, f"BADGE is ahead of grad in {early}", "badge", "grad", "early"),
        _loss(evidence, f"grad leads late: the lowest loss score in {late}", {"grad"}, "late"),
        _stage(evidence, f"grad is ahead of BADGE in {late}", "grad", "badge", "late"),
    ]


def ours(evidence: Evidence) -> list[Judged]:
    """Questions the paper leaves open."""
    cifar = "cifar10-lenet"
    return [
        _pair(evidence, "The reference helps: grad beats gradnorm", "grad", "gradnorm"),
        _alike(evidence, f"The reference moves less than {HALF}, either way", "grad", "gradnorm"),
        _pair(evidence, "Spreading helps: grad-spread beats grad", "grad-spread", "grad"),
        _pair(evidence, "Sampling helps: powergrad beats grad", "powergrad", "grad"),
        _pair(
            evidence,
            f"Sampling reaches BADGE: powergrad is at most {HALF} behind",
            "powergrad",
            "badge",
            limit=-HALF_POINT,
        ),
        _one(evidence, "On CIFAR-10 with LeNet, grad is below random", cifar, "random", "grad"),
        _one(
            evidence,
            f"On CIFAR-10 with LeNet, powergrad is at most {HALF} behind BADGE",
            cifar,
            "powergrad",
            "badge",
            limit=-HALF_POINT,
        ),
    ]


@dataclass(frozen=True)
class Panel:
    """What the paper says of one of its learning curves: some rules above others, or all together late.

    Args:
        high, low: the rules said to be above, and those below; none where the curves are to converge.
    """

    experiment: str
    says: str
    high: Collection[str] = ()
    low: Collection[str] = ()
    stage: Stage = "all"


def _others(*rules: str) -> tuple[str, ...]:
    return tuple(rule for rule in PAPER if rule not in rules)


PANELS = (
    Panel("20newsgroups-mlp", "grad, k-center and BADGE above random and entropy",
          _others("random", "entropy"), ("random", "entropy")),
    Panel("isolet-mlp", "differences early, then the curves converge"),
    Panel("pokerhand-mlp", "BADGE and entropy improve fastest early", ("badge", "entropy"),
          _others("badge", "entropy"), "early"),
    Panel("pokerhand-mlp", "random trails at the end", _others("random"), ("random",), "late"),
    Panel("stl10-lenet", "BADGE the strongest early", ("badge",), _others("badge"), "early"),
    Panel("gtsrb-vgg16", "grad the strongest", ("grad",), _others("grad")),
    Panel("svhn-lenet", "BADGE and grad above random and entropy", ("badge", "grad"),
          ("random", "entropy")),
    Panel("svhn-lenet", "k-center below all", _others("kcenter"), ("kcenter",)),
    Panel("cifar10-vgg16", "grad, BADGE and k-center above entropy", ("grad", "badge", "kcenter"),
          ("entropy",)),
    Panel("cifar10-resnet18", "grad marginally ahead of all", ("grad",), _others("grad")),
    Panel("cifar10-resnet18", "entropy behind all", _others("entropy"), ("entropy",)),
    Panel("cifar10-resnet18", "the curves converge"),
    Panel("cinic10-resnet18", "grad, BADGE and k-center above random and entropy early",
          _others("random", "entropy"), ("random", "entropy"), "early"),
    Panel("cinic10-resnet18", "the curves converge"),
)  # fmt: skip


def panels(evidence: Evidence) -> list[Judged]:
    """What the paper says of single learning curves, of those that are at hand."""
    by_name = {one.name: one for one in evidence.experiments}
    rows = []
    for panel in PANELS:
        one = by_name.get(panel.experiment)
        if one is None:
            continue
        if panel.high:
            part = one.only({*panel.high, *panel.low})
            measure, found = _worst(
                accuracies(part, panel.stage), part.methods, panel.high, panel.low
            )
            measure = f"mean accuracy, {panel.stage} rounds, {measure}"
        else:
            found = converging(one)
            measure = "best less worst rule, early rounds less late rounds"
        n = f"{found.n} seeds" if found else "–"
        rows.append(judged(f"{one.name}: {panel.says}", measure, found, n))
    return rows


def _pair(
    evidence: Evidence,
    claim: str,
    rule: str,
    other: str,
    *,
    paper: bool = False,
    limit: float = 0.0,
) -> Judged:
    """A rule's mean accuracy less another's, over experiments."""
    each = differences(evidence.of_paper if paper else evidence.curves, rule, other)
    won, lost = sum(map(is_win, each)), sum(map(is_loss, each))
    measure = f"mean accuracy, {rule} less {other}; significantly above in {won}, below in {lost}"
    n = counted(each, "experiment", [d.mean.n for d in each])
    return judged(claim, measure, over_experiments(each), n, limit=limit)


def _stage(evidence: Evidence, claim: str, rule: str, other: str, stage: Stage) -> Judged:
    """A rule's accuracy in some rounds less another's, over experiments."""
    values = []
    for one in evidence.experiments:
        if {rule, other} <= set(one.methods):
            part = one.only({rule, other})
            mean_M = accuracies(part, stage).mean(axis=0)
            values.append(mean_M[part.index(rule)] - mean_M[part.index(other)])
    found = mean_interval(np.array(values)) if values else None
    measure = f"accuracy in those rounds, {rule} less {other}"
    return judged(claim, measure, found, counted(values, "experiment"))


def _alike(evidence: Evidence, claim: str, rule: str, other: str) -> Judged:
    """Whether two rules' mean accuracies are closer than half a point, over experiments."""
    each = differences(evidence.curves, rule, other)
    measure = f"{HALF} less the size of the mean difference of {rule} and {other}"
    n = counted(each, "experiment", [d.mean.n for d in each])
    return judged(claim, measure, within(each, HALF_POINT), n)


def _one(
    evidence: Evidence, claim: str, name: str, rule: str, other: str, limit: float = 0.0
) -> Judged:
    """A rule's mean accuracy less another's, over the seeds of one experiment."""
    each = differences([one for one in evidence.curves if one.name == name], rule, other)
    found = each[0].mean if each else None
    n = f"{found.n} seeds" if found else "–"
    return judged(claim, f"mean accuracy, {rule} less {other}", found, n, limit=limit)


def _loss(evidence: Evidence, claim: str, low: Collection[str], stage: Stage = "all") -> Judged:
    """The paper's loss scores: some rules below all others."""
    names, loss_EM = losses(evidence.experiments, stage)
    # In the paper's order: of pairs that speak alike against the claim, the first is shown.
    lower, upper = ([r for r in PAPER if (r in low) is inside] for inside in (True, False))
    measure, found = _worst(loss_EM, PAPER, upper, lower)
    n = counted(names, "experiment")
    return judged(claim, f"loss score an experiment, {measure}", found, n, unit=1, digits=3)


def _worst(
    values_NM: Floats, names: Sequence[str], high: Collection[str], low: Collection[str]
) -> tuple[str, Interval | None]:
    pair = worst(values_NM, names, high, low) if {*high, *low} <= set(names) else None
    if pair is None:
        return "every rule of one kind less every rule of the other", None
    return f"{pair.upper} less {pair.lower}, the worst of {pair.pairs} pairs", pair.found
