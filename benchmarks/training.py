"""Microseconds to train one network for one step: a plain loop against every engine, on one GPU.

    python benchmarks/training.py                       # everything; writes results/training/
    python benchmarks/training.py --only networks,acquisition
    python benchmarks/training.py --only experiment --data-dir FOLDER     # SVHN with LeNet, whole

A step is a mini-batch of 8, forward, backward and update. A *replica-step* is a step of one network,
whatever number of them is trained at once. The limit is the larger of two times: the bytes of weights,
gradients and momenta that must be moved over the bandwidth of a copy, and the multiply-adds over the
rate of a large TF32 product, both measured in the same process.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import RESULTS, clocked, load, need_gpu, parser
from torch import nn
from torch.nn.functional import cross_entropy
from training_report import write

import askance.paper  # so that its experiments can be loaded by name
from askance import models
from askance.experiments import runner, spec
from askance.experiments.store import ResultStore
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, numerics
from askance.training.stacked import _Fit

CUDA = torch.device("cuda")
NETWORKS: dict[str, tuple[tuple[int, ...], int]] = {
    "mlp": ((617,), 26),
    "lenet": ((3, 32, 32), 10),
    "vgg16": ((3, 32, 32), 10),
    "resnet18": ((3, 32, 32), 10),
}
BATCH, POINTS = 8, 512
_LONG = 0.5  # seconds


@cache
def network(name: str, draws: Draws) -> nn.Module:
    """On the CPU, made once: drawing the weights of a hundred networks takes longer than the timing."""
    shape, classes = NETWORKS[name]
    return models.build(name, shape, classes, draws)


def build(name: str) -> Callable[[Draws], nn.Module]:
    return lambda draws: network(name, draws)


def seconds(step: Callable[[], None], least: float = 0.3, turns: int = 5) -> float:
    """Median over turns of the time of one call, after a warm-up; a turn lasts at least least/turns.

    Of calls of half a second or more there are three, and two before them.
    """
    taken, calls = 0.0, 0
    while calls < 4 and not (calls == 2 and taken >= _LONG):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        taken, calls = time.perf_counter() - start, calls + 1
    count = max(3, int(least / turns / max(taken, 1e-6)))
    if taken >= _LONG:
        turns, count = 3, 1
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


def eager(name: str) -> float:
    """What a user would write: one network, one mini-batch after the other."""
    shape, classes = NETWORKS[name]
    inputs = torch.randn(POINTS, *shape, device=CUDA)
    labels = torch.randint(classes, (POINTS,), device=CUDA)
    model = copy.deepcopy(network(name, Draws())).to(CUDA).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        batch = torch.randint(POINTS, (BATCH,), device=CUDA)
        optimizer.zero_grad()
        cross_entropy(model(inputs[batch]), labels[batch]).backward()
        optimizer.step()

    return seconds(step)


def stacked(name: str, runs: int, stacks: int = 1) -> float:
    """Seconds for a step of `runs` networks, in so many stacks, each on a stream of its own."""
    shape, classes = NETWORKS[name]
    inputs = torch.randn(POINTS, *shape, device=CUDA)
    labels = torch.randint(classes, (POINTS,))
    rows = np.arange(8 * BATCH)
    jobs = [TrainingJob(rows + i % 100, labels[rows], 0.01, Draws(i)) for i in range(runs)]
    size = runs // stacks
    fits = [
        _Fit(build(name), inputs, jobs[i * size : (i + 1) * size], Recipe(40, BATCH))
        for i in range(stacks)
    ]
    steps = [fit.steps[0][1] for fit in fits]

    def step() -> None:
        for one in steps:
            one.run()

    taken = seconds(step)
    for fit in fits:
        fit.close()
    return taken


def work(name: str) -> dict[str, float]:
    """Parameters, and multiply-adds of a forward pass over one point."""
    shape, _ = NETWORKS[name]
    model = copy.deepcopy(network(name, Draws())).eval()
    macs = 0

    def count(layer: nn.Module, given: Any, out: torch.Tensor) -> None:
        nonlocal macs
        weight = layer.weight  # a conv's kernel meets every place of the output
        places = out[0, 0].numel() if isinstance(layer, nn.Conv2d) else 1
        macs += weight.numel() * places

    for layer in model.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            layer.register_forward_hook(count)
    model(torch.zeros(1, *shape))
    return {"parameters": sum(p.numel() for p in model.parameters()), "macs": macs}


def ceilings() -> dict[str, float]:
    """Bytes a second of a large copy (read and written), FLOP a second of a large TF32 product."""

    def copy() -> float:
        source = torch.randn(1 << 28, device=CUDA)
        target = torch.empty_like(source)
        return 8 * source.numel() / seconds(lambda: target.copy_(source))

    def product() -> float:
        a, b = (torch.randn(8192, 8192, device=CUDA) for _ in range(2))
        with numerics(CUDA, "tf32", deterministic=False):
            return 2 * 8192**3 / seconds(lambda: torch.mm(a, b))

    return {"bytes_per_second": copy(), "flop_per_second": product()}


def limit(name: str, ceiling: dict[str, float]) -> float:
    """Seconds below which no replica-step can go with these weights kept in float32."""
    amount = work(name)
    # Update: weights, gradients and momenta read, weights and momenta written. Besides, weights are
    # read forward and backward and gradients written.
    moved = 4 * amount["parameters"] * (5 + 2 + 1)
    flop = 2 * 3 * BATCH * amount["macs"]
    return max(moved / ceiling["bytes_per_second"], flop / ceiling["flop_per_second"])


def networks(counts: tuple[int, ...]) -> dict[str, Any]:
    ceiling = ceilings()
    rows = []
    for name in NETWORKS:
        row: dict[str, Any] = {"network": name, **work(name), "limit": limit(name, ceiling)}
        for label, precision, deterministic in (
            ("tf32", "tf32", False),
            ("tf32, deterministic", "tf32", True),
            ("float32, deterministic", "float32", True),
            ("bf16", "bf16", False),
        ):
            with numerics(CUDA, precision, deterministic):
                cells = {"eager": eager(name), "stacked 25": stacked(name, 25) / 25}
                if label == "tf32":
                    cells["captured"] = stacked(name, 1)
                    for count in counts:
                        cells[f"stacked {count}"] = stacked(name, count) / count
                    cells["5 stacks of 5"] = stacked(name, 25, 5) / 25
                    cells["streams 25"] = stacked(name, 25, 25) / 25
            row[label] = cells
            torch.cuda.empty_cache()
        rows.append(row)
        print(name, json.dumps(row), flush=True)
    return {"ceilings": ceiling, "rows": rows}


def settled(model: nn.Module, inputs: torch.Tensor) -> nn.Module:
    """Batch-norm statistics of these inputs: with those of a fresh network all features are alike."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1.0
    with torch.no_grad():
        model.train()(inputs)
    return model.eval()


