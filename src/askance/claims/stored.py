"""Claims that stores can judge: the paper's over its suite, and our own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from askance.bench.stats.penalty import Stage
from askance.bench.stats.resample import mean_interval
from askance.bench.stats.table import PAPER
from askance.claims.evidence import Evidence, counted
from askance.claims.judge import HALF, HALF_POINT, Judged, judged
from askance.claims.measures import (
    accuracies,
    differences,
    losses,
    others,
    over_experiments,
    pairs_of,
    within,
    worst_told,
)
from askance.report.verdict import is_loss, is_win


def overall(evidence: Evidence) -> list[Judged]:
    """What the paper says over all of its experiments; its loss scores are of its five rules alone."""
    early, late = "rounds 1–3", "the last three rounds"
    best, worst = ("grad", "badge"), ("random", "entropy")
    return [
        _pair(evidence, "grad usually beats entropy", "grad", "entropy"),
        _pair(
            evidence,
            f"grad is competitive with BADGE: at most {HALF} behind",
            "grad",
            "badge",
            limit=-HALF_POINT,
        ),
        _loss(
            evidence, "grad and BADGE have the lowest loss scores", pairs_of(others(*best), best)
        ),
        _loss(
            evidence,
            "random and entropy have the highest loss scores",
            pairs_of(worst, others(*worst)),
        ),
        _loss(
            evidence,
            "k-center is intermediate: its loss score between those two and these",
            [*pairs_of(["kcenter"], best), *pairs_of(worst, ["kcenter"])],
        ),
        _loss(
            evidence,
            f"BADGE leads early: the lowest loss score in {early}",
            pairs_of(others("badge"), ["badge"]),
            "early",
        ),
        _stage(evidence, f"BADGE is ahead of grad in {early}", "badge", "grad", "early"),
        _loss(
            evidence,
            f"grad leads late: the lowest loss score in {late}",
            pairs_of(others("grad"), ["grad"]),
            "late",
        ),
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
        _pair(
            evidence,
            "Sampling beats the simple rule: powergrad beats margin",
            "powergrad",
            "margin",
        ),
        _stage(
            evidence,
            "Sampling helps from the start: powergrad is ahead of random in rounds 1–3",
            "powergrad",
            "random",
            "early",
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


def _pair(evidence: Evidence, claim: str, rule: str, other: str, *, limit: float = 0.0) -> Judged:
    """A rule's mean accuracy less another's, over experiments."""
    each = differences(evidence.curves, rule, other)
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
    found = within(np.array([d.mean.value for d in each]), HALF_POINT)
    return judged(claim, measure, found, n)


def _one(
    evidence: Evidence, claim: str, name: str, rule: str, other: str, limit: float = 0.0
) -> Judged:
    """A rule's mean accuracy less another's, over the seeds of one experiment."""
    each = differences([one for one in evidence.curves if one.name == name], rule, other)
    found = each[0].mean if each else None
    n = f"{found.n} seeds" if found else "–"
    return judged(claim, f"mean accuracy, {rule} less {other}", found, n, limit=limit)


def _loss(
    evidence: Evidence, claim: str, pairs: Sequence[tuple[str, str]], stage: Stage = "all"
) -> Judged:
    """The paper's loss scores: in each pair the first rule's is above the second's."""
    names, loss_EM = losses(evidence.experiments, stage)
    measure, found = worst_told(loss_EM, PAPER, pairs)
    n = counted(names, "experiment")
    return judged(claim, f"loss score an experiment, {measure}", found, n, unit=1, digits=3)
