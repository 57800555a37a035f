"""Train a small network on 50 digits, let every rule choose 20 more, train again, compare.

python examples/demo.py            # prints a table, leaves demo/report.png
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor, nn

import askance
from askance.seeding import Draws

START, ASKED, SEEDS = 50, 20, 5
REPORT = Path("demo") / "report.png"


@dataclass
class Outcome:
    """What one rule did over all seeds."""

    accuracies: list[float]
    seconds: list[float]
    first_picks: np.ndarray


def fit(inputs: Tensor, labels: Tensor, seed: int) -> nn.Module:
    """A small MLP trained from scratch; the same seed starts from the same weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for _ in range(60):
            for batch in torch.randperm(len(inputs)).split(8):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(inputs[batch]), labels[batch]).backward()
                optimizer.step()
    return model.eval()


def accuracy(model: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    with torch.no_grad():
        return float((model(inputs).argmax(dim=1) == labels).float().mean())


def main() -> None:
    torch.set_num_threads(1)  # the network is too small to share between cores
    data = load_digits()
    inputs = torch.tensor(data.data, dtype=torch.float32) / 16
    labels = torch.tensor(data.target)
    order = Draws(0).generator("demo split").permutation(len(inputs))
    train, test = torch.from_numpy(order[:1297]), torch.from_numpy(order[1297:])
    rules = askance.strategies.names()
    outcomes = {rule: Outcome([], [], np.empty(0)) for rule in rules}
    before = []
    for seed in track(range(SEEDS), description=f"{len(rules)} rules × {SEEDS} seeds"):
        shuffled = train[torch.from_numpy(Draws(seed).generator("demo start").permutation(1297))]
        seen, pool = shuffled[:START], shuffled[START:]
        model = fit(inputs[seen], labels[seen], seed)
        before.append(accuracy(model, inputs[test], labels[test]))
        for rule in rules:
            start = time.perf_counter()
            picks = askance.select(
                model, (inputs[seen], labels[seen]), inputs[pool], ASKED, strategy=rule, seed=seed
            )
            outcome = outcomes[rule]
            outcome.seconds.append(time.perf_counter() - start)
            more = torch.cat([seen, pool[picks.indices]])
            again = fit(inputs[more], labels[more], seed)
            outcome.accuracies.append(accuracy(again, inputs[test], labels[test]))
            if seed == 0:
                outcome.first_picks = data.images[pool[picks.indices]]
    ranked = sorted(outcomes.items(), key=lambda item: -float(np.mean(item[1].accuracies)))
    show(ranked, before)
    draw(ranked, before)
    Console().print(f"Open [bold]{REPORT}[/bold] to see which digits each rule asked for.")


def show(ranked: list[tuple[str, Outcome]], before: list[float]) -> None:
    table = Table(title=f"digits: {START} labels, then {ASKED} more; mean of {SEEDS} seeds")
    table.add_column("rule")
    table.add_column("accuracy after labelling", justify="right")
    table.add_column("gain", justify="right")
    table.add_column("time to select", justify="right")
    for rule, outcome in ranked:
        mean, spread = np.mean(outcome.accuracies), np.std(outcome.accuracies, ddof=1)
        gain = mean - np.mean(before)
        table.add_row(
            rule,
            f"{mean:.1%} ± {spread:.1%}",
            f"{gain:+.1%}",
            f"{1000 * np.median(outcome.seconds):.1f} ms",
        )
    table.caption = f"before: {np.mean(before):.1%} ± {np.std(before, ddof=1):.1%}"
    Console().print(table)


def draw(ranked: list[tuple[str, Outcome]], before: list[float]) -> None:
    """One row a rule: its accuracy, and the first digits it asked for."""
    figure, axes = plt.subplots(
        len(ranked),
        2,
        figsize=(9, 0.55 * len(ranked) + 1),
        width_ratios=[1, 2.6],
        layout="constrained",
    )
    low = min(before) - 0.02
    high = max(max(outcome.accuracies) for _, outcome in ranked) + 0.01
    for (bar, strip), (rule, outcome) in zip(axes, ranked, strict=True):
        mean = float(np.mean(outcome.accuracies))
        bar.barh([0], [mean], color="#0072B2" if "grad" in rule else "#BBBBBB")
        bar.plot(outcome.accuracies, np.zeros(SEEDS), "|", color="black", markersize=10)
        bar.axvline(float(np.mean(before)), color="black", linestyle=":", linewidth=1)
        bar.set_xlim(low, high)
        bar.set_yticks([0], [rule])
        bar.spines[["top", "right", "bottom"]].set_visible(False)
        bar.set_xticks([])
        strip.imshow(np.hstack([np.pad(d, 1) for d in outcome.first_picks[:14]]), cmap="gray_r")
        strip.set_axis_off()
    ticks = [t for t in np.arange(0.7, 1.0, 0.02) if low <= t <= high]
    axes[-1, 0].set_xticks(ticks[::2], [f"{tick:.0%}" for tick in ticks[::2]])
    axes[0, 0].set_title("test accuracy (dots: before)", fontsize=9)
    axes[0, 1].set_title("the first digits asked for, seed 0", fontsize=9)
    REPORT.parent.mkdir(exist_ok=True)
    figure.savefig(REPORT, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
