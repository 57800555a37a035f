"""SGD with momentum, written from its equations, one network, one mini-batch after the other.

v ← μ v + ∇f(θ),   θ ← θ − γ v,   v = 0 at the start.
"""

from __future__ import annotations

import math

import torch
from torch import nn


def train(
    model: nn.Module, X, y, orders, *, lr: float, momentum: float, batch_size: int
) -> nn.Module:
    """`orders` is one list of positions an epoch; the last mini-batch may be smaller."""
    model.train()
    buffers = [torch.zeros_like(p) for p in model.parameters()]
    for order in orders:
        for start in range(0, len(order), batch_size):
            batch = [int(i) for i in order[start : start + batch_size]]
            logits = model(torch.stack([X[i] for i in batch]))
            shifted = logits - logits.max(dim=1, keepdim=True).values
            logp = shifted - shifted.exp().sum(dim=1, keepdim=True).log()
            loss = -sum(logp[row, int(y[i])] for row, i in enumerate(batch)) / len(batch)
            grads = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for p, v, g in zip(model.parameters(), buffers, grads, strict=True):
                    v.copy_(momentum * v + g)
                    p.sub_(lr * v)
    return model.eval()


def score(model: nn.Module, X, y, rows) -> tuple[float, float]:
    """(share of right answers, mean of −log p_y) of one network on some rows, point by point."""
    right, losses = 0, []
    with torch.no_grad():
        for row in rows:
            z = [float(value) for value in model(X[int(row)].unsqueeze(0))[0]]
            own = z[int(y[int(row)])]
            right += own == max(z)
            losses.append(math.log(sum(math.exp(value - max(z)) for value in z)) + max(z) - own)
    return right / len(rows), sum(losses) / len(rows)


def by_class(model: nn.Module, X, y, rows) -> tuple[float, float]:
    """(balanced accuracy, macro-F1) of one network on some rows, class by class, point by point.

    Over the classes that a row has: the mean of right / points, and of the harmonic mean of that and of
    right / answers.
    """
    with torch.no_grad():
        guesses = [int(model(X[int(row)].unsqueeze(0))[0].argmax()) for row in rows]
    truths = [int(y[int(row)]) for row in rows]
    recalls, f1s = [], []
    for c in sorted(set(truths)):
        right = sum(1 for t, g in zip(truths, guesses, strict=True) if t == g == c)
        recall = right / truths.count(c)
        precision = right / guesses.count(c) if c in guesses else 0.0
        recalls.append(recall)
        f1s.append(2 * precision * recall / (precision + recall) if right else 0.0)
    return sum(recalls) / len(recalls), sum(f1s) / len(f1s)


def first_layer(weights, X, batches, grads, *, momentum: float):
    """A linear layer of several networks, step by step, every weight at every step.

    `batches[s][r]` are the rows network r sees in step s, `grads[s][r]` the gradients it gets, one
    a row. Gives the layer's outputs in each step, and each network's last weights (D, O) and momentum
    buffers.
    """
    weights = [W.clone() for W in weights]
    buffers = [torch.zeros_like(W) for W in weights]
    said = []
    for rows, grad in zip(batches, grads, strict=True):
        said.append([])
        for r, W in enumerate(weights):
            points = [X[int(i)] for i in rows[r]]
            said[-1].append(torch.stack([x @ W for x in points]))
            g = sum(torch.outer(x, delta) for x, delta in zip(points, grad[r], strict=True))
            buffers[r] = momentum * buffers[r] + g
            weights[r] = W - buffers[r]
    return said, weights, buffers


def normed(x, added, gamma, beta, running_mean, running_var, *, momentum, eps):
    """(y, running mean, running variance) of batch-norm in training, channel by channel, in float64.

    μ = Σx/P, σ² = Σ(x − μ)²/P, y = γ(x − μ)/√(σ² + ε) + β and what is `added`; running values go a
    share `momentum` of the way to μ and to Σ(x − μ)²/(P − 1).
    """
    ys, means, variances = [], [], []
    for c in range(x.shape[1]):
        values = x[:, c].double()
        P = values.numel()
        mu = values.sum() / P
        square = ((values - mu) ** 2).sum()
        y = gamma[c].double() * (values - mu) / (square / P + eps) ** 0.5 + beta[c].double()
        if added is not None:
            y = y + added[:, c].double()
        ys.append(y)
        means.append((1 - momentum) * running_mean[c].double() + momentum * mu)
        variances.append((1 - momentum) * running_var[c].double() + momentum * square / (P - 1))
    return torch.stack(ys, dim=1), torch.stack(means), torch.stack(variances)
