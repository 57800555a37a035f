"""Run the `digits` experiment and draw what came of it.

python examples/demo.py            # leaves demo/store.sqlite and demo/report.png
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from askance import data
from askance.bench.store import Store
from askance.cli import main as askance

FOLDER = Path("demo")
REPORT = FOLDER / "report.png"
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
SHOWN = 16


def draw() -> None:
    """Learning curves, mean ± 1 std over seeds, and the first digits each rule asked for."""
    with Store.read(FOLDER) as store:
        rounds = store.rounds()
    images = data.load("digits").raw
    curves: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in rounds:
        curves[record.strategy][record.labels].append(record.accuracy)
    rules = sorted(curves, key=lambda rule: -np.mean([np.mean(a) for a in curves[rule].values()]))
    figure, grid = plt.subplot_mosaic(
        [["curves", rule] for rule in rules],
        figsize=(10, 4.2),
        width_ratios=[1, 1.1],
        layout="constrained",
    )
    axis, strips = grid["curves"], [grid[rule] for rule in rules]
    for rule, colour, strip in zip(rules, COLOURS, strips, strict=False):
        labels = sorted(curves[rule])
        mean = np.array([np.mean(curves[rule][n]) for n in labels])
        std = np.array([np.std(curves[rule][n], ddof=1) for n in labels])
        axis.plot(labels, mean, color=colour, label=rule)
        axis.fill_between(labels, mean - std, mean + std, color=colour, alpha=0.12, linewidth=0)
        first = next(r for r in rounds if (r.strategy, r.seed, r.round) == (rule, 0, 3))
        row = np.hstack([np.pad(np.asarray(images[int(i)]), 1) for i in first.picks[:SHOWN]])
        strip.imshow(row, cmap="gray_r")
        strip.set_ylabel(rule, rotation=0, ha="right", va="center", color=colour)
        strip.set(xticks=[], yticks=[])
        strip.spines[:].set_visible(False)
    axis.set(xlabel="labels", ylabel="test accuracy", title="digits: mean ± 1 std of 5 seeds")
    axis.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, decimals=0))
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    strips[0].set_title("what each rule asked for with 80 labels, seed 0", fontsize=10)
    figure.savefig(REPORT, dpi=150)
    plt.close(figure)


def main() -> int:
    code = askance(["run", "digits", "--out", str(FOLDER)])
    if code == 0:
        draw()
        print(f"Open {REPORT} to see the curves, and which digits each rule asked for.")
    return code


if __name__ == "__main__":
    # Worker processes import this file too: only the first process runs the demo.
    sys.exit(main())
