"""Microseconds of a replica-step on sparse inputs: steps of the first layer made late, or every weight
at every step. Prints JSON; needs a GPU.

    python benchmarks/sparse.py > results/training/sparse.json
    python benchmarks/sparse.py --tune      # the step with other blocks of the kernels, a line each

The inputs are made up after TF-IDF of 20 Newsgroups: 11,314 texts of 10,000 words, most of them short,
a few very long, words as frequent as Zipf says. The network is the MLP for them, a mini-batch is 8.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import torch
from measuring import need_gpu, parser
from torch import nn
from training import BATCH, CUDA, seconds

from askance import models
from askance.capture import Repeated
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, numerics, sparse
from askance.training.stacked import _Fit

TEXTS, WORDS, CLASSES, LABELED = 11_314, 10_000, 20, 2_000
BLOCKS = {
    "PRODUCT": [(n, o, parts) for n in (16, 32) for o in (64, 128, 256) for parts in (2, 4, 8)],
    "UPDATE": [(n, o, parts) for n in (8, 16) for o in (64, 128, 256) for parts in (4, 8, 16)],
}


def texts(count: int, words: int, device: torch.device) -> torch.Tensor:
    """(N, D): about 60 words a text on average, 40 in the middle, more than a thousand at most."""
    generator = torch.Generator(device).manual_seed(0)
    normal_N = torch.randn(count, 1, generator=generator, device=device)
    lengths_N = torch.exp(math.log(40) + 0.9 * normal_N)
    share_D = 1 / (10 + torch.arange(words, device=device))
    share_D = share_D / share_D.sum()
    has_ND = torch.rand(count, words, generator=generator, device=device) < lengths_N * share_D
    values_ND = has_ND * torch.rand(count, words, generator=generator, device=device)
    return values_ND / values_ND.norm(dim=1, keepdim=True).clamp_min(1e-12)


def fitting(inputs: torch.Tensor, runs: int, few: float) -> _Fit:
    """A stack in training; `few` is the share of columns up to which it counts as sparse."""
    with torch.random.fork_rng():
        network = models.build("mlp", inputs.shape[1:], CLASSES, Draws())

    def build(draws: Draws) -> nn.Module:
        return network

    random = np.random.default_rng(0)
    rows = [random.permutation(len(inputs))[: min(LABELED, len(inputs))] for _ in range(runs)]
    jobs = [
        TrainingJob(some, torch.from_numpy(some % CLASSES), 0.01, Draws(i))
        for i, some in enumerate(rows)
    ]
    usual, sparse._FEW = sparse._FEW, few
    try:
        return _Fit(build, inputs, jobs, Recipe(epochs=4, batch_size=BATCH))
    finally:
        sparse._FEW = usual


def replica_step(inputs: torch.Tensor, runs: int, few: float) -> float:
    fit = fitting(inputs, runs, few)
    assert (fit.lazy is not None) == (few > 0)
    taken = seconds(fit.steps[0][1].run)
    fit.close()
    return 1e6 * taken / runs


def compared(inputs: torch.Tensor, runs: int) -> dict[str, Any]:
    dense, late = (replica_step(inputs, runs, few) for few in (0.0, 1.0))
    counts_N = torch.count_nonzero(inputs, dim=1)
    touched = torch.count_nonzero(inputs[: 100 * BATCH].view(100, BATCH, -1).sum(1)) / 100
    return {
        "runs": runs,
        "inputs": list(inputs.shape),
        "nonzeros_mean": round(float(counts_N.double().mean()), 1),
        "nonzeros_max": int(counts_N.max()),
        "columns_touched": round(float(touched), 1),
        "dense_us": round(dense, 3),
        "sparse_us": round(late, 3),
        "ratio": round(dense / late, 2),
    }


def tune(inputs: torch.Tensor, runs: int) -> None:
    from askance.training import sparse_kernels

    fit = fitting(inputs, runs, 1.0)
    step = fit.steps[0][1]
    for name, settings in BLOCKS.items():
        usual, times = getattr(sparse_kernels, name), {}
        for blocks in settings:
            setattr(sparse_kernels, name, blocks)
            again = Repeated(
                step._step, [*fit.state(), step.at], fresh=step._clear_grads, stream=fit.stream
            )
            times[blocks] = 1e6 * seconds(again, least=0.1) / runs
            print(json.dumps({name: blocks, "sparse_us": round(times[blocks], 3)}), flush=True)
        best = min(times, key=times.__getitem__)
        print(json.dumps({"best": name, "blocks": best, "usual": usual}), flush=True)
        setattr(sparse_kernels, name, best)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--runs", type=int, default=50)
    arguments.add_argument("--precision", default="tf32", choices=["float32", "tf32"])
    arguments.add_argument("--tune", action="store_true", help="other blocks, the whole step each")
    options = arguments.parse_args()
    gpu = need_gpu("sparse")
    inputs = texts(TEXTS, WORDS, CUDA)
    with torch.enable_grad(), numerics(CUDA, options.precision):
        if options.tune:
            tune(inputs, options.runs)
        else:
            print(json.dumps(gpu | compared(inputs, options.runs)))


if __name__ == "__main__":
    main()
