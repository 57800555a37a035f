"""Claims that the studies judge: where picks lie, shift, contraction, cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from askance.experiments.statistics.table import Floats
from askance.paper.claims import of_contraction
from askance.paper.claims.judge import JudgedClaim, Measurement, judged
from askance.paper.claims.measures import slope, student
from askance.paper.studies import cost, geometry_run, shift
from askance.report.formatting import plural

SLOWER = 0.1  # a tenth: a rule that is no slower than this costs what the other costs

Results = Mapping[str, Any]  # of studies, by name
Measured = dict[str, Measurement]


def of_the_paper(results: Results) -> list[JudgedClaim]:
    """The paper's claims of every study there is a result of."""
    claims: list[JudgedClaim] = []
    for name in ("geometry", "shift", "contraction", "cost"):
        if name not in results:
            continue
        if name == "contraction":
            claims += of_contraction.claims(results[name])
            continue
        measured = _MEASURED[name](results[name])
        claims += [judged(claim, measurement, name) for claim, measurement in measured.items()]
    return claims


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
    sizes = ", ".join(map(str, result.options.batches))
    over = f"in that plane over that of random batches, mean over B = {sizes}"
    of = f"mean distance of picks {over}"
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
        what = f"1 less BADGE's coverage radius {over}"
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
    "cost": _cost,
}
