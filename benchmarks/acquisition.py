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
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
OURS = (
    "random",
    "entropy",
    "margin",
    "least-confidence",
    "egl",
    "gradnorm",
    "grad",
    "powergrad",
    "grad-spread",
    "badge",
    "kcenter",
)
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
    known = {"askance": ours, "dense": twin, "dense float64": exact}
    known |= {"one product": gemm, "one product, numpy": numpy_gemm}
    if implementation in known:
        return known[implementation], size, split
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
        before, own, after = (b - a for a, b in itertools.pairwise(stamps))
        ratios.append(2 * own / (before + after))
    return statistics.median(ratios)


def child(rule: str, implementation: str, folder: Path, picks: int, limit: float) -> dict[str, Any]:
    """Measure one cell in this process."""
    run, rows, split = runner(rule, implementation, folder)
    run(rows // 25, max(1, picks // 25))  # warms up imports and thread pools
    for part, patience in ((25, 10), (5, 1)):
        start = time.perf_counter()
        run(rows // part, max(1, picks // part))
        power = 2 if rule in ("badge", "kcenter", "grad-spread") else 1
        predicted = (time.perf_counter() - start) * part**power
        if predicted > patience * limit:
            return {"predicted": predicted}
    before = reset_peak()
    start = time.perf_counter()
    result = run(rows, picks)
    times = [time.perf_counter() - start]
    memory = peak() - before
    while len(times) < 9 and sum(times) < limit / 6:
        start = time.perf_counter()
        run(rows, picks)
        times.append(time.perf_counter() - start)
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


def reset_peak() -> int:
    """Forget the peak so far; resident bytes now."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def peak() -> int:
    return status("VmHWM")


def status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def measure(
    rule: str, implementation: str, folder: Path, picks: int, limit: float
) -> dict[str, Any]:
    """One cell, in a process of its own."""
    arguments = [rule, implementation, str(folder), str(picks), str(limit)]
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--child", *arguments],
            capture_output=True,
            text=True,
            timeout=20 * limit,
        )
    except subprocess.TimeoutExpired:
        return {"failed": "timeout"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def cells(workload: str, peers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """(rule, implementation) pairs to run on a workload."""
    if workload not in PLAIN:
        implementations = ("askance", "dense", "dense float64")
        return [(rule, name) for rule in ("badge", "kcenter") for name in implementations]
    every = [("grad", "one product"), ("grad", "one product, numpy")]
    every += [(rule, "askance") for rule in OURS] + [(rule, "dense") for rule in DENSE]
    every += [(rule, "dense float64") for rule in ("badge", "kcenter")]
    return every + sorted(peers)


def machine() -> dict[str, Any]:
    """Hardware and versions."""
    import peers
    import torch

    import askance

    cpu = platform.processor()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    versions = {"askance": askance.__version__, "python": platform.python_version()}
    versions |= {"numpy": np.__version__, "torch": torch.__version__, **peers.versions()}
    return {"cpu": cpu, "cores": os.cpu_count(), "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="workloads, by comma (default: all)")
    parser.add_argument(
        "--rules", help="measure these alone and keep the other rows of the results"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a cell may take")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "acquisition")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        rule, implementation, folder, picks, limit = options.child
        print(json.dumps(child(rule, implementation, Path(folder), int(picks), float(limit))))
        return

    import peers
    from report import write
    from workloads import SPECS, build, save

    if peers.missing():
        print(f"left out, as not installed: {', '.join(peers.missing())}", flush=True)
    results: dict[str, Any] = {"machine": machine(), "limit": options.limit, "workloads": {}}
    rules = set(options.rules.split(",")) if options.rules else None
    earlier = options.out / "acquisition.json"
    if rules is not None and earlier.exists():
        first = json.loads(earlier.read_text())
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
        known = results["workloads"].get(name, {"cells": []})["cells"]
        kept = [cell for cell in known if rules is not None and cell["rule"] not in rules]
        results["workloads"][name] = {"spec": spec, "cells": kept + rows}
        write(results, options.out)


if __name__ == "__main__":
    main()
