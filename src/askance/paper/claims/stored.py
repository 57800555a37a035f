"""Claims that stores can judge: the paper's over its suite, and our own."""

from __future__ import annotations

from askance.experiments.statistics.stages import Stage
from askance.paper.claims import rows
from askance.paper.claims.case import Case
from askance.paper.claims.judge import HALF, HALF_POINT, Judged
from askance.paper.claims.measures import others, pairs_of

_WHEN: dict[Stage, str] = {
    "all": "all rounds",
    "early": "rounds 1–3",
    "late": "the last three rounds",
}


_WORST = ("random", "entropy")


def overall(case: Case) -> list[Judged]:
    """What the paper says over all of its experiments; its loss scores are of its five rules alone."""
    early = _WHEN["early"]
    near = f"competitive with BADGE: at most {HALF} behind"
    orders = {
        "grad and BADGE have the lowest loss scores": pairs_of(others(*rows.BEST), rows.BEST),
        "random and entropy have the highest loss scores": pairs_of(_WORST, others(*_WORST)),
        "k-center's loss score is between those two and these": [
            *pairs_of(["kcenter"], rows.BEST),
            *pairs_of(_WORST, ["kcenter"]),
        ],
    }
    return [
        rows.often(case, "grad usually beats entropy", "grad", "entropy"),
        rows.pair(case, "grad beats entropy in the mean", "grad", "entropy"),
        rows.often(case, f"grad is typically {near}", "grad", "badge", limit=-HALF_POINT),
        rows.pair(case, f"grad is {near}, in the mean", "grad", "badge", limit=-HALF_POINT),
        rows.competitive(case, f"grad is competitive with common baselines: at most {HALF} behind"),
        *(
            rows.loss(case, f"{claim}, {when}", pairs, stage)
            for claim, pairs in orders.items()
            for stage, when in _WHEN.items()
        ),
        rows.loss(
            case,
            f"BADGE leads early: the lowest loss score, {early}",
            pairs_of(others("badge"), ["badge"]),
            "early",
        ),
        rows.stage(case, f"BADGE is ahead of grad, {early}", "badge", "grad", "early"),
        rows.grows(
            case, "The advantage of grad and BADGE in loss scores is larger late than early"
        ),
    ]


def ours(case: Case) -> list[Judged]:
    """Questions the paper leaves open."""
    cifar, late = "cifar10-lenet", _WHEN["late"]
    return [
        rows.pair(case, "The reference helps: grad beats gradnorm", "grad", "gradnorm"),
        rows.alike(case, f"The reference moves less than {HALF}, either way", "grad", "gradnorm"),
        rows.pair(case, "Spreading helps: grad-spread beats grad", "grad-spread", "grad"),
        rows.pair(case, "Sampling helps: powergrad beats grad", "powergrad", "grad"),
        rows.pair(
            case,
            f"Sampling reaches BADGE: powergrad is at most {HALF} behind",
            "powergrad",
            "badge",
            limit=-HALF_POINT,
        ),
        rows.pair(
            case,
            "Sampling beats the simple rule: powergrad beats margin",
            "powergrad",
            "margin",
        ),
        rows.stage(
            case,
            "Sampling helps from the start: powergrad is ahead of random, rounds 1–3",
            "powergrad",
            "random",
            "early",
        ),
        rows.stage(
            case,
            "The top of the scores starts badly: grad is behind random, rounds 1–3",
            "random",
            "grad",
            "early",
        ),
        rows.loss(
            case,
            f"grad alone leads late: the lowest loss score, {late}",
            pairs_of(others("grad"), ["grad"]),
            "late",
        ),
        rows.stage(case, f"grad is ahead of BADGE, {late}", "grad", "badge", "late"),
        rows.one(case, "On CIFAR-10 with LeNet, grad is below random", cifar, "random", "grad"),
        rows.one(
            case,
            f"On CIFAR-10 with LeNet, powergrad is at most {HALF} behind BADGE",
            cifar,
            "powergrad",
            "badge",
            limit=-HALF_POINT,
        ),
    ]
