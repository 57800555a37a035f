"""Time and memory of every rule, ours against peers and dense twins, in one run on one machine.

    python benchmarks/acquisition.py                 # everything; writes results/acquisition/
    python benchmarks/acquisition.py --only W3 --rules kcenter --limit 60

Each cell is a process of its own, so that peak memory is its own too. A cell that pilots on a part of
the pool and of the batch predict to take longer than --limit seconds is not run; the prediction is
shown as "≈". Times are medians after the forward pass; memory is the peak above the loaded inputs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import RESULTS, clocked, forget_peak, load, machine, parser, peak_memory, run_script

DENSE = ("entropy", "grad", "badge", "kcenter")
PLAIN = ("W", "W2", "W3")


def runner(
    rule: str, implementation: str, folder: Path
) -> tuple[Callable[[int, int], Any], int, list[dict[str, float]]]:
    """A function (pool rows, picks) → picks of one cell, the pool's size, and where times split."""
    import dense
    import peers
    import torch

    import askance
    from askance.seeding import Draws

    arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    seen_logits = arrays.pop("labeled_logits")

    def part(rows: int) -> peers.Workload:
        pool = {k: v[:rows] for k, v in arrays.items() if not k.startswith("labeled")}
        return peers.Workload(
            **pool, **{k: v for k, v in arrays.items() if k.startswith("labeled")}
        )

    split: list[dict[str, float]] = []

    def ours(rows: int, n: int) -> Any:
        work = part(rows)
        pool = askance.Embedding(work.logits, work.features)
        labeled = askance.Embedding(seen_logits, work.labeled_features), work.labeled_labels
        picks = askance.select(None, labeled, pool, n, strategy=rule)
        split.append(picks.timings)
        return picks.indices

    def gemm(rows: int, n: int) -> Any:
        work = part(rows)
        h = torch.from_numpy(work.features)
        return h @ torch.ones(h.shape[1], work.logits.shape[1])

    def numpy_gemm(rows: int, n: int) -> Any:
        work = part(rows)
        return work.features @ np.ones((work.features.shape[1], work.logits.shape[1]), np.float32)

    def twin(rows: int, n: int) -> Any:
        work = part(rows)
        if rule == "entropy":
            return dense.entropy(work, n)
        if rule == "grad":
            return dense.grad_vmap(work, seen_logits, n)
        if rule == "badge":
            clocks = Draws(0).exponential("badge", range(rows))
            return dense.kmeanspp(work, n, clocks, np.float32)
        return dense.kcenter(work, n, np.float32)

    def exact(rows: int, n: int) -> Any:
        """The dense twin in float64, whose picks ours must be."""
        work = part(rows)
        if rule == "kcenter":
            return dense.kcenter(work, n, np.float64)
        clocks = Draws(0).exponential("badge", range(rows))
        return dense.kmeanspp(work, n, clocks, np.float64)

    size = len(arrays["logits"])
    here = {"askance": ours, "dense": twin, "dense float64": exact}
    here |= {"one product": gemm, "one product, numpy": numpy_gemm}
    if implementation in here:
        return here[implementation], size, split
    adapter = peers.available()[rule, implementation]
    return (lambda rows, n: adapter(part(rows), n, 0)), size, split


def side_by_side(ours: Any, product: Any, rows: int, picks: int, turns: int = 25) -> float:
    """Median of ours over the bare product, in turns: a shared machine's weather hits both alike."""
    ratios = []
    for _ in range(turns):
        stamps = [time.perf_counter()]
        for call in (product, ours, product):
            call(rows, picks)
            stamps.append(time.perf_counter())
        before, middle, after = (b - a for a, b in itertools.pairwise(stamps))
        ratios.append(2 * middle / (before + after))
    return statistics.median(ratios)


