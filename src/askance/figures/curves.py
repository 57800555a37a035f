"""Learning curves: mean over seeds ± 1 standard deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from askance.experiments.statistics.table import ExperimentResults, methods_of
from askance.figures.style import new_figure, rule_style, shorten, styled

FEW = 6  # rules whose names fit in the corner that rising curves leave free


@styled
def learning_curves(one: ExperimentResults, title: str | None = None) -> Figure:
    """One experiment; the legend in the order in which curves end, beside them where it is long."""
    beside = len(one.methods) > FEW
    figure = new_figure(5.6 if beside else 4.8, 3.5)
    axes = figure.subplots()
    handles, ends = _draw(axes, one)
    axes.set_title(shorten(one.name if title is None else title, 50))
    order = sorted(handles, key=lambda method: -ends[method])
    place = (
        {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if beside else {"loc": "lower right"}
    )
    axes.legend([handles[m] for m in order], [shorten(m) for m in order], **place)
    return figure


@styled
def curve_grid(
    results: Sequence[ExperimentResults | str],
    methods: Sequence[str] | None = None,
    columns: int = 2,
) -> Figure:
    """Several experiments as panels (a), (b), …, with one legend of the methods in their order.

    A name in place of an experiment is one that is not here: its panel stays empty, so that the others
    keep their letters.
    """
    rows = math.ceil(len(results) / columns)
    figure = new_figure(4.2 * columns, 2.9 * rows + 0.4)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    handles: dict[str, Artist] = {}
    for place, (axes, one) in enumerate(zip(panels, results, strict=False)):
        letter = f"({chr(ord('a') + place)})"
        if isinstance(one, str):
            axes.set_title(shorten(f"{letter} {one}: not here", 50))
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            continue
        lines, _ = _draw(axes, one)
        handles |= lines
        axes.set_title(shorten(f"{letter} {one.dataset}, {one.model}", 50))
    for axes in panels[len(results) :]:
        axes.set_visible(False)
    there = [one for one in results if not isinstance(one, str)]
    methods = [m for m in methods or methods_of(there) if m in handles]
    figure.legend(
        [handles[method] for method in methods],
        [shorten(method) for method in methods],
        loc="outside lower center",
        ncols=min(len(methods), 3 * columns),
    )
    return figure


def _draw(axes: Axes, one: ExperimentResults) -> tuple[dict[str, Artist], dict[str, float]]:
    """Mean and std of the seeds there are in each round; each method's line, and where it ends."""
    lines: dict[str, Artist] = {}
    ends = {}
    for method in one.methods:
        row = one.index(method)
        accuracy_ST, labels_ST = one.accuracy_MST[row], one.labels_MST[row]
        there = np.isfinite(accuracy_ST).any(axis=0)
        accuracy_ST, labels_ST = accuracy_ST[:, there], labels_ST[:, there]
        x, y = np.nanmean(labels_ST, axis=0), np.nanmean(accuracy_ST, axis=0)
        seeds = np.isfinite(accuracy_ST).sum(axis=0)
        squares = np.nansum((accuracy_ST - y) ** 2, axis=0)
        std = np.sqrt(squares / np.maximum(seeds - 1, 1))
        style = rule_style(method)
        axes.fill_between(x, y - std, y + std, color=style.colour, alpha=0.10, linewidth=0)
        (lines[method],) = axes.plot(x, y, **style.line(), markevery=max(1, len(x) // 10))
        ends[method] = float(y[-1])
    axes.set(xlabel="labels", ylabel="test accuracy")
    axes.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.6g}%")  # never rounds a tick
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.margins(x=0.02)
    return lines, ends
