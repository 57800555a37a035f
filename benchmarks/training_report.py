"""Turn what `training.py` measured into results/training: one JSON, one page, one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from measuring import save

COMMAND = "python benchmarks/training.py"
PAPER = {"entropy": 1.06, "grad": 2.44, "badge": 3.07, "kcenter": 3.47}


def write(results: dict[str, Any], folder: Path) -> None:
    save(folder / "training.json", results, page(results))
    if "networks" in results:
        picture(results["networks"]["rows"], folder / "speed.png")


def page(results: dict[str, Any]) -> str:
    machine = results["machine"]
    lines = [
        "# Training and asking on one GPU",
        "",
        f"`{COMMAND}` on one {machine['gpu']}, torch {machine['torch']}, python {machine['python']}.",
        "Each figure is a median of five turns in one process, except the experiment, which ran once.",
        *(["", results["note"]] if "note" in results else []),
    ]
    if "networks" in results:
        lines += _networks(results["networks"])
    if "experiment" in results:
        lines += _experiment(results["experiment"])
    if "acquisition" in results:
        lines += _acquisition(results["acquisition"])
    return "\n".join(lines) + "\n"


def _networks(results: dict[str, Any]) -> list[str]:
    ceiling = results["ceilings"]
    lines = [
        "",
        "## Microseconds per replica-step",
        "",
        "A step is a mini-batch of 8: forward, backward, momentum SGD. *Eager* is the loop a user",
        "would write for one network; the others train several, each figure divided by their number.",
        "The ratio is to the eager loop under the same settings, which waits for its host; the host",
        "was shared, and in an earlier run of the same loops took 0.6 to 0.8 of the time shown (tf32).",
        "The *limit* is the larger of bytes",
        "over "
        f"{ceiling['bytes_per_second'] / 1e12:.2f} TB/s (a copy) and FLOP over "
        f"{ceiling['flop_per_second'] / 1e12:.0f} TFLOP/s (a TF32 product).",
        "",
        "| network | settings | engine | µs | × faster than eager | × the limit |",
        "|---|---|---|---:|---:|---:|",
    ]
    for row in results["rows"]:
        for settings, cells in row.items():
            if not isinstance(cells, dict):
                continue
            for engine, taken in sorted(cells.items(), key=lambda cell: -cell[1]):
                lines.append(
                    f"| {row['network']} | {settings} | {engine} | {taken * 1e6:.1f} | "
                    f"{cells['eager'] / taken:.1f} | {taken / row['limit']:.1f} |"
                )
    return lines


def _experiment(run: dict[str, Any]) -> list[str]:
    stages = ", ".join(f"{name} {taken:.1f} s" for name, taken in run["stages"].items())
    lines = [
        "",
        "## One experiment",
        "",
        "SVHN with LeNet, b = 500, 8 rounds, 5 rules × 5 seeds, 50 epochs, the sweep included, in",
        f"TF32, deterministic: **{run['seconds']:.0f} s** wall-clock, reading the data included. Of",
        f"it, without the sweep: {stages}.",
        f"Mean accuracy of all runs at the end: {run['accuracy']:.1%}.",
    ]
    if "one by one, round 0" in run:
        ratio = run["one by one, extrapolated"] / run["seconds"]
        lines += [
            f"One by one, round 0 alone took {run['one by one, round 0']:.0f} s; the whole is",
            f"extrapolated from it by steps to {run['one by one, extrapolated']:.0f} s,",
            f"{ratio:.0f} times as long.",
        ]
    return lines


def _acquisition(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "",
        "## One question",
        "",
        "Pool 25,000, b = 500, 2,500 labelled, random weights and inputs. Seconds after the pool's",
        "forward pass, and their share of it; the labelled set's forward pass apart. The paper's",
        "table, on its own hardware and forward pass included: "
        + ", ".join(f"{rule} {taken} s" for rule, taken in PAPER.items())
        + ".",
        "",
        "| network | rule | score + select, s | of the forward pass | reference, s |",
        "|---|---|---:|---:|---:|",
    ]
    for row in rows:
        forward = row["forward"]
        lines.append(f"| {row['network']} | *forward pass* | {forward:.4f} | 100% | |")
        lines.append(
            f"| {row['network']} | *labelled forward* | {row['labelled forward']:.4f} | | |"
        )
        for rule, cell in row.items():
            if isinstance(cell, dict):
                after = cell["score"] + cell["select"]
                lines.append(
                    f"| {row['network']} | {rule} | {after:.4f} | {after / forward:.1%} | "
                    f"{cell['labeled']:.4f} |"
                )
    return lines


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Eager, captured, stacked and the limit, for each network, on a log scale."""
    bars = ["eager", "captured", "streams 25", "stacked 25", "stacked 100", "limit"]
    colours = ["#BBBBBB", "#E69F00", "#56B4E9", "#0072B2", "#003B5C", "#000000"]
    figure, axes = plt.subplots(1, len(rows), figsize=(11, 2.9), layout="constrained")
    for axis, row in zip(axes, rows, strict=True):
        cells = {**row["tf32"], "limit": row["limit"]}
        names = [name for name in bars if name in cells][::-1]
        values = [cells[name] * 1e6 for name in names]
        axis.barh(names, values, color=[colours[bars.index(name)] for name in names])
        for y, value in enumerate(values):
            axis.text(
                value * 1.15, y, f"{value:.0f}" if value >= 10 else f"{value:.1f}", va="center"
            )
        axis.set_xscale("log")
        axis.set_xlim(right=max(values) * 8)
        axis.set_title(row["network"], fontsize=10)
        axis.set_xlabel("µs per replica-step")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=160)
    plt.close(figure)
