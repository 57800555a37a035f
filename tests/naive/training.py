"""SGD with momentum, written from its equations, one network, one mini-batch after the other.

v ← μ v + ∇f(θ),   θ ← θ − γ v,   v = 0 at the start.
"""

from __future__ import annotations

import torch
from torch import nn


def train(
    model: nn.Module, X, y, orders, *, lr: float, momentum: float, batch_size: int
) -> nn.Module:
    """`orders` is one list of positions an epoch; the last mini-batch may be smaller."""
    model.train()
    speeds = [torch.zeros_like(p) for p in model.parameters()]
    for order in orders:
        for start in range(0, len(order), batch_size):
            batch = [int(i) for i in order[start : start + batch_size]]
            logits = model(torch.stack([X[i] for i in batch]))
            shifted = logits - logits.max(dim=1, keepdim=True).values
            logp = shifted - shifted.exp().sum(dim=1, keepdim=True).log()
            loss = -sum(logp[row, int(y[i])] for row, i in enumerate(batch)) / len(batch)
            slopes = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for p, v, g in zip(model.parameters(), speeds, slopes, strict=True):
                    v.copy_(momentum * v + g)
                    p.sub_(lr * v)
    return model.eval()
