"""A run as a notebook shows it: its measurements over the labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape

History = Sequence[tuple[int, dict[str, float]]]


def html_curve(title: str, history: History) -> str:
    """The title, and a curve of each metric that was logged, over the number of labels."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for labels, metrics in history:
        for name, value in metrics.items():
            curves.setdefault(name, []).append((labels, value))
    heading = f"<p><b>{escape(title)}</b></p>"
    if not curves:
        return f"{heading}<p>Log a measurement in each round, as in run.log(accuracy=0.9).</p>"
    from matplotlib.figure import Figure  # without pyplot, which keeps every figure

    figure = Figure(figsize=(3.2 * len(curves), 2.4), layout="constrained")
    axes = figure.subplots(1, len(curves), squeeze=False)[0]
    for plot, (name, points) in zip(axes, curves.items(), strict=True):
        plot.plot([x for x, _ in points], [y for _, y in points], marker="o")
        plot.set(xlabel="labels", ylabel=name)
        plot.grid(visible=True, alpha=0.3)
    made = io.StringIO()
    figure.savefig(made, format="svg", metadata={"Date": None})
    return heading + made.getvalue().partition("<svg")[1] + made.getvalue().partition("<svg")[2]
