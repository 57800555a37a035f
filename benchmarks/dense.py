"""Dense twins: the same rules written the plain way, for time and for exactness."""

from __future__ import annotations

import numpy as np
import torch
from peers import Workload
from torch import nn


def residuals(logits: np.ndarray) -> np.ndarray:
    """p − e_ŷ in float64, its top class summed over the others."""
    z = logits.astype(np.float64)
    exps = np.exp(z - z.max(axis=1, keepdims=True))
    top = z.argmax(axis=1)
    rows = np.arange(len(z))
    exps[rows, top] = 0.0
    others = exps.sum(axis=1)
    a = exps / (1 + others)[:, None]
    a[rows, top] = -others / (1 + others)
    return a


def kmeanspp(work: Workload, n: int, clocks: np.ndarray, dtype: type) -> np.ndarray:
    """D² sampling by exponential clocks, every distance computed at every pick, from factors."""
    a, h = residuals(work.logits).astype(dtype), work.features.astype(dtype)
    norms = (a * a).sum(1) * (h * h).sum(1)
    left = clocks.copy()
    picks = [int(norms.argmax())]
    sq = np.full(len(h), np.inf)
    while len(picks) < n:
        last = picks[-1]
        new = norms + norms[last] - 2 * (a @ a[last]) * (h @ h[last])
        # Copies: an expanded square of rounding errors is no distance.
        new[new < 8 * np.finfo(dtype).eps * (norms + norms[last])] = 0.0
        sq = np.minimum(sq, new)
        left[last] = np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            wait = np.where(sq > 0, left / sq, np.inf)
        row = int(wait.argmin())
        if np.isinf(wait[row]):
            picks += np.argsort(left, kind="stable")[: n - len(picks)].tolist()
            break
        left -= sq * wait[row]
        picks.append(row)
    return np.array(picks)


def kcenter(work: Workload, n: int, dtype: type) -> np.ndarray:
    """Farthest first with every distance computed at every pick."""
    h, labeled = work.features.astype(dtype), work.labeled_features.astype(dtype)
    norms = (h * h).sum(1)
    sq = np.full(len(h), np.inf, dtype=dtype)
    for part in np.array_split(np.arange(len(labeled)), max(1, len(labeled) // 250)):
        centres = labeled[part]
        new = norms[:, None] + (centres * centres).sum(1) - 2 * (h @ centres.T)
        sq = np.minimum(sq, new.min(axis=1))
    picks: list[int] = []
    while len(picks) < n:
        row = int(sq.argmax())
        picks.append(row)
        sq = np.minimum(sq, norms + norms[row] - 2 * (h @ h[row]))
        sq[picks] = -np.inf
    return np.array(picks)


def entropy(work: Workload, n: int) -> np.ndarray:
    """−Σ p log p of probabilities that are there already."""
    probs = torch.from_numpy(work.probs)
    return torch.special.entr(probs).sum(dim=1).topk(n).indices.numpy()


def grad_vmap(work: Workload, labeled_logits: np.ndarray, n: int, rows: int = 1_000) -> np.ndarray:
    """`grad` with per-point gradients written out, a chunk of points at a time."""
    features, labeled = torch.from_numpy(work.features), torch.from_numpy(work.labeled_features)
    labels = torch.from_numpy(work.labeled_labels)
    weight = torch.zeros(work.logits.shape[1], features.shape[1] + 1)

    def loss(
        weight: torch.Tensor, h: torch.Tensor, z: torch.Tensor, y: torch.Tensor
    ) -> torch.Tensor:
        # The stored logits are the head's outputs; the zero weight only carries the derivative.
        shifted = z + weight[:, :-1] @ h + weight[:, -1]
        return nn.functional.cross_entropy(shifted, y)

    per_point = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0, 0))
    total = torch.zeros_like(weight)
    seen_z = torch.from_numpy(labeled_logits)
    for h, z, y in zip(labeled.split(rows), seen_z.split(rows), labels.split(rows), strict=True):
        total += per_point(weight, h, z, y).sum(0)
    mean = total / len(labeled)
    scores = []
    for h, z in zip(features.split(rows), torch.from_numpy(work.logits).split(rows), strict=True):
        scores.append((per_point(weight, h, z, z.argmax(1)) - mean).flatten(1).norm(dim=1))
    factor = len(labeled) / (len(labeled) + 1)
    return (factor * torch.cat(scores)).topk(n).indices.numpy()
