"""Claims that the studies judge: where picks lie, shift, contraction, cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from askance.experiments.statistics.table import Floats
from askance.paper.claims.judge import JudgedClaim, Measurement, judged
from askance.paper.claims.measures import slope, student
from askance.paper.studies import contraction, cost, geometry_run, shift
from askance.paper.studies.study import rows_where
from askance.report.formatting import plural

TRAINED = 0.9  # of its first loss: a network that is still above it has not trained
SLOWER = 0.1  # a tenth: a rule that is no slower than this costs what the other costs

Results = Mapping[str, Any]  # of studies, by name
Measured = dict[str, Measurement]


def of_the_paper(results: Results) -> list[JudgedClaim]:
    """The paper's claims of every study there is a result of."""
    return [
        judged(claim, measurement, name)
        for name, measured in _MEASURED.items()
        if name in results
        for claim, measurement in measured(results[name]).items()
    ]


def of_ours(results: Results) -> list[JudgedClaim]:
    """Our own: whether sampled scores cost what entropy costs, at most a tenth more."""
    measured = _sampling_cost(results["cost"]) if "cost" in results else {}
    return [judged(claim, measurement, "cost") for claim, measurement in measured.items()]


def _mean(
    what: str, values_N: Floats, noun: str, unit: float = 1, digits: int = 2, **options: Any
) -> Measurement:
    """The mean of values, each of one start, network, draw or round."""
    n = plural(len(values_N), noun)
    return Measurement(what, student(values_N), n, unit=unit, digits=digits, **options)


def _geometry(result: geometry_run.GeometryResult) -> Measured:
    """Where picks lie in the planes the paper shows, over where random batches do."""
    measured: Measured = {}
    of = "mean distance of picks over that of random batches"
    rules = set(result.options.rules)
    for space in geometry_run.SPACES if {"entropy", "grad"} <= rules else ():
        entropy, grad = (_over_chance(result, space, rule) for rule in ("entropy", "grad"))
        where = f"in the plane of the {space}"
        measured |= {
            f"Entropy's picks are clumped {where}": _mean(
                f"1 less entropy's {of}", 1 - entropy, "start"
            ),
            f"grad's picks are spread wider than entropy's {where}": _mean(
                f"{of}, grad less entropy", grad - entropy, "start"
            ),
        }
    if "badge" in rules:
        radius = _over_chance(result, "gradients", "badge", "coverage_radius")
        what = "1 less BADGE's coverage radius over that of random batches"
        claim = "BADGE's picks cover the plane of the gradients better than random ones"
        measured[claim] = _mean(what, 1 - radius, "start")
    return measured


def _over_chance(
    result: geometry_run.GeometryResult, space: str, rule: str, measure: str = "mean_distance"
) -> Floats:
    """A measure of picks in a plane over that of random batches: by start, the mean over sizes."""
    values = partial(geometry_run.values, result, space, "plane", measure=measure)
    sizes = result.options.batches
    ratios = [values(size, rule) / values(size, geometry_run.CHANCE) for size in sizes]
    return np.asarray(np.mean(ratios, axis=0))


def _shift(result: shift.ShiftResult) -> Measured:
    what = f"AUROC of DF for {result.options.outside} against {result.options.inside}, less ½"
    mean = _mean(what, shift.aurocs(result, "DF") - 0.5, "network", digits=3)
    return {"DF scores are larger out of distribution": mean}


def _contraction(result: contraction.ContractionResult) -> Measured:
    """Of each dataset whether ‖DF‖ falls, seldom rises and levels off, if the dataset is at hand."""
    measured: Measured = {}
    for name in result.options.datasets:
        series = rows_where(result.series, dataset=name)
        norms_NT = np.array([one.norms for one in series])
        idle = bool(series) and np.mean([one.loss[1] / one.loss[0] for one in series]) > TRAINED
        for claim, (what, values) in _FALLING.items():
            if not series:
                measured[f"{claim}: {name}"] = Measurement("the dataset is not here")
                continue
            if idle:
                what += "; the loss on S fell by less than a tenth: the network did not train"
            mean = _mean(what, values(norms_NT), "draw", digits=3, valid=not idle)
            measured[f"{claim}: {name}"] = mean
    return measured


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


_FALLING: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
    "DF decreases over training": ("1 less the last ‖DF‖ over the first", _fall),
    "DF rises only now and then": ("½ less the share of epochs in which it rises", _rarity),
    "DF levels off": ("change in the first third of epochs less that in the last", _calm),
}

_CHOOSING = ("score", "select")
_ALL = ("labeled", "forward", *_CHOOSING)
_COUNTED = ", the labelled set's pass counted"


def _cost(result: cost.CostResult) -> Measured:
    """Who is faster, after the pass over the pool and in all; and whether k-center becomes slower."""
    measured: Measured = {}
    rules = [rule for rule in cost.PAPER if rule in result.options.rules]
    parts = ((_CHOOSING, "", "after the forward pass"), (_ALL, _COUNTED, "in all"))
    for network, _ in result.options.networks:
        seconds = partial(cost.values, result, network)
        for phases, counted, where in parts:
            for fast, slow in pairwise(rules):
                more = seconds(slow, *phases) - seconds(fast, *phases)
                what = f"milliseconds {where}, {slow} less {fast}"
                claim = f"{fast} is faster than {slow}{counted}: {network}"
                measured[claim] = _mean(what, more, "round", 1000)
        if "kcenter" in rules:
            each = seconds("kcenter", "labeled", *_CHOOSING)
            what = f"milliseconds a round, after the forward pass{_COUNTED}"
            growth, n = (
                slope(np.arange(len(each), dtype=np.float64), each),
                plural(len(each), "round"),
            )
            claim = f"k-center takes longer as the labelled set grows: {network}"
            measured[claim] = Measurement(what, growth, n, unit=1000)
    return measured


def _sampling_cost(result: cost.CostResult) -> Measured:
    measured: Measured = {}
    if not {"powergrad", "entropy"} <= set(result.options.rules):
        return measured
    what = "entropy's seconds over powergrad's; at least 1/1.1"
    for network, _ in result.options.networks:
        seconds = partial(cost.values, result, network)
        # The pass over the pool is the same work for all, and counts alike for both.
        pool = np.mean([seconds(rule, "forward") for rule in result.options.rules], axis=0)
        apart, whole = (
            (add + seconds("entropy", *phases)) / (add + seconds("powergrad", *phases))
            for add, phases in ((pool, _CHOOSING), (0.0, _ALL))
        )
        for ratio, counted in ((apart, ""), (whole, _COUNTED)):
            claim = f"powergrad costs what entropy costs, at most a tenth more{counted}: {network}"
            measured[claim] = _mean(what, ratio, "round", limit=1 / (1 + SLOWER))
    return measured


_MEASURED: dict[str, Callable[[Any], Measured]] = {
    "geometry": _geometry,
    "shift": _shift,
    "contraction": _contraction,
    "cost": _cost,
}
