"""Score a pool that is never in memory: features made block by block, peak memory above the start.

python benchmarks/stream.py --rows 10000000 --strategy grad
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import torch

import askance

LABELED, BLOCK = 1_000, 50_000


def blocks(rows: int, features: int, classes: int) -> Iterator[askance.Embedding]:
    """Blocks of a pool, each made when it is asked for."""
    generator = torch.Generator().manual_seed(0)
    head = torch.randn(classes, features, generator=generator) / features**0.5
    for start in range(0, rows, BLOCK):
        h = torch.randn(min(BLOCK, rows - start), features, generator=generator).relu_()
        yield askance.Embedding(logits=h @ head.T, features=h)


def status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--strategy", default="grad")
    options = parser.parse_args()
    shape = options.features, options.classes
    labeled = next(blocks(LABELED, *shape)), torch.arange(LABELED) % options.classes
    before = status("VmRSS")
    start = time.perf_counter()
    picks = askance.select(
        None, labeled, blocks(options.rows, *shape), options.n, strategy=options.strategy
    )
    seconds = time.perf_counter() - start
    print(
        json.dumps(
            vars(options)
            | {
                "seconds": round(seconds, 2),
                "timings": {name: round(value, 2) for name, value in picks.timings.items()},
                "memory_above_start": status("VmHWM") - before,
                "picked": len(set(picks.indices.tolist())),
            }
        )
    )


if __name__ == "__main__":
    main()
