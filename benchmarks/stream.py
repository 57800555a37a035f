"""Score a pool that is never in memory: features made block by block, peak memory above the start.

python benchmarks/stream.py --rows 10000000 --strategy grad
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import torch
from measuring import clocked, memory, parser, peak_memory

import askance

LABELED, BLOCK = 1_000, 50_000


def blocks(rows: int, features: int, classes: int) -> Iterator[askance.Embedding]:
    """Blocks of a pool, each made when it is asked for."""
    generator = torch.Generator().manual_seed(0)
    head = torch.randn(classes, features, generator=generator) / features**0.5
    for start in range(0, rows, BLOCK):
        h = torch.randn(min(BLOCK, rows - start), features, generator=generator).relu_()
        yield askance.Embedding(logits=h @ head.T, features=h)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--features", type=int, default=128)
    arguments.add_argument("--classes", type=int, default=10)
    arguments.add_argument("--n", type=int, default=1_000)
    arguments.add_argument("--strategy", default="grad")
    options = arguments.parse_args()
    shape = options.features, options.classes
    labeled = next(blocks(LABELED, *shape)), torch.arange(LABELED) % options.classes
    before, pool = memory(), blocks(options.rows, *shape)
    seconds, picks = clocked(
        lambda: askance.select(None, labeled, pool, options.n, strategy=options.strategy)
    )
    print(
        json.dumps(
            vars(options)
            | {
                "seconds": round(seconds, 2),
                "timings": {name: round(value, 2) for name, value in picks.timings.items()},
                "memory_above_start": peak_memory() - before,
                "picked": len(set(picks.indices.tolist())),
            }
        )
    )


if __name__ == "__main__":
    main()
