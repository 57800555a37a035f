"""Rules across experiments: performance profiles, and mean ranks with their critical difference."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from askance.experiments.statistics.ranks import Profile, Ranks
from askance.figures.style import new_figure, rule_style, shorten, styled


@styled
def profiles(profile: Profile) -> Figure:
    """Share of runs solved within a factor of the best rule's labels; higher is better."""
    figure = new_figure(4.8, 3.5)
    axes = figure.subplots()
    end = max(float(profile.factors_K[-1]) * 1.05, 1.1)
    x = np.append(profile.factors_K, end)
    for method, share_K in zip(profile.methods, profile.share_MK, strict=True):
        style = rule_style(method)
        y = np.append(share_K, share_K[-1])
        axes.step(
            x, y, where="post", **style.line(), markevery=max(1, len(x) // 8), label=shorten(method)
        )
    axes.set(
        xlabel="labels needed, as a multiple of the best rule's",
        ylabel="share of runs",
        xlim=(1, end),
        ylim=(0, 1.03),
    )
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    runs = "1 run" if profile.problems == 1 else f"{profile.problems} runs"
    axes.set_title(f"Performance profile, {runs}")
    axes.legend(loc="lower right")
    return figure


@styled
def critical_difference(ranks: Ranks) -> Figure:
    """Mean ranks on one line, best on the left; a bar joins rules no further apart than chance."""
    size = len(ranks.methods)
    half = (size + 1) // 2
    figure = new_figure(5.6, 1.5 + 0.26 * half + 0.12 * len(ranks.groups))
    axes = figure.subplots()
    axes.axis("off")
    low, high = 1.0, float(max(size, 2))
    axes.plot([low, high], [0, 0], color="black", linewidth=1)
    for tick in range(1, size + 1):
        axes.plot([tick, tick], [0, 0.12], color="black", linewidth=1)
        axes.text(tick, 0.22, str(tick), ha="center", va="bottom", fontsize=8)
    below = 0.35 + 0.28 * len(ranks.groups)
    for place, (method, rank) in enumerate(zip(ranks.methods, ranks.mean_M, strict=True)):
        left = place < half
        depth = below + 0.42 * (place if left else size - 1 - place)
        end = low - 0.25 if left else high + 0.25
        colour = rule_style(method).colour
        axes.plot([rank, rank, end], [0, -depth, -depth], color=colour, linewidth=1.3)
        text = f"{shorten(method)}  {rank:.2f}" if left else f"{rank:.2f}  {shorten(method)}"
        side = "right" if left else "left"
        axes.text(end + (-0.06 if left else 0.06), -depth, text, ha=side, va="center", fontsize=9)
    for place, (start, stop) in enumerate(ranks.groups):
        y = -0.18 - 0.28 * place
        ends = [ranks.mean_M[start] - 0.04, ranks.mean_M[stop] + 0.04]
        axes.plot(ends, [y, y], color="black", linewidth=3.5, solid_capstyle="butt")
    if np.isfinite(ranks.critical) and ranks.critical <= high - low:
        axes.plot([low, low + ranks.critical], [0.95, 0.95], color="black", linewidth=1.5)
        axes.text(
            low,
            1.05,
            f"critical difference {ranks.critical:.2f}",
            ha="left",
            va="bottom",
            fontsize=8,
        )
    reach = 0.38 * (high - low)
    axes.set_xlim(low - 0.25 - reach, high + 0.25 + reach)
    axes.set_ylim(-below - 0.42 * half, 1.5)
    return figure
