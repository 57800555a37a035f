"""Turn measured cells into results/acquisition: one JSON, one table, one picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from measuring import save

COMMAND = "make bench"
DRAWN = {"badge": "BADGE", "kcenter": "k-center"}


def write(results: dict[str, Any], folder: Path) -> None:
    """Write everything anew from the cells measured so far."""
    for workload in results["workloads"].values():
        _mark_exact(workload["cells"])
    slim = json.loads(json.dumps(results))
    for workload in slim["workloads"].values():
        for cell in workload["cells"]:
            cell.pop("picks", None)
    save(folder / "acquisition.json", slim, table(slim))
    on_w = slim["workloads"].get("W", {"cells": []})["cells"]
    if all(seconds_of(on_w, rule, "askance") for rule in DRAWN):
        picture(slim, folder / "speed.png")


def _mark_exact(cells: list[dict[str, Any]]) -> None:
    """Whether our picks are, one by one, those of the dense float64 twin."""
    for cell in cells:
        if cell["implementation"] != "askance" or "picks" not in cell:
            continue
        for twin in cells:
            same = (twin["rule"], twin["implementation"]) == (cell["rule"], "dense float64")
            if same and "picks" in twin:
                cell["exact"] = cell["picks"] == twin["picks"]


def seconds_of(cells: list[dict[str, Any]], rule: str, implementation: str) -> float | None:
    for cell in cells:
        if (cell["rule"], cell["implementation"]) == (rule, implementation):
            return cell.get("seconds", cell.get("predicted"))
    return None


def table(results: dict[str, Any]) -> str:
    """The Markdown page."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    lines = [
        "# Acquisition after the forward pass",
        "",
        f"`{COMMAND}` on {machine['cores']} cores of {machine['cpu']}; {versions}.",
        *_again(results.get("again", [])),
        "Each cell is a process of its own: the median of n runs, and the peak memory above the loaded",
        f"inputs. ≈ marks a time predicted from a fifth of pool and batch, where it exceeds "
        f"{results['limit']:.0f} s.",
        "The ratio is to askance in the same table; for `grad`, *one product* is the bare N×D×C matrix",
        "product. *Exact* says that the picks are, one by one, those of a dense float64 run on",
        "the same random numbers. `askance` is the whole of `select()`; *of it labelled* is what",
        "the labelled set's reference took. The ratio below a table is the median of 25 turns of",
        "product, `grad`, product in one process, where a shared machine's weather hits both alike.",
    ]
    for name, workload in results["workloads"].items():
        spec = workload["spec"]
        lines += [
            "",
            f"## {name}: pool {spec['pool']:,}, n {spec['picks']:,}, D {spec['features']}, "
            f"C {spec['classes']}, labelled {spec['labeled']:,}"
            + (f" ({spec['note']})" if spec["note"] else ""),
            "",
            "| rule | implementation | seconds | of it labelled | n | × askance | extra MB | exact |",
            "|---|---|---:|---:|---:|---:|---:|---|",
        ]
        cells = workload["cells"]
        for cell in sorted(cells, key=lambda c: (c["rule"], c["implementation"] != "askance")):
            lines.append(_row(cell, seconds_of(cells, cell["rule"], "askance")))
        for cell in cells:
            if "product_ratio" in cell:
                ratio = cell["product_ratio"]
                lines += ["", f"`grad` over the bare product, the two in turns: {ratio:.2f}."]
    return "\n".join(lines) + "\n"


def _again(later: list[dict[str, Any]]) -> list[str]:
    """What is not of the first run; the rows of one rule always are of one."""
    if not later:
        return ["All of it is one run."]
    lines = ["Not one run. Measured again later, and put in the place of the first figures:", ""]
    for one in later:
        note = f" {one['note']}" if one.get("note") else ""
        lines.append(f"- {one['rules']} on {one['workloads']} (limit {one['limit']:.0f} s).{note}")
    return [*lines, ""]


def _row(cell: dict[str, Any], ours: float | None) -> str:
    name = f"| {cell['rule']} | {cell['implementation']} |"
    if "failed" in cell:
        return f"{name} failed: {cell['failed']} | | | | | |"
    seconds = cell.get("seconds", cell.get("predicted"))
    shown = f"{seconds:.4f}" if "seconds" in cell else f"≈ {seconds:.0f}"
    ratio = f"{seconds / ours:.2f}" if ours else ""
    memory = f"{cell['memory'] / 1e6:.0f}" if "memory" in cell else ""
    exact = {True: "yes", False: "**no**", None: ""}[cell.get("exact")]
    labeled = f"{cell['labeled']:.4f}" if cell.get("labeled", 0.0) > 1e-4 else ""
    return f"{name} {shown} | {labeled} | {cell.get('runs', '')} | {ratio} | {memory} | {exact} |"


def picture(results: dict[str, Any], path: Path) -> None:
    """Bars of BADGE and k-center on W, ours against the others, on a log scale."""
    cells = results["workloads"]["W"]["cells"]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, (rule, title) in zip(axes, DRAWN.items(), strict=True):
        names = [
            cell["implementation"]
            for cell in cells
            if cell["rule"] == rule and cell["implementation"] != "dense float64"
        ]
        times = {name: seconds_of(cells, rule, name) for name in names}
        bars = sorted(((s, name) for name, s in times.items() if s is not None), reverse=True)
        ours = seconds_of(cells, rule, "askance") or 1.0
        predicted = {
            cell["implementation"]
            for cell in cells
            if cell["rule"] == rule and "seconds" not in cell
        }
        names = [name for _, name in bars]
        colours = ["#0072B2" if name == "askance" else "#BBBBBB" for name in names]
        axis.barh(names, [s for s, _ in bars], color=colours)
        for y, (seconds, name) in enumerate(bars):
            about = "≈ " if name in predicted else ""
            label = f"{about}{float(f'{seconds:.2g}'):g} s" + (
                "" if name == "askance" else f"  ({about}{float(f'{seconds / ours:.2g}'):g}×)"
            )
            axis.text(seconds * 1.15, y, label, va="center", fontsize=8)
        axis.set_xscale("log")
        axis.set_xlim(right=max(s for s, _ in bars) * 30)
        axis.set_title(f"{title}: 500 of 25,000 points", fontsize=10)
        axis.set_xlabel("seconds after the forward pass")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=160)
    plt.close(figure)
