"""Pools to time acquisition on: what a trained network's forward pass leaves behind.

A 512-D-C ReLU network is trained on L labelled points of a Gaussian mixture; the pool is fresh points
of the same mixture. The three plain workloads are those of the acquisition table; the others are the
cases where lazy picking gains least.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from peers import Workload
from torch import nn


@dataclass(frozen=True)
class Spec:
    """One workload: sizes, and what makes it hard."""

    pool: int
    features: int
    classes: int
    picks: int
    labeled: int = 2_500
    steps: int = 300
    copies: int = 1
    spread: float | None = None
    logit_scale: float = 1.0
    note: str = ""


SPECS = {
    "W": Spec(25_000, 256, 10, 500),
    "W2": Spec(25_000, 512, 100, 500),
    "W3": Spec(100_000, 256, 10, 1_000),
    "copies": Spec(25_000, 256, 10, 500, copies=50, note="each point 50 times"),
    "clusters": Spec(25_000, 256, 10, 500, spread=1e-3, note="250 clusters, spread 0.1%"),
    "untrained": Spec(25_000, 256, 10, 500, steps=0, note="random weights"),
    "over-confident": Spec(25_000, 256, 10, 500, logit_scale=10.0, note="logits × 10"),
    "large batch": Spec(25_000, 256, 10, 5_000, note="a fifth of the pool"),
}


def build(spec: Spec, seed: int = 0) -> tuple[Workload, np.ndarray]:
    """(what peers see, labelled logits)."""
    generator = torch.Generator().manual_seed(seed)
    centres = 0.16 * torch.randn(spec.classes, 512, generator=generator)

    def draw(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.randint(spec.classes, (count,), generator=generator)
        return centres[labels] + torch.randn(count, 512, generator=generator), labels

    torch.manual_seed(seed)
    body, head = nn.Linear(512, spec.features), nn.Linear(spec.features, spec.classes)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.02, momentum=0.9)
    seen, labels = draw(spec.labeled)
    for _ in range(spec.steps):
        batch = torch.randint(spec.labeled, (64,), generator=generator)
        loss = nn.functional.cross_entropy(head(torch.relu(body(seen[batch]))), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    if spec.spread is not None:
        middles, _ = draw(spec.pool // 100)
        noise = torch.randn(spec.pool, 512, generator=generator)
        pool = middles.repeat_interleave(100, dim=0) + spec.spread * noise
    else:
        pool = draw(spec.pool // spec.copies)[0].repeat_interleave(spec.copies, dim=0)
    with torch.no_grad():
        h, seen_h = torch.relu(body(pool)), torch.relu(body(seen))
        z, seen_z = head(h) * spec.logit_scale, head(seen_h) * spec.logit_scale
        probs = torch.softmax(z, dim=1)
    arrays = (z, h, probs, seen_h, labels)
    return Workload(*(array.numpy() for array in arrays)), seen_z.numpy()


def save(work: Workload, labeled_logits: np.ndarray, folder: Path) -> None:
    """A workload for another process: an array a file."""
    for name, array in (vars(work) | {"labeled_logits": labeled_logits}).items():
        np.save(folder / f"{name}.npy", array)
