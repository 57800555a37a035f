"""What each rule gains over random, experiment by experiment: the picture to see first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from askance.experiments.statistics.resample import Interval
from askance.figures.style import new_figure, panel, rule_style, shorten, styled

Gains = Mapping[str, Mapping[str, Interval]]


@styled
def gains(by_experiment: Gains, title: str = "") -> Figure:
    """A line of dots an experiment: points of mean accuracy over random, with 95% intervals.

    Args:
        by_experiment: from top to bottom, and by rule, the gain as a share with its interval. A row
            whose name starts with "mean" is set off by a line.
    """
    rules = list(dict.fromkeys(rule for row in by_experiment.values() for rule in row))
    figure = new_figure(8, 1.3 + (0.62 if len(by_experiment) < 10 else 0.4) * len(by_experiment))
    axes = figure.subplots()
    step = 0.7 / max(len(rules) - 1, 1)
    for place, (name, row) in enumerate(by_experiment.items()):
        if place % 2:
            axes.axhspan(place - 0.5, place + 0.5, color="#F5F5F5", zorder=0)
        if name.startswith("mean"):
            axes.axhline(place - 0.5, color="black", linewidth=0.8)
        for at, rule in enumerate(rules):
            if rule in row:
                _dot(axes, row[rule], place - 0.35 + at * step, rule)
    axes.axvline(0, color=rule_style("random").colour, linewidth=1.4, zorder=1)
    axes.set_yticks(range(len(by_experiment)), [shorten(name, 34) for name in by_experiment])
    axes.set_ylim(len(by_experiment) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(
        "points of test accuracy above random, mean over the labels spent (95% interval)"
    )
    panel(axes, title, grid="x")
    legend = {text: handle for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        legend.values(), legend.keys(), loc="outside lower center", ncols=min(len(legend), 6)
    )
    return figure


def _dot(axes: Axes, gain: Interval, y: float, rule: str) -> None:
    style = rule_style(rule)
    value, low, high = (100 * end for end in (gain.value, gain.low, gain.high))
    if np.isfinite(low):
        axes.plot([low, high], [y, y], color=style.colour, linewidth=1.5, alpha=0.75)
    axes.plot(
        value, y, linestyle="none", color=style.colour, marker=style.marker, markersize=5.5,
        label=shorten(rule),
    )  # fmt: skip
