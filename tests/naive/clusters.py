"""Naive twins of the rules that cluster: plain loops in float64, written from the equations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def unit(X: Floats) -> Floats:
    """x / ‖x‖, and 0 for 0."""
    return np.array([x / np.linalg.norm(x) if x.any() else x for x in X])


def lloyd(X: Floats, centres: Floats, rounds: int = 100) -> list[int]:
    """Assign, average, until at most a thousandth of the rows changes; lowest cluster on a tie."""
    centres, labels = centres.copy(), [-1] * len(X)
    for _ in range(rounds):
        before = labels
        labels = [int(np.argmin([((x - c) ** 2).sum() for c in centres])) for x in X]
        if sum(a != b for a, b in zip(before, labels, strict=True)) <= len(X) / 1000:
            break
        for k in range(len(centres)):
            members = [x for x, label in zip(X, labels, strict=True) if label == k]
            if members:
                centres[k] = np.mean(members, axis=0)
    return labels


def kmeanspp_pair_law(X: Floats) -> Floats:
    """P[i, j] = P(first centre i, second centre j): uniform, then ∝ D²."""
    P = np.zeros((len(X), len(X)))
    for i in range(len(X)):
        sq = ((X - X[i]) ** 2).sum(axis=1)
        P[i] = sq / sq.sum() / len(X)
    return P


def mean_neighbour_dist(X: Floats, i: int, k: int) -> float:
    """The mean distance of row i to its k nearest other rows."""
    dists = sorted(float(np.linalg.norm(X[i] - X[j])) for j in range(len(X)) if j != i)[:k]
    return sum(dists) / len(dists) if dists else 0.0


def typical_along(
    X: Floats, clusters: list[int], labeled: int, picks: list[int], neighbours: int
) -> list[tuple[float, float]]:
    """TypiClust among the first rows of X, whose last `labeled` rows have labels; given its picks.

    For each pick its mean distance to its neighbours, and the least one in the cluster whose turn it
    is: the same number for a right pick. Infinite for a pick from another cluster.
    """
    count = len(X) - labeled
    size = {c: clusters.count(c) for c in set(clusters)}
    labels = {c: clusters[count:].count(c) for c in size}
    order = sorted(size, key=lambda c: (labels[c], -size[c], c))
    picked: list[int] = []
    both: list[tuple[float, float]] = []
    while len(picked) < len(picks):
        members = {
            c: [i for i in range(count) if clusters[i] == c and i not in picked] for c in order
        }
        turn = [c for c in order if members[c] and size[c] > 5]
        turn = turn or [c for c in order if members[c]]
        for c in turn[: len(picks) - len(picked)]:
            rows, pick = members[c], picks[len(picked)]
            k = min(neighbours, max(1, len(rows) // 2))
            means = {row: mean_neighbour_dist(X[rows], i, k) for i, row in enumerate(rows)}
            both.append((means.get(pick, float("inf")), min(means.values())))
            picked.append(pick)
    return both


def cover(
    X: Floats, labeled: Floats, radius: float, n: int, ties: list[float]
) -> tuple[list[int], list[int]]:
    """ProbCover: the most uncovered rows within the radius, the smallest tie first."""
    near = [[float(np.linalg.norm(x - y)) < radius for y in X] for x in X]
    covered = {i for i in range(len(X)) if any(np.linalg.norm(X[i] - y) < radius for y in labeled)}
    picked: list[int] = []
    gains: list[int] = []
    for _ in range(n):
        gain = {
            i: sum(near[i][j] for j in range(len(X)) if j not in covered)
            for i in range(len(X))
            if i not in picked
        }
        best = min(gain, key=lambda i: (-gain[i], ties[i]))
        picked.append(best)
        gains.append(gain[best])
        covered |= {j for j in range(len(X)) if near[best][j]}
    return picked, gains


def purity(X: Floats, clusters: list[int], radius: float) -> float:
    """The share of rows whose ball, without its edge, holds rows of their own cluster alone."""
    pure = [
        all(
            clusters[i] == clusters[j] or np.linalg.norm(X[i] - X[j]) >= radius
            for j in range(len(X))
        )
        for i in range(len(X))
    ]
    return sum(pure) / len(X)


def average_linkage(X: Floats, k: int) -> list[set[int]]:
    """Merge the two clusters nearest in the mean distance of their pairs, until k are left."""
    clusters = [{i} for i in range(len(X))]
    while len(clusters) > k:
        mean = {
            (a, b): np.mean([np.linalg.norm(X[i] - X[j]) for i in clusters[a] for j in clusters[b]])
            for a in range(len(clusters))
            for b in range(a)
        }
        a, b = min(mean, key=lambda pair: mean[pair])
        clusters[b] |= clusters.pop(a)
    return clusters


def round_robin(clusters: list[int], ties: list[float], n: int) -> list[int]:
    """Cluster after cluster, the smallest first, each its row of smallest tie, until there are n."""
    sizes = {c: clusters.count(c) for c in set(clusters)}
    left = {c: [i for i, own in enumerate(clusters) if own == c] for c in sizes}
    picked: list[int] = []
    while len(picked) < n:
        for c in sorted(sizes, key=lambda c: (sizes[c], c)):
            if left[c] and len(picked) < n:
                row = min(left[c], key=lambda i: ties[i])
                left[c].remove(row)
                picked.append(row)
    return picked


def fill_up(classes: list[int], counts: list[int], keys: list[float], n: int) -> list[int]:
    """Each time a row of the class with the fewest labels that has a row left: its smallest key."""
    counts, picked = list(counts), []
    for _ in range(n):
        left = [i for i in range(len(classes)) if i not in picked]
        row = min(left, key=lambda i: (counts[classes[i]], classes[i], keys[i]))
        picked.append(row)
        counts[classes[row]] += 1
    return picked
