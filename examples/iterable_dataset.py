"""A pool that can only be read from start to end: an `IterableDataset`, a few batches in memory.

python examples/iterable_dataset.py
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset

import askance

ROWS, SHARD = 40_000, 5_000


class Shards(IterableDataset[Tensor]):
    """Rows read from files, shard by shard, always in the same order."""

    def __iter__(self) -> Iterator[Tensor]:
        for shard in range(ROWS // SHARD):
            rows = np.random.default_rng(shard).normal(size=(SHARD, 8))  # "read the file"
            yield from torch.from_numpy(rows).float()


def answer(x: Tensor) -> Tensor:
    return torch.stack([x[:, 0] + x[:, 1], x[:, 2] * 2, x[:, 3] - x[:, 4]], dim=1).argmax(1)


def trained(X: Tensor, y: Tensor) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X), y).backward()
        optimizer.step()
    return model


def main() -> None:
    stream = DataLoader(Shards(), batch_size=1_000)
    X, taken = torch.stack(list(islice(Shards(), 30))), list(range(30))
    test = torch.from_numpy(np.random.default_rng(99).normal(size=(5_000, 8))).float()
    for _ in range(4):
        model = trained(X, answer(X))
        right = model(test).argmax(1) == answer(test)
        print(f"{len(X)} labels: {right.float().mean():.1%}")
        # A pointwise rule keeps only the 30 best rows in memory.
        picks = askance.select(model, (X, answer(X)), stream, 30, strategy="margin", exclude=taken)
        taken += picks.indices.tolist()
        X = torch.stack([row for position, row in enumerate(Shards()) if position in taken])


if __name__ == "__main__":
    main()
