"""How time and memory of rules grow with N, n, C and D, beside the best peer of each.

    python benchmarks/scaling.py                  # writes results/scaling/
    python benchmarks/scaling.py --page           # the page and the figure from what was measured

One size at a time is changed, the others stay as they are in `BASE`. Each implementation is a process
of its own on one thread. Time is CPU time, which other work on the machine changes little; memory is
the peak above the inputs. Where a point takes longer than --limit seconds, no larger one is measured.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measuring import RESULTS, forget_peak, load, machine, parser, peak_memory, run_script, save
from workloads import Spec

BASE = Spec(pool=8_000, features=128, classes=10, picks=100, labeled=500)
SIZES = {
    "pool": ("N, points in the pool", (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000)),
    "picks": ("n, points to pick", (25, 50, 100, 200, 400, 800)),
    "classes": ("C, classes", (2, 5, 10, 20, 50, 100)),
    "features": ("D, features", (32, 64, 128, 256, 512)),
}
RULES = {
    "badge": ("bmdal_reg", "#0072B2"),
    "bait": ("bmdal_reg", "#D55E00"),
    "maxherding": ("scikit-activeml", "#009E73"),
    "grad-cover-shortlist": (None, "#000000"),
}
OURS = "askance"
# Its kernel of all pairs, several times over, has room for no more.
MOST_PAIRED = 16_000


def runner(rule: str, implementation: str, spec: Spec) -> Callable[[], Any]:
    """One call of a rule on a workload."""
    import peers
    from workloads import build

    import askance

    work, seen_logits = build(spec)
    if implementation == OURS:
        pool = askance.Embedding(work.logits, work.features)
        labeled = askance.Embedding(seen_logits, work.labeled_features), work.labeled_labels
        return lambda: askance.select(None, labeled, pool, spec.picks, strategy=rule)
    if rule == "maxherding":
        return _paired(work, spec.picks)
    adapter = peers.available()[rule, implementation]
    return lambda: adapter(work, spec.picks, 0)


def _paired(work: Any, n: int) -> Callable[[], Any]:
    """scikit-activeml's MaxHerding on rows of unit length, with a kernel about as wide as ours."""
    from skactiveml.pool import MaxHerding

    X = np.concatenate([work.features, work.labeled_features]).astype(np.float64)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    y = np.full(len(X), np.nan)
    y[len(work.features) :] = work.labeled_labels
    query = MaxHerding(metric_dict={"gamma": 4.0}, random_state=0)
    return lambda: query.query(X, y, batch_size=n)


def child(rule: str, implementation: str, limit: float) -> list[dict[str, Any]]:
    """Measure every point of an implementation in this process."""
    import torch

    torch.set_num_threads(1)
    # A small one first, so that no import is timed.
    runner(rule, implementation, replace(BASE, pool=200, picks=5, labeled=50, features=16))()
    rows = []
    for size, (_, values) in SIZES.items():
        for value in values:
            if implementation == "scikit-activeml" and size == "pool" and value > MOST_PAIRED:
                break
            point = measured(runner(rule, implementation, replace(BASE, **{size: value})))
            rows.append({"rule": rule, "implementation": implementation})
            rows[-1] |= {"size": size, "value": value, **point}
            print(rows[-1], file=sys.stderr, flush=True)
            if point["seconds"] > limit:
                break
    return rows


def measured(run: Callable[[], Any]) -> dict[str, Any]:
    """CPU seconds of a call, the median of up to five, and the peak memory of the first."""
    ctypes.CDLL(None).malloc_trim(0)  # what the allocator has kept would hide what is asked for
    before = forget_peak()
    memory, times = 0, []
    while len(times) < 5 and sum(times) < 2.0:
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
        memory = memory or peak_memory() - before
    return {"seconds": statistics.median(times), "runs": len(times), "memory": memory}


def chosen(
    rows: list[dict[str, Any]], rule: str, who: str | None, size: str
) -> list[dict[str, Any]]:
    """The points of one line."""
    return [
        row
        for row in rows
        if (row["rule"], row["implementation"], row["size"]) == (rule, who, size)
    ]


