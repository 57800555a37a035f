"""Claims that stores can judge: the paper's, over its suite and of single curves, and our own."""

from __future__ import annotations

from itertools import product

from askance.experiments.statistics.stages import Stage
from askance.paper.claims.across import (
    BEST,
    alike,
    competitive,
    in_rounds,
    loss,
    loss_grows,
    mean,
    often,
)
from askance.paper.claims.judge import HALF, HALF_POINT, Claims
from askance.paper.claims.measures import others, pairs_of
from askance.paper.claims.single import (
    above,
    catches_up,
    difference,
    near,
    only,
    together,
    unsteady,
    wider,
)
from askance.paper.suite import RULES

_WHEN: dict[Stage, str] = {
    "all": "all rounds",
    "early": "rounds 1–3",
    "late": "the last three rounds",
}
_EARLY, _LATE = _WHEN["early"], _WHEN["late"]
_WEAK = ("random", "entropy")
MIDDLE = (
    "k-center is intermediate: a loss score above grad's and BADGE's, below random's and entropy's"
)
_LOSS_SCORES = {
    "grad and BADGE have the lowest loss scores": pairs_of(others(*BEST), BEST),
    "random and entropy have the highest loss scores": pairs_of(_WEAK, others(*_WEAK)),
    MIDDLE: [
        *pairs_of(["kcenter"], BEST),
        *pairs_of(_WEAK, ["kcenter"]),
    ],
}
_NEAR_BADGE = f"competitive with BADGE: at most {HALF} behind"

# What the paper says over all of its experiments; its loss scores are of its five rules alone.
OVERALL: Claims = {
    "grad usually beats entropy": often("grad", "entropy"),
    "grad beats entropy in the mean": mean("grad", "entropy"),
    f"grad is typically {_NEAR_BADGE}": often("grad", "badge", -HALF_POINT),
    f"grad is {_NEAR_BADGE}, in the mean": mean("grad", "badge", -HALF_POINT),
    f"grad is competitive with common baselines: at most {HALF} behind": competitive(
        "grad", -HALF_POINT
    ),
    **{
        f"{claim}, {_WHEN[stage]}": loss(pairs, stage)
        for (claim, pairs), stage in product(_LOSS_SCORES.items(), _WHEN)
    },
    f"BADGE leads early: the lowest loss score, {_EARLY}": loss(
        pairs_of(others("badge"), ["badge"]), "early"
    ),
    f"BADGE is ahead of grad, {_EARLY}": in_rounds("badge", "grad", "early"),
    "The advantage of grad and BADGE in loss scores is larger late than early": loss_grows(),
}

# Questions the paper leaves open.
OURS: Claims = {
    "The reference helps: grad beats gradnorm": mean("grad", "gradnorm"),
    f"The reference moves less than {HALF}, either way": alike("grad", "gradnorm"),
    "Spreading helps: grad-spread beats grad": mean("grad-spread", "grad"),
    "Sampling helps: powergrad beats grad": mean("powergrad", "grad"),
    f"Sampling reaches BADGE: powergrad is at most {HALF} behind": mean(
        "powergrad", "badge", -HALF_POINT
    ),
    "Sampling beats the simple rule: powergrad beats margin": mean("powergrad", "margin"),
    f"Sampling helps from the start: powergrad is ahead of random, {_EARLY}": in_rounds(
        "powergrad", "random", "early"
    ),
    f"The top of the scores starts badly: grad is behind random, {_EARLY}": in_rounds(
        "random", "grad", "early"
    ),
    f"grad alone leads late: the lowest loss score, {_LATE}": loss(
        pairs_of(others("grad"), ["grad"]), "late"
    ),
    f"grad is ahead of BADGE, {_LATE}": in_rounds("grad", "badge", "late"),
    "On CIFAR-10 with LeNet, grad is below random": difference("cifar10-lenet", "random", "grad"),
    f"On CIFAR-10 with LeNet, powergrad is at most {HALF} behind BADGE": difference(
        "cifar10-lenet", "powergrad", "badge", -HALF_POINT
    ),
}

_STRONG = f": at most {HALF} behind any rule"
_CONVERGE = wider("early", "late")
_PANELS: dict[str, Claims] = {
    "20newsgroups-mlp": {
        f"grad among the most label-efficient{_STRONG}": near("grad"),
        "grad, k-center and BADGE above random and entropy": above(others(*_WEAK), _WEAK),
        "the gap grows with the budget": wider("late", "early"),
    },
    "isolet-mlp": {"differences early, then the curves converge": _CONVERGE},
    "pokerhand-mlp": {
        "the choice matters most at middling budgets": wider("mid", "early", "late"),
        "BADGE and entropy improve fastest early": above(
            ("badge", "entropy"), others("badge", "entropy"), "early"
        ),
        f"grad consistently strong{_STRONG}": near("grad"),
        "all but random converge": wider("early", "late", rules=others("random")),
        "random trails at the end": above(others("random"), ("random",), "late"),
    },
    "stl10-lenet": {
        f"all remain close{_STRONG}": near(*RULES),
        "BADGE the strongest early": above(("badge",), others("badge"), "early"),
        "grad closer to BADGE late": catches_up("grad", "badge"),
    },
    "gtsrb-vgg16": {
        f"grad consistently strong{_STRONG}": near("grad"),
        f"grad quick to high accuracy{_STRONG}": near("grad", stage="early"),
        f"random and BADGE within {HALF} late": together("badge", "random", "late"),
        "k-center the least steady": unsteady("kcenter"),
    },
    "svhn-lenet": {
        "BADGE and grad above random and entropy": above(("badge", "grad"), _WEAK),
        "k-center below all": above(others("kcenter"), ("kcenter",)),
    },
    "cifar10-vgg16": {
        f"grad among the strongest{_STRONG}": near("grad"),
        "grad, BADGE and k-center above entropy": above(("grad", "badge", "kcenter"), ("entropy",)),
        "entropy less far behind them late": catches_up("entropy", "grad", "badge", "kcenter"),
    },
    "cifar10-resnet18": {
        f"all tightly clustered{_STRONG}": near(*RULES),
        "grad marginally ahead of all": above(("grad",), others("grad")),
        "entropy behind all": above(others("entropy"), ("entropy",)),
        "the curves converge": _CONVERGE,
    },
    "cinic10-resnet18": {
        "grad, BADGE and k-center above random and entropy early": above(
            others(*_WEAK), _WEAK, "early"
        ),
        "the curves converge": _CONVERGE,
    },
}

# What the paper says of single learning curves.
PANELS: Claims = {
    f"{experiment}: {says}": only(experiment, measure)
    for experiment, claims in _PANELS.items()
    for says, measure in claims.items()
}