def child(rule: str, implementation: str, folder: Path, picks: int, limit: float) -> dict[str, Any]:
    """Measure one cell in this process."""
    run, rows, split = runner(rule, implementation, folder)
    run(rows // 25, max(1, picks // 25))  # warms up imports and thread pools
    for part, patience in ((25, 10), (5, 1)):
        seconds, _ = clocked(lambda part=part: run(rows // part, max(1, picks // part)))
        power = 2 if rule in ("badge", "kcenter", "grad-spread") else 1
        predicted = seconds * part**power
        if predicted > patience * limit:
            return {"predicted": predicted}
    before = forget_peak()
    first, result = clocked(lambda: run(rows, picks))
    memory = peak_memory() - before
    times = [first]
    while len(times) < 9 and sum(times) < limit / 6:
        times.append(clocked(lambda: run(rows, picks))[0])
    warm = times[1:] or times
    answer = {"seconds": statistics.median(warm), "runs": len(warm), "memory": memory}
    if (rule, implementation) == ("grad", "askance"):
        answer["product_ratio"] = side_by_side(
            run, runner(rule, "one product", folder)[0], rows, picks
        )
    if split:
        answer["labeled"] = statistics.median(part["labeled"] for part in split[-len(warm) :])
    if implementation in ("askance", "dense float64") and rule in ("badge", "kcenter"):
        answer["picks"] = np.asarray(result).tolist()
    return answer


def measure(
    rule: str, implementation: str, folder: Path, picks: int, limit: float
) -> dict[str, Any]:
    """One cell, in a process of its own."""
    arguments = ["--child", rule, implementation, folder, picks, limit]
    try:
        return run_script(__file__, *arguments, stderr=subprocess.PIPE, timeout=20 * limit)
    except subprocess.TimeoutExpired:
        return {"failed": "timeout"}
    except subprocess.CalledProcessError as error:
        return {"failed": error.stderr.strip().splitlines()[-1]}


def cells(workload: str, peers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """(rule, implementation) pairs to run on a workload."""
    from askance import strategies

    if workload not in PLAIN:
        implementations = ("askance", "dense", "dense float64")
        return [(rule, name) for rule in ("badge", "kcenter") for name in implementations]
    every = [("grad", "one product"), ("grad", "one product, numpy")]
    every += [(rule, "askance") for rule in strategies.names()] + [
        (rule, "dense") for rule in DENSE
    ]
    every += [(rule, "dense float64") for rule in ("badge", "kcenter")]
    return every + sorted(peers)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--only", help="workloads, by comma (default: all)")
    arguments.add_argument(
        "--rules", help="measure these alone and keep the other rows of the results"
    )
    arguments.add_argument("--limit", type=float, default=60.0, help="seconds a cell may take")
    arguments.add_argument("--out", type=Path, default=RESULTS / "acquisition")
    arguments.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.child:
        rule, implementation, folder, picks, limit = options.child
        print(json.dumps(child(rule, implementation, Path(folder), int(picks), float(limit))))
        return

    import peers
    from report import write
    from workloads import SPECS, build, save

    if peers.missing():
        print(f"left out, as not installed: {', '.join(peers.missing())}", flush=True)
    here = machine("numpy", "torch")
    here["versions"] |= peers.versions()
    results: dict[str, Any] = {"machine": here, "limit": options.limit, "workloads": {}}
    rules = set(options.rules.split(",")) if options.rules else None
    first = load(options.out / "acquisition.json")
    if rules is not None and first:
        results |= {"workloads": first["workloads"], "limit": first["limit"]}
        this = {"rules": options.rules, "workloads": options.only or "all", "limit": options.limit}
        # What is measured on all workloads takes the place of all that was measured of it before.
        before = [
            one
            for one in first.get("again", [])
            if options.only or not set(one["rules"].split(",")) <= rules
        ]
        results["again"] = [*before, this]
    for name in options.only.split(",") if options.only else SPECS:
        work, labeled_logits = build(SPECS[name])
        rows: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as folder:
            save(work, labeled_logits, Path(folder))
            for rule, implementation in cells(name, list(peers.available())):
                if rules is not None and rule not in rules:
                    continue
                cell = measure(rule, implementation, Path(folder), SPECS[name].picks, options.limit)
                rows.append({"rule": rule, "implementation": implementation, **cell})
                shown = {k: v for k, v in cell.items() if k != "picks"}
                print(f"{name:14} {rule:17} {implementation:16} {shown}", flush=True)
        confidence = float(work.probs.max(axis=1).mean())
        spec = vars(SPECS[name]) | {"confidence": confidence}
        before = results["workloads"].get(name, {"cells": []})["cells"]
        kept = [cell for cell in before if rules is not None and cell["rule"] not in rules]
        results["workloads"][name] = {"spec": spec, "cells": kept + rows}
        write(results, options.out)


if __name__ == "__main__":
    main()
