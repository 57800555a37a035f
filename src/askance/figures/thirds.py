"""What each rule gains over random while labels are few, and later: one glance says what to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rcParams
from matplotlib.figure import Figure

from askance.experiments.statistics.resample import Interval
from askance.figures.style import DARK, new_figure, panel, shorten, styled

NAMES = ("first labels", "then", "last labels")
Gains = Mapping[str, Sequence[Interval | None]]

# Of the thirds, from few labels to many; they stand out from white and from black.
COLOURS = ("#0072B2", "#56B4E9", "#A6A6A6")
_HEIGHT = 0.26
_BELOW = 0.6  # of the largest gain: so far below zero are bars shown


@styled
def gains_by_third(
    by_rule: Gains, title: str = "", names: Sequence[str] = NAMES, dark: bool = False
) -> Figure:
    """Three bars a rule, one for each third of the budget; the rule with the largest gain on top.

    Large letters on a narrow figure, so that it can be read on a phone. The number beside the bars is
    the gain in all rounds. Bars far below zero are cut, with an arrow where they are.

    Args:
        by_rule: the gain as a share, in all rounds and in each third; see `statistics.thirds.NAMES`.
        names: what the legend calls the thirds.
        dark: for a dark page.
    """
    if dark:
        rcParams.update(DARK)
    rcParams.update({"font.size": 13, "legend.fontsize": 12.5})
    rules = sorted(by_rule, key=lambda rule: -_value(by_rule[rule][0]))
    figure = new_figure(6.2, 1.5 + 0.64 * len(rules))
    axes = figure.subplots()
    for third, (name, colour) in enumerate(zip(names, COLOURS, strict=True)):
        values = [100 * _value(by_rule[rule][third + 1]) for rule in rules]
        places = np.arange(len(rules)) + (third - 1) * _HEIGHT
        axes.barh(places, values, height=_HEIGHT * 0.94, color=colour, label=name, linewidth=0)
    for place, rule in enumerate(rules):
        total = 100 * _value(by_rule[rule][0])
        ends = [100 * _value(gain) for gain in by_rule[rule][1:]]
        axes.annotate(
            f"{round(total, 1) + 0.0:+.1f}".replace("-", "−"),
            (max(0.0, *ends), place),
            (7, 0),
            textcoords="offset points",
            va="center",
            fontweight="bold",
        )
    axes.axvline(0, color=rcParams["text.color"], linewidth=1.2)
    axes.set_yticks(range(len(rules)), [shorten(rule) for rule in rules])
    axes.set_ylim(len(rules) - 0.45, -0.55)
    every = 100 * np.array([[_value(gain) for gain in by_rule[rule][1:]] for rule in rules])
    most, least = max(1.0, np.nanmax(every)), min(0.0, np.nanmin(every))
    low = max(1.05 * least, -_BELOW * most)
    axes.set_xlim(low, 1.25 * most)
    for place, third in np.argwhere(every < low):
        y = place + (third - 1) * _HEIGHT
        axes.plot(low, y, marker=4, color=rcParams["text.color"], clip_on=False, markersize=7)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("points of accuracy above random labelling")
    panel(axes, grid="x")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=14)
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _value(gain: Interval | None) -> float:
    return float("nan") if gain is None else gain.value
