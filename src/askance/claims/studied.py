"""Claims that the studies judge: where picks lie, shift, contraction, cost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from askance.claims.judge import Judged, judged
from askance.claims.measures import student
from askance.report.words import several
from askance.studies import contraction, cost, geometry, shift

SLOWER = 0.1  # a tenth: a rule that is no slower than this costs what the other costs


def studied(results: dict[str, Any]) -> list[Judged]:
    """The claims of every study there is a result of."""
    made: dict[str, Callable[[Any], list[Judged]]] = {
        "geometry": _geometry,
        "shift": _shift,
        "contraction": _contraction,
        "cost": _cost,
    }
    return [one for name, judge in made.items() if name in results for one in judge(results[name])]


def _geometry(result: geometry.Result) -> list[Judged]:
    """Mean distances between picks in the planes the paper shows, over those of random batches."""
    rows = []
    for space in geometry.SPACES:
        entropy, grad = (_distance(result, space, rule) for rule in ("entropy", "grad"))
        where = f"in the plane of the {space}"
        n = several(len(entropy), "start")
        of = "mean distance of picks over that of random batches"
        rows += [
            judged(f"Entropy's picks are clumped {where}", f"1 less entropy's {of}",
                   student(1 - entropy), n, unit=1, source="geometry"),
            judged(f"grad's picks are spread wider than entropy's {where}", f"{of}, grad less entropy",
                   student(grad - entropy), n, unit=1, source="geometry"),
        ]  # fmt: skip
    return rows


def _distance(result: geometry.Result, space: str, rule: str) -> Any:
    """Start by start, the mean over batch sizes."""

    def column(name: str, batch: int) -> list[float]:
        wanted = (space, "plane", batch, name)
        return [
            one.spread.mean_distance
            for one in result.measured
            if (one.space, one.view, one.batch, one.rule) == wanted
        ]

    sizes = result.options.batches
    ratios = [np.divide(column(rule, b), column(geometry.CHANCE, b)) for b in sizes]
    return np.mean(ratios, axis=0)


def _shift(result: shift.Result) -> list[Judged]:
    auroc = np.array([one.auroc for one in result.detectors if one.name == "DF"])
    home, away = result.options.inside, result.options.outside
    return [
        judged(
            "DF scores are larger out of distribution",
            f"AUROC of DF for {away} against {home}, less ½",
            student(auroc - 0.5),
            several(len(auroc), "network"),
            unit=1,
            digits=3,
            source="shift",
        )
    ]


def _contraction(result: contraction.Result) -> list[Judged]:
    rows = []
    for name in dict.fromkeys(one.dataset for one in result.series):
        runs = [one for one in result.series if one.dataset == name]
        fall = np.array([1 - one.norms[-1] / one.norms[0] for one in runs])
        rows.append(
            judged(
                f"DF decreases over training: {name}",
                "1 less the last ‖DF‖ over the first",
                student(fall),
                several(len(fall), "draw"),
                unit=1,
                digits=3,
                source="contraction",
            )
        )
    return rows


def _cost(result: cost.Result) -> list[Judged]:
    """Who is faster after the forward pass, which is the same for all; and what sampling costs."""
    rows = []
    for network, _ in result.options.networks:
        after = {
            rule: _seconds(result, network, rule, "score")
            + _seconds(result, network, rule, "select")
            for rule in result.options.rules
        }
        order = [rule for rule in cost.PAPER if rule in after]
        for fast, slow in pairwise(order):
            rows.append(
                judged(
                    f"{fast} is faster than {slow}: {network}",
                    f"milliseconds after the forward pass, {slow} less {fast}",
                    student(after[slow] - after[fast]),
                    several(len(after[fast]), "round"),
                    unit=1000,
                    source="cost",
                )
            )
        if {"powergrad", "entropy"} <= set(after):
            # The pass over the pool is the same for all: its timings differ by chance alone.
            forward = np.mean(
                [_seconds(result, network, rule, "forward") for rule in after], axis=0
            )
            entropy, ours = forward + after["entropy"], forward + after["powergrad"]
            labeled = _seconds(result, network, "powergrad", "labeled")
            for extra, told in ((0.0, ""), (labeled, ", the labelled set's pass counted")):
                rows.append(
                    judged(
                        f"powergrad costs what entropy costs, at most a tenth more{told}: {network}",
                        "entropy's seconds over powergrad's; at least 1/1.1",
                        student(entropy / (ours + extra)),
                        several(len(entropy), "round"),
                        unit=1,
                        limit=1 / (1 + SLOWER),
                        source="cost",
                    )
                )
    return rows


def _seconds(result: cost.Result, network: str, rule: str, phase: str) -> Any:
    return np.array(
        [
            getattr(one, phase)
            for one in result.timings
            if (one.network, one.rule) == (network, rule)
        ]
    )
