"""Microseconds of a replica-step of the large networks: batch-norms with their sum and ReLU as one step
in Triton, or PyTorch's own. Prints JSON; needs a GPU.

    python benchmarks/norms.py > results/training/norms.json

The turns of both ways alternate in one process; each figure is the median of its turns.
"""

from __future__ import annotations

import json
import statistics

import torch
from measuring import need_gpu, parser
from training import CUDA, stacked

from askance.training import maps, numerics

NETWORKS = ("vgg16", "resnet18")


def compared(name: str, runs: int, turns: int) -> dict[str, float]:
    ours, theirs = maps._norms, lambda *tensors: None
    taken: dict[str, list[float]] = {"own_us": [], "library_us": []}
    try:
        for _ in range(turns):
            for way, norms in (("own_us", ours), ("library_us", theirs)):
                maps._norms = norms
                taken[way].append(1e6 * stacked(name, runs) / runs)
                torch.cuda.empty_cache()
    finally:
        maps._norms = ours
    middle = {way: round(statistics.median(times), 1) for way, times in taken.items()}
    return {**middle, "ratio": round(middle["library_us"] / middle["own_us"], 3)}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--runs", type=int, default=30)
    arguments.add_argument("--turns", type=int, default=5)
    options = arguments.parse_args()
    gpu = need_gpu("norms")
    with torch.enable_grad(), numerics(CUDA, "tf32"):
        networks = {name: compared(name, options.runs, options.turns) for name in NETWORKS}
    print(json.dumps({**gpu, **vars(options), **networks}))


if __name__ == "__main__":
    main()
