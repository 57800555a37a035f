"""Fine-tuning with a warm start: each round trains the network of the round before further.

python examples/fine_tuning.py
"""

from __future__ import annotations

import copy

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import askance


def fit(model: nn.Module, X: Tensor, y: Tensor, steps: int) -> nn.Module:
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X), y).backward()
        optimizer.step()
    return model


def accuracy(model: nn.Module, X: Tensor, y: Tensor) -> float:
    return float((model(X).argmax(1) == y).float().mean())


def main() -> None:
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    X, y = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)
    # Pretrained on another task: is the digit even? Its body is kept, its head is new.
    body = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    fit(nn.Sequential(body, nn.Linear(64, 2)), X[:400], y[:400] % 2, steps=200)
    pretrained = nn.Sequential(body, nn.Linear(64, 10))
    pool, test = (X[400:1_400], y[400:1_400]), (X[1_400:], y[1_400:])
    results = {}
    for name, steps in (("from scratch", 200), ("warm start", 50)):
        model, total = copy.deepcopy(pretrained), 0
        for run in askance.loop(pool[0], askance.oracles.Truth(pool[1]), strategy="badge",
                                batch=20, rounds=5):  # fmt: skip
            if name == "from scratch":
                model = copy.deepcopy(pretrained)
            fit(model, *run.labeled, steps=steps)
            total += steps
            # Asking does not change the model, so the next round can go on training it.
            run.ask(model)
        results[name] = accuracy(model, *test)
        print(f"{name}: {results[name]:.1%} with {len(run.labels)} labels after {total} steps")


if __name__ == "__main__":
    main()
