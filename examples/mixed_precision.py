"""Mixed precision: train and ask under `torch.autocast`. Scores are made in float32 all the same.

python examples/mixed_precision.py
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import askance


def trained(X: Tensor, y: Tensor) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(80):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(X), y)
        loss.backward()
        optimizer.step()
    return model


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    X, y = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)
    pool, oracle = X[:1_200], askance.oracles.Truth(y[:1_200])
    for run in askance.loop(pool, oracle, strategy="grad", batch=50, rounds=2):
        model = trained(*run.labeled)
        free = run.asked
        whole = askance.select(model, run.labeled, pool, 50, exclude=free).indices
        with torch.autocast("cpu", dtype=torch.bfloat16):
            right = model(X[1_200:]).argmax(1) == y[1_200:]
            picks = run.ask(model)
        print(f"{len(free)} labels: {right.float().mean():.1%}")
        if picks is not None:
            both = len(set(picks.indices.tolist()) & set(whole.tolist()))
            print(
                f"  of its 50 picks, {both} are those of a float32 pass; scores {picks.scores.dtype}"
            )


if __name__ == "__main__":
    main()
