"""Claims that the studies judge: where picks lie, shift, contraction, cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from askance.experiments.statistics.table import Floats
from askance.paper.claims import judge
from askance.paper.claims.case import LEAST_SEEDS
from askance.paper.claims.judge import UNJUDGED, Judged, shown
from askance.paper.claims.measures import slope, student
from askance.paper.studies import contraction, cost, geometry, shift
from askance.report.formatting import plural

TRAINED = 0.9  # of its first loss: a network that is still above it has not trained
SLOWER = 0.1  # a tenth: a rule that is no slower than this costs what the other costs

judged = partial(judge.judged, least=LEAST_SEEDS)


def studied(results: dict[str, Any]) -> list[Judged]:
    """The paper's claims of every study there is a result of."""
    made: dict[str, Callable[[Any], list[Judged]]] = {
        "geometry": _geometry,
        "shift": _shift,
        "contraction": _contraction,
        "cost": _cost,
    }
    return [one for name, judge in made.items() if name in results for one in judge(results[name])]


def sampling_cost(results: dict[str, Any]) -> list[Judged]:
    """Our own: whether sampled scores cost what entropy costs, at most a tenth more."""
    result = results.get("cost")
    if result is None or not {"powergrad", "entropy"} <= set(result.options.rules):
        return []
    rows = []
    for network, _ in result.options.networks:
        seconds = partial(_seconds, result, network)
        # The pass over the pool is the same work for all, and counts alike for both.
        pool = np.mean([seconds(rule, "forward") for rule in result.options.rules], axis=0)
        apart = {rule: pool + seconds(rule, *_CHOOSING) for rule in ("entropy", "powergrad")}
        whole = {rule: seconds(rule, *_ALL) for rule in ("entropy", "powergrad")}
        for taken, told in ((apart, ""), (whole, _COUNTED)):
            rows.append(
                judged(
                    f"powergrad costs what entropy costs, at most a tenth more{told}: {network}",
                    "entropy's seconds over powergrad's; at least 1/1.1",
                    student(taken["entropy"] / taken["powergrad"]),
                    plural(len(pool), "round"),
                    unit=1,
                    limit=1 / (1 + SLOWER),
                    source="cost",
                )
            )
    return rows


def _geometry(result: geometry.GeometryResult) -> list[Judged]:
    """Where picks lie in the planes the paper shows, over where random batches do."""
    rows = []
    of = "mean distance of picks over that of random batches"
    both = {"entropy", "grad"} <= set(result.options.rules)
    for space in geometry.SPACES if both else ():
        entropy, grad = (_over_chance(result, space, rule) for rule in ("entropy", "grad"))
        where = f"in the plane of the {space}"
        n = plural(len(entropy), "start")
        rows += [
            judged(f"Entropy's picks are clumped {where}", f"1 less entropy's {of}",
                   student(1 - entropy), n, unit=1, source="geometry"),
            judged(f"grad's picks are spread wider than entropy's {where}", f"{of}, grad less entropy",
                   student(grad - entropy), n, unit=1, source="geometry"),
        ]  # fmt: skip
    if "badge" in result.options.rules:
        reached = _over_chance(result, "gradients", "badge", "coverage_radius")
        rows.append(
            judged("BADGE's picks cover the plane of the gradients better than random ones",
                   "1 less BADGE's coverage radius over that of random batches",
                   student(1 - reached), plural(len(reached), "start"), unit=1, source="geometry")
        )  # fmt: skip
    return rows


def _over_chance(
    result: geometry.GeometryResult, space: str, rule: str, measure: str = "mean_distance"
) -> Any:
    """A measure of picks in a plane over that of random batches: a start each, the mean over sizes."""

    def column(name: str, batch: int) -> list[float]:
        wanted = (space, "plane", batch, name)
        return [
            getattr(one.spread, measure)
            for one in result.measured
            if (one.space, one.view, one.batch, one.rule) == wanted
        ]

    sizes = result.options.batches
    ratios = [np.divide(column(rule, b), column(geometry.CHANCE, b)) for b in sizes]
    return np.mean(ratios, axis=0)


