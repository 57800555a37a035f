"""A convolutional network, images read by `DataLoader` workers. The pool's labels are never looked at.

python examples/convnet_workers.py
"""

from __future__ import annotations

from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset

import askance


class Digits(Dataset[tuple[Tensor, int]]):
    def __init__(self) -> None:
        self.images, self.labels = load_digits(return_X_y=True)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.tensor(self.images[index] / 16).float().view(1, 8, 8), int(self.labels[index])


def trained(data: Dataset[tuple[Tensor, int]]) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(144, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(30):
        for images, labels in DataLoader(data, batch_size=16, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    return model


def main() -> None:
    data = Digits()
    train, test, labelled = Subset(data, range(1_000)), range(1_000, 1_797), [*range(30)]
    pool = DataLoader(train, batch_size=128, num_workers=2)  # in order: picks are positions
    for _ in range(3):
        seen = Subset(train, labelled)
        model = trained(seen)
        # In evaluation mode, and back to what it was.
        outputs: Any = askance.embed(model, Subset(data, test)).logits
        right = outputs.argmax(1) == torch.tensor([data[row][1] for row in test])
        print(f"{len(labelled)} labels: {right.float().mean():.1%}")
        picks = askance.select(model, seen, pool, 30, strategy="powergrad", exclude=labelled)
        labelled += picks.indices.tolist()


if __name__ == "__main__":
    main()