def exponent(line: list[dict[str, Any]], what: str) -> str:
    """The slope of a line on log scales, over its upper half."""
    upper = line[len(line) // 2 - 1 :] if len(line) > 3 else line
    if len(upper) < 2:
        return ""
    x, y = (np.log([max(row[key], 1e-9) for row in upper]) for key in ("value", what))
    return f"{np.polyfit(x, y, 1)[0] + 0.0:.1f}".replace("-0.0", "0.0").replace("-", "−")


def page(results: dict[str, Any]) -> str:
    """The exponents, and the largest sizes that were measured, as tables."""
    here, rows = results["machine"], results["points"]
    versions = ", ".join(f"{name} {version}" for name, version in here["versions"].items())
    lines = [
        "# How time and memory grow",
        "",
        f"`python benchmarks/scaling.py --limit {results['limit']:.0f}` on {here['cpu']}, one thread; "
        f"{versions}. {results['note']}".rstrip(),
        "",
        f"One size at a time is changed; the others are a pool of {BASE.pool:,}, {BASE.picks} picks, "
        f"{BASE.classes} classes, {BASE.features} features and {BASE.labeled} labelled points. Time is "
        "CPU time, the median of up to five calls; memory is the peak above the inputs. Peers: the "
        "fastest that computes the same, or, for `maxherding`, the only one, on a kernel about as "
        "wide. `grad-cover-shortlist` has none.",
        "",
        "![Time and memory against N, n, C and D, on log scales](scaling.png)",
        "",
        "Exponents: the slope of each line's upper half; 1 is twice the time for twice the size.",
        "",
        "| rule | implementation | " + " | ".join(f"time, {label[0]}" for label, _ in SIZES.values())
        + " | memory, N |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    pairs = [(rule, who) for rule, (peer, _) in RULES.items() for who in (OURS, peer) if who]
    for rule, who in pairs:
        cells = [exponent(chosen(rows, rule, who, size), "seconds") for size in SIZES]
        cells.append(exponent(chosen(rows, rule, who, "pool"), "memory"))
        if not any(cells):
            continue
        lines.append(f"| {rule} | {who} | " + " | ".join(cells) + " |")
    lines += ["", "| rule | N | CPU seconds | the peer's | ratio | MB | the peer's |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for rule, (peer, _) in RULES.items():
        theirs = {row["value"]: row for row in chosen(rows, rule, peer, "pool")}
        for row in chosen(rows, rule, OURS, "pool"):
            other = theirs.get(row["value"])
            cells = ["", "", ""]
            if other:
                cells = [
                    f"{other['seconds']:.3f}", f"{other['seconds'] / row['seconds']:.1f}",
                    f"{other['memory'] / 1e6:.0f}",
                ]  # fmt: skip
            lines.append(
                f"| {rule} | {row['value']:,} | {row['seconds']:.3f} | {cells[0]} | {cells[1]} | "
                f"{row['memory'] / 1e6:.0f} | {cells[2]} |"
            )
    return "\n".join(lines) + "\n"


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Time above, memory below, a column for each size."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(12, 5.4), sharex="col", layout="constrained")
    for column, (size, (label, values)) in enumerate(SIZES.items()):
        for axis, what, scale in zip(
            axes[:, column], ("seconds", "memory"), (1.0, 1e6), strict=True
        ):
            for rule, (peer, colour) in RULES.items():
                for who, style in ((OURS, "-"), (peer, "--")):
                    line = chosen(rows, rule, who, size)
                    axis.plot(
                        [row["value"] for row in line],
                        [max(row[what] / scale, 1.0 if what == "memory" else 1e-4) for row in line],
                        style, color=colour, marker="o" if who == OURS else "s", markersize=3,
                        linewidth=1.6 if who == OURS else 1.1,
                        label=f"{rule}, {who}" if axis is axes[0, 0] and line else None,
                    )  # fmt: skip
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xticks(values, [f"{value:,}" for value in values], fontsize=7)
            axis.minorticks_off()
            axis.grid(alpha=0.25, which="major")
            axis.spines[["top", "right"]].set_visible(False)
        axes[1, column].set_xlabel(label)
    axes[0, 0].set_ylabel("CPU seconds")
    axes[1, 0].set_ylabel("MB above the inputs")
    for row in axes:
        low = min(axis.get_ylim()[0] for axis in row)
        high = max(axis.get_ylim()[1] for axis in row)
        for axis in row:
            axis.set_ylim(low, high)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--limit", type=float, default=20.0, help="seconds a point may take")
    arguments.add_argument("--out", type=Path, default=RESULTS / "scaling")
    arguments.add_argument("--note", default="", help="a sentence about the machine, for the page")
    arguments.add_argument("--page", action="store_true", help="measure nothing")
    arguments.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.child:
        rule, implementation, limit = options.child
        print(json.dumps(child(rule, implementation, float(limit))))
        return
    path = options.out / "scaling.json"
    results = load(path)
    if not options.page:
        os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        import peers

        here = machine("numpy", "torch")
        here["versions"] |= {
            name: version
            for name, version in peers.versions().items()
            if name in {peer for peer, _ in RULES.values()}
        }
        results = {"machine": here, "limit": options.limit, "note": options.note}
        pairs = [(rule, who) for rule, (peer, _) in RULES.items() for who in (OURS, peer) if who]
        lines = [run_script(__file__, "--child", *pair, options.limit) for pair in pairs]
        results["points"] = [point for line in lines for point in line]
    save(path, results, page(results))
    picture(results["points"], options.out / "scaling.png")


if __name__ == "__main__":
    main()
