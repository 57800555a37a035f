"""Naive twin of BAIT's binary form: every inverse computed anew, in float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def vectors(logits: Floats, features: Floats) -> Floats:
    """√(p̂(1 − p̂))·[h; 1] of each row."""
    rows = []
    for z, h in zip(logits, features, strict=True):
        e = np.exp(z - z.max())
        peak = int(z.argmax())
        right = e[peak] / e.sum()
        wrong = np.delete(e, peak).sum() / e.sum()
        rows.append(np.sqrt(right * wrong) * np.append(h, 1.0))
    return np.array(rows)


def lowered(
    V: Floats, labeled: Floats, ridge: float, picks: list[int]
) -> list[tuple[float, float]]:
    """For each pick: by how much it lowers tr(A⁻¹F), and the most that a row then left lowers it."""
    F = sum(np.outer(v, v) for v in V) / len(V)
    A = ridge * np.eye(V.shape[1]) + sum((np.outer(v, v) for v in labeled), np.zeros_like(F))
    left, both = set(range(len(V))), []
    for pick in picks:
        before = np.trace(np.linalg.inv(A) @ F)
        gains = {i: before - np.trace(np.linalg.inv(A + np.outer(V[i], V[i])) @ F) for i in left}
        both.append((gains[pick], max(gains.values())))
        left.remove(pick)
        A = A + np.outer(V[pick], V[pick])
    return both
