"""Penalty heat-maps above their loss bars, three views side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from askance.experiments.statistics.penalty import Penalty
from askance.figures.style import new_figure, panel, rule_style, shorten, styled

COLUMNS = 3
_ENOUGH = 0.6  # of the scale, from where a cell is too dark for black


@styled
def penalty(views: Mapping[str, Penalty], columns: int = COLUMNS) -> Figure:
    """Each view's matrix (rows win over columns) and, below it, its loss scores, lowest first.

    A view in which nothing was tested has its title and an empty place.
    """
    blocks = math.ceil(len(views) / columns)
    columns = min(columns, len(views))
    size = max(len(view.methods) for view in views.values())
    longest = max((len(shorten(m)) for view in views.values() for m in view.methods), default=0)
    side = max(2.9, 0.48 * size + 1.2) + 0.06 * max(0, longest - 11)
    figure = new_figure(side * columns + 0.3, (side + 0.29 * size + 0.9) * blocks)
    grid = figure.subplots(
        2 * blocks,
        columns,
        squeeze=False,
        gridspec_kw={"height_ratios": [side, 0.29 * size + 0.8] * blocks},
    )
    for place, (name, view) in enumerate(views.items()):
        row, column = 2 * (place // columns), place % columns
        if not view.experiments_MM.any():
            panel(grid[row, column], shorten(name, 30), grid=None)
            grid[row, column].set(xticks=[], yticks=[])
            grid[row, column].spines[:].set_visible(False)
            grid[row + 1, column].set_visible(False)
            continue
        _heat(grid[row, column], view, name)
        _bars(grid[row + 1, column], view)
    for place in range(len(views), blocks * columns):
        for row in (0, 1):
            grid[2 * (place // columns) + row, place % columns].set_visible(False)
    return figure


def _heat(axes: Axes, view: Penalty, title: str) -> None:
    matrix, size = view.matrix_MM, len(view.methods)
    top = max(float(matrix.max(initial=0)), 1e-9)
    axes.imshow(matrix, cmap="Blues", vmin=0, vmax=max(top, 1.0), aspect="equal")
    scale = max(top, 1.0)
    for i in range(size):
        for j in range(size):
            text = "–" if i == j else "" if not view.experiments_MM[i, j] else f"{matrix[i, j]:.2f}"
            dark = matrix[i, j] > _ENOUGH * scale
            colour = "white" if dark else "#222222" if matrix[i, j] else "#8A8A8A"
            axes.text(
                j, i, text, ha="center", va="center", fontsize=8, color=colour,
                in_layout=False,  # it stands inside: measuring it would move nothing and take time
            )  # fmt: skip
    names = [shorten(method) for method in view.methods]
    axes.set_xticks(range(size), names, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(size), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    panel(axes, shorten(title, 30), grid=None)


def _bars(axes: Axes, view: Penalty) -> None:
    loss = view.loss_M
    order = np.argsort(loss, kind="stable")[::-1]  # drawn from the bottom up: the lowest on top
    names = [view.methods[i] for i in order]
    axes.barh(
        range(len(names)),
        loss[order],
        color=[rule_style(name).colour for name in names],
        height=0.62,
    )
    for place, i in enumerate(order):
        axes.annotate(
            f"{loss[i]:.3f}",
            (loss[i], place),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(range(len(names)), [shorten(name) for name in names])
    axes.set_xlim(0, max(float(loss.max(initial=0)) * 1.25, 0.05))
    axes.set_xlabel("loss score (lower is better)")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(axis="y", length=0)
    panel(axes, grid="x")
