"""Where a batch lies: are entropy's picks clumped and `grad`'s spread?

The paper shows PCA pictures of one acquisition on MNIST. Here each picture has its numbers, and they
are taken over several starts, beside those of batches drawn at random. Distances are Euclidean between
flattened inputs, and between pseudo-labelled gradients of the last layer, bias included; both in the
space itself and in the plane the picture shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from askance.figures import style
from askance.paper.studies.geometry_run import (
    CHANCE,
    SPACES,
    VIEWS,
    GeometryOptions,
    GeometryResult,
    Plane,
    run,
    values,
)
from askance.paper.studies.study import Study, StudyTable, listed


def table(result: GeometryResult) -> StudyTable:
    """Every measure, a row for each space, view, size and rule."""
    options = result.options
    kinds = product(SPACES, VIEWS, options.batches, (*options.rules, CHANCE))

    def cell(measure: str, form: str) -> Callable[[tuple[str, str, int, str]], str]:
        return lambda kind: format(float(values(result, *kind, measure).mean()), form)

    return StudyTable.of(
        kinds,
        ("where", lambda kind: f"{kind[0]}, {kind[1]}"),
        ("B", lambda kind: str(kind[2])),
        ("rule", lambda kind: kind[3]),
        ("mean distance", cell("mean_distance", ".3g")),
        ("coverage radius", cell("coverage_radius", ".3g")),
        ("close pairs", cell("close_share", ".1%")),
        names=3,
    )


def findings(result: GeometryResult) -> str:
    """Whether `grad` spreads its picks wider than entropy; then the distances they are judged by."""
    options = result.options
    batch, starts = max(options.batches), options.starts
    sizes = ", ".join(map(str, options.batches))
    views_won = 0
    alone = {}
    for view in VIEWS:
        parts = []
        for space in SPACES:
            grad, entropy = (
                values(result, space, view, batch, rule, "mean_distance")
                for rule in ("grad", "entropy")
            )
            won = int((grad > entropy).sum())
            views_won += 2 * won > starts
            ratios = _ratios(result, space, view, [batch])
            parts.append(f"{space} {ratios} (`grad` above entropy in {won} of {starts} starts)")
        alone[view] = "; ".join(parts)
    verdict = {4: "all four views", 0: "none of the four views"}.get(
        views_won, f"{views_won} of the four views"
    )
    tight = [
        f"the {space}' {view}"
        for view, space in product(VIEWS, SPACES)
        if _over_chance(result, space, view, "entropy", [batch]) < 1
    ]
    averaged = "; ".join(f"{s} {_ratios(result, s, 'plane', options.batches)}" for s in SPACES)

    def in_gradients(measure: str, form: str) -> str:
        rules = (*options.rules, CHANCE)
        return ", ".join(
            f"{rule} {_mean(result, 'gradients', 'space', batch, rule, measure):{form}}"
            for rule in rules
        )

    farthest, by_chance = (
        _mean(result, "gradients", "space", batch, rule, "coverage_radius")
        for rule in ("grad", CHANCE)
    )
    return listed(
        f"`grad` spreads its picks wider than entropy in {verdict} at B = {batch}: inputs and "
        f"gradients, each in the plane and in the full space. Entropy's picks are tighter than random "
        f"ones in {', '.join(tight) or 'none of them'}.",
        f"Setting: {options.points:,} points ({result.data}), {options.labeled} of them labelled at "
        f"random, one hidden layer of {options.hidden}. {starts} start{'s' * (starts > 1)}; all rules "
        f"are asked with the same network. Distances are the mean distance of picks over that of "
        f"random batches.",
        f"In the PCA planes, where the paper looks, mean over B = {sizes}, as the claims are judged: "
        f"{averaged}.",
        f"In the PCA planes, B = {batch} alone: {alone['plane']}.",
        f"In the full space, B = {batch} alone: {alone['space']}.",
        f"In the full space of gradients, B = {batch}, the pairs of picks closer than the pool's 1% "
        f"quantile are {in_gradients('close_share', '.1%')}. The coverage radius is "
        f"{in_gradients('coverage_radius', '.3g')}.",
        "Distance in gradient space grows with the length of gradients, which is what `grad` looks "
        "for: its picks are far apart, and yet cover the pool worse than random ones."
        if farthest > by_chance
        else "",
    )


def _mean(
    result: GeometryResult, space: str, view: str, batch: int, rule: str, measure: str
) -> float:
    return float(values(result, space, view, batch, rule, measure).mean())


def _over_chance(
    result: GeometryResult, space: str, view: str, rule: str, batches: Sequence[int]
) -> float:
    """Mean distance over that of random batches, the mean over sizes."""
    ratios = [
        values(result, space, view, batch, rule, "mean_distance")
        / values(result, space, view, batch, CHANCE, "mean_distance")
        for batch in batches
    ]
    return float(np.mean(ratios))


def _ratios(result: GeometryResult, space: str, view: str, batches: Sequence[int]) -> str:
    """ "grad 0.75, entropy 0.66"."""
    return ", ".join(
        f"{rule} {_over_chance(result, space, view, rule, batches):.2f}"
        for rule in result.options.rules
    )


_MEASURES = {
    "mean_distance": "mean distance",
    "coverage_radius": "coverage radius",
    "close_share": "close pairs",
}


@style.styled
def draw(result: GeometryResult) -> Figure:
    """A row each space: on the left a picture each size, on the right a chart each measure."""
    batches = result.options.batches
    figure = style.new_figure(2.4 * (len(batches) + len(_MEASURES)), 5.6)
    parts = figure.subfigures(1, 2, squeeze=False, width_ratios=[len(batches), len(_MEASURES)])
    pictures, charts = parts[0]
    left = pictures.subplots(len(SPACES), len(batches), squeeze=False)
    right = charts.subplots(len(SPACES), len(_MEASURES), squeeze=False)
    for row, plane in enumerate(result.planes):
        for axis, batch in zip(left[row], batches, strict=True):
            _picture(axis, result, plane, batch)
        for axis, measure in zip(right[row], _MEASURES, strict=True):
            _chart(axis, result, plane.space, measure)
    pictures.legend(
        *left[0][0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=6,
        markerscale=1.3,
    )
    handles, texts = right[0][0].get_legend_handles_labels()
    charts.legend(handles[-3:], texts[-3:], loc="outside lower center", ncols=3)
    return figure


def _picture(axis: Axes, result: GeometryResult, plane: Plane, batch: int) -> None:
    points = np.array(plane.points)

    def dots(rows: NDArray[np.int64] | slice, **options: Any) -> None:
        axis.scatter(points[rows, 0], points[rows, 1], **options)

    dots(slice(None), s=3, color=style.POOL, linewidths=0, rasterized=True, label="pool")
    for rule in result.options.rules:
        picked, look = np.array(result.picks[rule][str(batch)]), style.rule_style(rule)
        dots(
            picked, s=17, marker=look.marker, color=look.colour, edgecolors="white",
            linewidths=0.4, label=rule,
        )  # fmt: skip
    dots(np.array(result.labeled), s=20, marker="x", color="black", linewidths=1, label="labelled")
    style.panel(axis, f"{plane.space}, B = {batch}", grid=None)
    axis.set(xticks=[], yticks=[])
    axis.set_xlabel(f"PC 1 ({plane.explained[0]:.0%})")
    axis.set_ylabel(f"PC 2 ({plane.explained[1]:.0%})")


def _chart(axis: Axes, result: GeometryResult, space: str, measure: str) -> None:
    """Filled: the space, with the range over starts; hollow: the plane of the picture."""
    options, is_ratio = result.options, measure != "close_share"
    places = np.arange(len(options.batches))

    def sizes(rule: str, view: str) -> list[NDArray[Any]]:
        """By size of batch, a number a start; over that of random batches where it is a ratio."""
        of_rule, by_chance = (
            [values(result, space, view, n, one, measure) for n in options.batches]
            for one in (rule, CHANCE)
        )
        return [a / b for a, b in zip(of_rule, by_chance, strict=True)] if is_ratio else of_rule

    for number, rule in enumerate(options.rules):
        at = places + 0.25 * (number - (len(options.rules) - 1) / 2)
        look: dict[str, Any] = {
            "color": style.rule_style(rule).colour,
            "marker": style.rule_style(rule).marker,
        }
        look |= {"linestyle": "", "clip_on": False}
        full, flat = sizes(rule, "space"), sizes(rule, "plane")
        lows, highs = list(map(np.min, full)), list(map(np.max, full))
        axis.vlines(at - 0.04, lows, highs, color=style.rule_style(rule).colour, linewidth=1.2)
        axis.plot(at - 0.04, list(map(np.mean, full)), markersize=4.5, **look)
        axis.plot(
            at + 0.06, list(map(np.mean, flat)), markersize=4, markerfacecolor="white", **look
        )
    level = list(map(np.mean, sizes(CHANCE, "space")))
    grey: dict[str, Any] = {"color": style.GREY, "marker": "o", "linestyle": "", "markersize": 4.5}
    axis.plot([], [], label="in the space, range over starts", **grey)
    axis.plot([], [], label="in the plane", markerfacecolor="white", **grey)
    axis.plot(
        places,
        level,
        color=style.rule_style(CHANCE).colour,
        linestyle="--",
        linewidth=1,
        label=CHANCE,
    )
    if not is_ratio:
        axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
        axis.set_ylim(bottom=0 if level[0] else None)
    style.panel(axis, f"{space}: {_MEASURES[measure]}")
    axis.set_ylabel("times that of random batches" if is_ratio else "share of pairs of picks")
    axis.set_xlim(-0.5, len(places) - 0.5)
    axis.set_xticks(places, [str(batch) for batch in options.batches])
    axis.set_xlabel("B")


STUDY = Study(
    name="geometry",
    about="are entropy's picks clumped and grad's spread?",
    full=GeometryOptions(),
    quick=GeometryOptions(starts=5, chance=50),
    result=GeometryResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)