def _shift(result: shift.ShiftResult) -> list[Judged]:
    auroc = np.array([one.auroc for one in result.detectors if one.name == "DF"])
    home, away = result.options.inside, result.options.outside
    return [
        judged(
            "DF scores are larger out of distribution",
            f"AUROC of DF for {away} against {home}, less ½",
            student(auroc - 0.5),
            plural(len(auroc), "network"),
            unit=1,
            digits=3,
            source="shift",
        )
    ]


def _contraction(result: contraction.ContractionResult) -> list[Judged]:
    """Of each dataset: whether ‖DF‖ falls, seldom rises, and levels off; nothing of one not at hand."""
    rows = []
    for name in result.options.datasets:
        norms = np.array([one.norms for one in result.series if one.dataset == name])
        claims = {
            "DF decreases over training": ("1 less the last ‖DF‖ over the first", _fall),
            "DF rises only now and then": ("½ less the share of epochs in which it rises", _rarity),
            "DF levels off": ("change in the first third of epochs less that in the last", _calm),
        }
        losses = np.array([one.loss for one in result.series if one.dataset == name])
        idle = len(losses) > 0 and float((losses[:, 1] / losses[:, 0]).mean()) > TRAINED
        for claim, (measure, value) in claims.items():
            found = student(value(norms)) if len(norms) else None
            if found and idle:
                why = (
                    f"{measure}; the loss on S fell by less than a tenth: the network did not train"
                )
                figure, n = shown(found, 1, 3), plural(len(norms), "draw")
                rows.append(
                    Judged(f"{claim}: {name}", why, figure, n, UNJUDGED, source="contraction")
                )
                continue
            rows.append(
                judged(
                    f"{claim}: {name}",
                    measure if found else "the dataset is not here",
                    found,
                    plural(len(norms), "draw"),
                    unit=1,
                    digits=3,
                    source="contraction",
                )
            )
    return rows


def _fall(norms_NT: Floats) -> Floats:
    return 1 - norms_NT[:, -1] / norms_NT[:, 0]


def _rarity(norms_NT: Floats) -> Floats:
    return 0.5 - np.mean(np.diff(norms_NT) > 0, axis=1)


def _calm(norms_NT: Floats) -> Floats:
    """Changes as shares, either way."""
    third = norms_NT.shape[1] // 3
    first, last = (
        np.abs(part_NT[:, -1] / part_NT[:, 0] - 1)
        for part_NT in (norms_NT[:, : third + 1], norms_NT[:, -third - 1 :])
    )
    return np.asarray(first - last)


_CHOOSING = ("score", "select")
_ALL = ("labeled", "forward", *_CHOOSING)
_COUNTED = ", the labelled set's pass counted"


def _cost(result: cost.CostResult) -> list[Judged]:
    """Who is faster, after the pass over the pool and in all; and whether k-center becomes slower."""
    rows = []
    for network, _ in result.options.networks:
        seconds = partial(_seconds, result, network)
        order = [rule for rule in cost.PAPER if rule in result.options.rules]
        for phases, told, where in (
            (_CHOOSING, "", "after the forward pass"),
            (_ALL, _COUNTED, "in all"),
        ):
            for fast, slow in pairwise(order):
                more = seconds(slow, *phases) - seconds(fast, *phases)
                rows.append(
                    judged(
                        f"{fast} is faster than {slow}{told}: {network}",
                        f"milliseconds {where}, {slow} less {fast}",
                        student(more),
                        plural(len(more), "round"),
                        unit=1000,
                        source="cost",
                    )
                )
        if "kcenter" in order:
            taken = seconds("kcenter", "labeled", *_CHOOSING)
            rows.append(
                judged(
                    f"k-center takes longer as the labelled set grows: {network}",
                    "milliseconds a round, after the forward pass, the labelled set's pass counted",
                    slope(np.arange(len(taken), dtype=np.float64), taken),
                    plural(len(taken), "round"),
                    unit=1000,
                    source="cost",
                )
            )
    return rows


def _seconds(result: cost.CostResult, network: str, rule: str, *phases: str) -> Floats:
    """Of some phases together, round by round."""
    return np.array(
        [
            sum(getattr(one, phase) for phase in phases)
            for one in result.timings
            if (one.network, one.rule) == (network, rule)
        ]
    )
