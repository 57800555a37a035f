"""What an acquisition costs: seconds for each rule, by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from askance.figures.style import BLUE, GREY, ORANGE, SKY, new_figure, panel, shorten, styled

# Of an acquisition, in their order; "labeled" is the labelled set's own pass, told apart.
PARTS = {"labeled": GREY, "forward": SKY, "score": ORANGE, "select": BLUE}


@styled
def timing(seconds: Mapping[str, Sequence[Mapping[str, float]]], title: str = "") -> Figure:
    """Mean seconds an acquisition, stacked by stage, ± 1 std of the whole without the labelled pass.

    Args:
        seconds: for each rule, one mapping of stages to seconds for each acquisition.
    """
    rules = sorted(seconds, key=lambda rule: -acquisition_seconds(seconds[rule]).mean())
    figure = new_figure(5.2, 0.34 * len(rules) + 1.3)
    axes = figure.subplots()
    start = np.zeros(len(rules))
    for stage, colour in PARTS.items():
        width = np.array([np.mean([one.get(stage, 0.0) for one in seconds[r]]) for r in rules])
        hatch = "////" if stage == "labeled" else None
        name = "labelled set" if stage == "labeled" else stage
        axes.barh(
            range(len(rules)),
            width,
            left=start,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            label=name,
            linewidth=0,
            height=0.62,
        )
        start += width
    spread = [
        acquisition_seconds(seconds[rule]).std(ddof=1) if len(seconds[rule]) > 1 else 0
        for rule in rules
    ]
    axes.errorbar(start, range(len(rules)), xerr=spread, fmt="none", ecolor="black", capsize=2)
    axes.set_yticks(range(len(rules)), [shorten(rule) for rule in rules])
    axes.set_xlim(left=0)
    axes.set(xlabel="seconds an acquisition")
    axes.tick_params(axis="y", length=0)
    panel(axes, shorten(title, 50), grid="x")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def acquisition_seconds(acquisitions: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
    """Seconds of each acquisition (N,), without training and the labelled set's own pass."""
    parts = [stage for stage in PARTS if stage != "labeled"]
    return np.array([sum(one.get(stage, 0.0) for stage in parts) for one in acquisitions])