def askable() -> list[str]:
    """The rules that need one model's logits and features alone."""
    every = askance.strategies.names()
    return [
        name for name in every if not askance.strategies.get(name).needs & {"members", "inputs"}
    ]


def acquisition(
    rules: list[str], pool: int = 25_000, n: int = 500, labeled: int = 2_500
) -> list[dict[str, Any]]:
    """The cost of one question on this GPU: the pool's forward pass, then each rule."""
    rows = []
    for name in ("lenet", "vgg16", "resnet18"):
        shape, classes = NETWORKS[name]
        inputs = torch.randn(pool + labeled, *shape, device=CUDA)
        model = settled(copy.deepcopy(network(name, Draws())).to(CUDA), inputs[:1024])
        labels = torch.randint(classes, (labeled,), device=CUDA)
        with numerics(CUDA, "tf32"):
            embed = lambda data: askance.embed(model, data, batch_size=1024)  # noqa: B023, E731
            forward = seconds(lambda: embed(inputs[labeled:]))  # noqa: B023
            labeled_forward = seconds(lambda: embed(inputs[:labeled]))  # noqa: B023
            pool_e, seen_e = embed(inputs[labeled:]), embed(inputs[:labeled])
            row: dict[str, Any] = {
                "network": name,
                "forward": forward,
                "labelled forward": labeled_forward,
            }
            for rule in rules:
                split: list[dict[str, float]] = []

                def ask() -> None:
                    picks = askance.select(None, (seen_e, labels), pool_e, n, strategy=rule)  # noqa: B023
                    split.append(picks.timings)  # noqa: B023

                whole = seconds(ask)
                phases = {k: statistics.median(s[k] for s in split) for k in split[0]}
                row[rule] = {"seconds": whole, **phases}
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def experiment(data_dir: Path, one_by_one: bool) -> dict[str, Any]:
    """SVHN with LeNet, 5 rules × 5 seeds, sweep included; and round 0 of it one by one."""
    wanted = spec.load("svhn-lenet")
    with tempfile.TemporaryDirectory() as folder:
        whole, path = clocked(
            lambda: runner.run(wanted, Path(folder) / "stacked", device="cuda", data_dir=data_dir)
        )
        with ResultStore.read(path) as store:
            records = store.rounds()
        stages: dict[str, float] = {}
        for record in records:
            for stage, taken in record.seconds.items():
                stages[stage] = stages.get(stage, 0.0) + taken
        measured = {
            "seconds": whole,
            "stages": stages,
            "accuracy": float(
                np.mean([r.accuracy for r in records if r.round == wanted.schedule.rounds])
            ),
        }
        print(json.dumps(measured), flush=True)
        if not one_by_one:
            return measured
        short = wanted.override(rounds=0, strategies=["random"])
        short = spec.Spec.from_dict(
            {**short.to_dict(), "recipe": {**short.to_dict()["recipe"], "learning_rates": [0.01]}}
        )
        options = {"device": "cuda", "training": "one", "data_dir": data_dir}
        one, _ = clocked(lambda: runner.run(short, Path(folder) / "one", **options))
    schedule, recipe = wanted.schedule, wanted.recipe
    steps = [-(-schedule.batch * (t + 1) // recipe.batch_size) for t in range(schedule.rounds + 1)]
    # Five networks in round 0, where rules share them, and 25 in every later round; ten in the sweep.
    units = wanted.seeds * steps[0]
    every = units + 25 * sum(steps[1:]) + 10 * steps[-1]
    return {
        **measured,
        "one by one, round 0": one,
        "one by one, extrapolated": one * every / units,
    }


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--only", default="networks,acquisition,experiment")
    arguments.add_argument("--rules", help="of the acquisition, by comma; all when not given")
    arguments.add_argument("--counts", default="5,100", help="sizes of stacks beside 25")
    arguments.add_argument(
        "--one-by-one",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also time round 0 of the experiment one network at a time",
    )
    arguments.add_argument("--data-dir", type=Path, default=None)
    arguments.add_argument("--out", type=Path, default=RESULTS / "training")
    options = arguments.parse_args()
    gpu = need_gpu("training")
    results = load(options.out / "training.json")
    results["machine"] = {**gpu, "python": platform.python_version()}
    for part in options.only.split(","):
        if part == "networks":
            results[part] = networks(tuple(int(c) for c in options.counts.split(",")))
        elif part == "acquisition":
            results[part] = acquisition(options.rules.split(",") if options.rules else askable())
        else:
            results.setdefault(part, {})
            results[part] |= experiment(options.data_dir, options.one_by_one)
        write(results, options.out)


if __name__ == "__main__":
    main()
