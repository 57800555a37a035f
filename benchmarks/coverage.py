"""Time and memory of rules that cover the pool, against one product, our BADGE and scikit-activeml.

    python benchmarks/coverage.py                 # writes results/coverage/

*One product* is what no rule whose candidates are all points can do without: N candidates times 4,000
evaluation rows in blocks of float32, and the exponential of it. Every ratio is a median over turns in
one process, each between two runs of what it is compared with, of CPU time on one thread, so that a
busy machine slows both alike. Memory is the peak above the inputs, in a process of its own.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import RESULTS, forget_peak, machine, parser, peak_memory, run_script, save

SAMPLE = 4_000
WORKLOADS = ("W", "W3")
ALL_CANDIDATES = ("maxherding", "uherding", "grad-cover")
# A pool that scikit-activeml's kernel of all pairs has room for.
PEER = {"pool": 6_000, "labeled": 600, "picks": 100, "features": 256}


def product(features: Any) -> Callable[[], None]:
    """One product of all rows with 4,000 of them, and its exponential, in blocks."""
    import torch

    unit = torch.nn.functional.normalize(torch.from_numpy(features))
    evaluation = unit[
        torch.randperm(len(unit), generator=torch.Generator().manual_seed(0))[:SAMPLE]
    ]

    def run() -> None:
        for block in unit.split(512):
            (block @ evaluation.T).exp_()

    return run


def cell(rule: str, workload: str) -> dict[str, Any]:
    """Median ratios of a rule on a workload, and its peak memory, in this process."""
    from workloads import SPECS, build

    import askance

    spec = SPECS[workload]
    work, seen_logits = build(spec)
    pool = askance.Embedding(work.logits, work.features)
    labeled = askance.Embedding(seen_logits, work.labeled_features), work.labeled_labels
    first = rule == "maxherding, no labels"
    seen = None if first else labeled
    name = "maxherding" if first else rule

    def ours() -> Any:
        return askance.select(None, seen, pool, spec.picks, strategy=name)

    def badge() -> Any:
        return askance.select(None, labeled, pool, spec.picks, strategy="badge")

    if rule == "grad-cover-shortlist":
        against, what = badge, "badge"
    else:
        against, what = product(work.features), "one product"
    against()  # warms up thread pools
    ctypes.CDLL(None).malloc_trim(0)  # what the allocator has kept would hide what is asked for
    before = forget_peak()
    ours()
    memory = peak_memory() - before
    ratio, seconds = side_by_side(ours, against)
    return {"against": what, "ratio": ratio, "seconds": seconds, "memory": memory}


def peer() -> dict[str, Any]:
    """`maxherding` and scikit-activeml's, on one pool with one kernel."""
    import torch
    from skactiveml.pool import MaxHerding

    import askance
    from askance.picking.audience import median, sq_dists_to_nearest, unit_rows

    generator = torch.Generator().manual_seed(0)
    count = PEER["pool"] + PEER["labeled"]
    X = torch.randn(count, PEER["features"], generator=generator, dtype=torch.float64).relu()
    pool, seen = X[: PEER["pool"]], X[PEER["pool"] :]
    rule = askance.strategies.MaxHerding(sample=PEER["pool"])
    labels = torch.zeros(len(seen), dtype=torch.int64)
    labeled = askance.Embedding(features=seen), labels
    sq = sq_dists_to_nearest(unit_rows(pool), seen)
    gamma = 1 / float(f"{median(sq):.4g}")
    y = np.full(count, np.nan)
    y[PEER["pool"] :] = 0

    def ours() -> Any:
        whole = askance.Embedding(features=pool)
        return askance.select(None, labeled, whole, PEER["picks"], strategy=rule).indices

    def theirs() -> Any:
        query = MaxHerding(metric_dict={"gamma": gamma}, random_state=0)
        return query.query(X.numpy(), y, batch_size=PEER["picks"])

    same = ours().tolist() == theirs().tolist()
    ratio, seconds = side_by_side(theirs, ours)
    return {"against": "maxherding", "ratio": ratio, "seconds": seconds, "same picks": same, **PEER}


def side_by_side(
    call: Callable[[], Any], against: Callable[[], Any], turns: int = 3
) -> tuple[float, float]:
    """Median of a call over what it is compared with, in turns, and its median CPU seconds."""
    ratios, seconds = [], []
    for _ in range(turns):
        stamps = [time.process_time()]
        for each in (against, call, against):
            each()
            stamps.append(time.process_time())
        before, middle, after = (b - a for a, b in itertools.pairwise(stamps))
        ratios.append(2 * middle / (before + after))
        seconds.append(middle)
    return statistics.median(ratios), statistics.median(seconds)


def page(results: dict[str, Any]) -> str:
    """The results as a table in words."""
    here = results["machine"]
    lines = [
        "# Rules that cover the pool: time and memory",
        "",
        f"`python benchmarks/coverage.py` on {here['cpu']}, one thread, torch "
        f"{here['versions']['torch']}{results['note']}. Seconds are CPU time, ratios medians over "
        "turns in one process. W: pool 25,000, 500 picks; W3: pool 100,000, 1,000 picks; both 256 "
        "features, 10 classes, 2,500 labelled. *One product* is N × 4,000 products of 256 features in "
        "blocks of float32, and their exponential.",
        "",
        "| rule | workload | against | ratio | seconds | memory, MB |",
        "|---|---|---|---|---|---|",
    ]
    for row in results["cells"]:
        memory = f"{row['memory'] / 1e6:.0f}" if "memory" in row else ""
        lines.append(
            f"| {row['rule']} | {row['workload']} | {row['against']} | {row['ratio']:.2f} | "
            f"{row['seconds']:.2f} | {memory} |"
        )
    more = [row for row in results["cells"] if "same picks" in row]
    if more:
        same = "the same" if more[0]["same picks"] else "other"
        lines += [
            "",
            f"scikit-activeml's `MaxHerding` on a pool of {PEER['pool']:,} with {PEER['labeled']} "
            f"labelled rows, {PEER['picks']} picks and the same kernel makes {same} picks.",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--out", type=Path, default=RESULTS / "coverage")
    arguments.add_argument("--note", default="", help="about the machine, for the page")
    arguments.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.child:
        rule, workload = options.child
        print(json.dumps(peer() if workload == "peer" else cell(rule, workload)))
        return
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    here = machine("numpy", "torch", "scikit-activeml")
    rules = [*ALL_CANDIDATES, "grad-cover-shortlist"]
    pairs = [(rule, name) for name in WORKLOADS for rule in rules]
    pairs.append(("maxherding, no labels", "W"))
    pairs.append(("scikit-activeml's MaxHerding", "peer"))
    cells = []
    for rule, workload in pairs:
        row = {
            "rule": rule,
            "workload": workload,
            **run_script(__file__, "--child", rule, workload),
        }
        cells.append(row)
        print(row, flush=True)
    results = {"machine": here, "note": options.note, "cells": cells}
    save(options.out / "coverage.json", results, page(results))


if __name__ == "__main__":
    main()
