"""Claims that stores can judge: the paper's over its suite, and our own."""

from __future__ import annotations

from collections.abc import Sequence

from askance.bench.stats.penalty import Stage
from askance.bench.stats.resample import mean_interval
from askance.bench.stats.table import PAPER
from askance.claims.evidence import Evidence, counted
from askance.claims.judge import HALF, HALF_POINT, Judged, judged
from askance.claims.measures import (
    accuracies,
    differences,
    least,
    losses,
    means,
    others,
    over_experiments,
    pairs_of,
    student,
    within,
)
from askance.report.verdict import is_loss, is_win
from askance.report.words import several

_WHEN: dict[Stage, str] = {
    "all": "all rounds",
    "early": "rounds 1–3",
    "late": "the last three rounds",
}


def overall(evidence: Evidence) -> list[Judged]:
    """What the paper says over all of its experiments; its loss scores are of its five rules alone."""
    early, late = _WHEN["early"], _WHEN["late"]
    best, worst = ("grad", "badge"), ("random", "entropy")
    orders = {
        "grad and BADGE have the lowest loss scores": pairs_of(others(*best), best),
        "random and entropy have the highest loss scores": pairs_of(worst, others(*worst)),
        "k-center's loss score is between those two and these": [
            *pairs_of(["kcenter"], best),
            *pairs_of(worst, ["kcenter"]),
        ],
    }
    return [
        _pair(evidence, "grad usually beats entropy", "grad", "entropy"),
        _pair(
            evidence,
            f"grad is competitive with BADGE: at most {HALF} behind",
            "grad",
            "badge",
            limit=-HALF_POINT,
        ),
        _competitive(evidence, f"grad is competitive with common baselines: at most {HALF} behind"),
        *(
            _loss(evidence, f"{claim}, {when}", pairs, stage)
            for claim, pairs in orders.items()
            for stage, when in _WHEN.items()
        ),
        _loss(
            evidence,
            f"BADGE leads early: the lowest loss score, {early}",
            pairs_of(others("badge"), ["badge"]),
            "early",
        ),
        _stage(evidence, f"BADGE is ahead of grad, {early}", "badge", "grad", "early"),
        _loss(
            evidence,
            f"grad leads late: the lowest loss score, {late}",
            pairs_of(others("grad"), ["grad"]),
            "late",
        ),
        _stage(evidence, f"grad is ahead of BADGE, {late}", "grad", "badge", "late"),
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
            "Sampling helps from the start: powergrad is ahead of random, rounds 1–3",
            "powergrad",
            "random",
            "early",
        ),
        _stage(
            evidence,
            "The top of the scores starts badly: grad is behind random, rounds 1–3",
            "random",
            "grad",
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


def _competitive(evidence: Evidence, claim: str) -> Judged:
    """grad's mean accuracy less that of each of the paper's other rules, over experiments."""
    names, mean_EM = means(evidence.experiments, "all", *PAPER)
    measure, found = least(mean_EM, PAPER, pairs_of(["grad"], PAPER), mean_interval)
    n = counted(names, "experiment")
    return judged(claim, f"mean accuracy, {measure}", found, n, limit=-HALF_POINT)


def _stage(evidence: Evidence, claim: str, rule: str, other: str, stage: Stage) -> Judged:
    """A rule's accuracy in some rounds less another's, over experiments."""
    names, mean_EM = means(evidence.experiments, stage, rule, other)
    _, found = least(mean_EM, (rule, other), [(rule, other)], mean_interval)
    measure = f"accuracy in those rounds, {rule} less {other}"
    return judged(claim, measure, found, counted(names, "experiment"))


def _alike(evidence: Evidence, claim: str, rule: str, other: str) -> Judged:
    """Whether two rules' mean accuracies are closer than half a point, over experiments."""
    each = differences(evidence.curves, rule, other)
    measure = f"{HALF} less the size of the mean difference of {rule} and {other}"
    n = counted(each, "experiment", [d.mean.n for d in each])
    mean = over_experiments(each)
    return judged(claim, measure, within(mean, HALF_POINT) if mean else None, n)


def _one(
    evidence: Evidence, claim: str, name: str, rule: str, other: str, limit: float = 0.0
) -> Judged:
    """A rule's mean accuracy less another's, over the seeds of one experiment."""
    found = None
    for one in evidence.experiments:
        if one.name == name:
            part, pair = one.only({rule, other}), [(rule, other)]
            _, found = least(accuracies(part), part.methods, pair, student)
    n = several(found.n, "seed") if found else "–"
    return judged(claim, f"mean accuracy, {rule} less {other}", found, n, limit=limit)


def _loss(
    evidence: Evidence, claim: str, pairs: Sequence[tuple[str, str]], stage: Stage = "all"
) -> Judged:
    """The paper's loss scores: in each pair the first rule's is above the second's."""
    names, loss_EM = losses(evidence.experiments, stage)
    measure, found = least(loss_EM, PAPER, pairs, mean_interval)
    n = counted(names, "experiment")
    return judged(claim, f"loss score an experiment, {measure}", found, n, unit=1, digits=3)
