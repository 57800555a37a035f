"""Naive twins of `askance.picking`: every vector materialised in float64, every rule a plain loop.

Written from the equations, sharing nothing with the library. G is the (N, C·D) matrix of gradients,
or any (N, D) matrix of points; R are the residuals of the clocks; w is D², the squared distance to
the nearest pick.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Picked = tuple[Ints, Floats]
"""(rows, scores), in the order of the picks."""


def pseudo_gradients(
    logits_NC: Tensor, features_ND: Tensor, bias: bool = False, loss: str = "cross-entropy"
) -> Floats:
    """∂ℓ/∂W at each point under its pseudo-label, flattened: (p − e_ŷ) ⊗ h, a row at a time."""
    residual = softmax_residual if loss == "cross-entropy" else sigmoid_residual
    rows = []
    for z, h in zip(logits_NC.double().numpy(), features_ND.double().numpy(), strict=True):
        rows.append(np.outer(residual(z), np.append(h, 1.0) if bias else h).ravel())
    return np.array(rows)


def softmax_residual(z: Floats) -> Floats:
    """p − e_ŷ. Its entry at ŷ is −Σ_{k≠ŷ} p_k: the same number as p_ŷ − 1, which would cancel."""
    y = int(np.argmax(z))
    e = np.exp(z - z[y])
    p = e / e.sum()
    p[y] = 0.0
    p[y] = -p.sum()
    return p


def sigmoid_residual(z: Floats) -> Floats:
    """σ(z) − ŷ with ŷ = 1[z > 0]: −σ(−z) there, σ(z) elsewhere."""
    e = np.exp(-np.abs(z))
    return np.where(z > 0, -1.0, 1.0) * e / (1.0 + e)


def sq_norms(G: Floats) -> Floats:
    return (G**2).sum(axis=1)


def sq_dists_to(G: Floats, centre: Floats) -> Floats:
    """‖g − c‖² for every row."""
    return ((G - centre) ** 2).sum(axis=1)


def exact_sq_dist(a: Floats, h: Floats, b: Floats, k: Floats, bias: bool) -> Fraction:
    """‖a ⊗ [h; 1] − b ⊗ [k; 1]‖² without any rounding."""
    a, b = [Fraction(x) for x in a.tolist()], [Fraction(x) for x in b.tolist()]
    one = [Fraction(1)] if bias else []
    h, k = [Fraction(x) for x in h.tolist()] + one, [Fraction(x) for x in k.tolist()] + one
    total = Fraction(0)
    for p, q in zip(a, b, strict=True):
        for x, y in zip(h, k, strict=True):
            total += (p * x - q * y) ** 2
    return total


def clocks(G: Floats, n: int, R: Floats, *, elapse: bool = True, origin: bool = False) -> Picked:
    """D² sampling by exponential clocks, dense.

    The largest norm first. Then the clock that fires first, after Δ = min R/w; every other one has
    run down by w·Δ; w falls to the distance to the new pick. With every w zero, the smallest R.

    `elapse=False` and `origin=True` are two mistakes, here to show that the tests see them: clocks
    that are never run down, and the origin as one more centre.
    """
    R = R.copy()
    first = int(np.argmax(sq_norms(G)))
    rows, scores = [first], [float(sq_norms(G)[first])]
    w = sq_dists_to(G, G[first])
    if origin:
        w = np.minimum(w, sq_norms(G))
    left = np.ones(len(G), dtype=bool)
    left[first] = False
    # An over-confident network's D² may be too small for R/w to be a number.
    with np.errstate(over="ignore", invalid="ignore"):
        while len(rows) < n:
            running, resting = np.flatnonzero(left & (w > 0)), np.flatnonzero(left)
            if len(running):
                row = int(running[np.argmin(R[running] / w[running])])
                delta = R[row] / w[row]
            else:
                row = int(resting[np.argmin(R[resting])])
                delta = 0.0
            rows.append(row)
            scores.append(float(w[row]))
            left[row] = False
            if elapse:
                R = R - w * delta
            w = np.minimum(w, sq_dists_to(G, G[row]))
    return np.array(rows), np.array(scores)


def cumulative_sum(G: Floats, n: int, rng: np.random.RandomState) -> Picked:
    """D² sampling as BADGE's authors describe it: invert the cumulative sum, redraw what is taken.

    D² is found afresh for each pick, and the inversion is SciPy's.
    """
    first = int(np.argmax(sq_norms(G)))
    rows, scores = [first], [float(sq_norms(G)[first])]
    while len(rows) < n:
        w = np.min([sq_dists_to(G, G[row]) for row in rows], axis=0)
        law = stats.rv_discrete(values=(np.arange(len(G)), w / w.sum()))
        row = int(law.rvs(random_state=rng))
        while row in rows:
            row = int(law.rvs(random_state=rng))
        rows.append(row)
        scores.append(float(w[row]))
    return np.array(rows), np.array(scores)


def d2_pair_law(G: Floats) -> Floats:
    """P[i, j] = P(second pick i, third pick j) of D² sampling after the largest norm."""
    w = sq_dists_to(G, G[int(np.argmax(sq_norms(G)))])
    P = np.zeros((len(G), len(G)))
    for i in range(len(G)):
        then = np.minimum(w, sq_dists_to(G, G[i]))
        P[i] = w[i] / w.sum() * then / then.sum()
    return P


def without_replacement_pair_law(weights: Floats) -> Floats:
    """P[i, j] = P(first draw i, second draw j) of draws without replacement ∝ weights."""
    P = np.zeros((len(weights), len(weights)))
    for i in range(len(weights)):
        rest = weights.copy()
        rest[i] = 0.0
        P[i] = weights[i] / weights.sum() * rest / rest.sum()
    return P


def farthest_first(X: Floats, labeled: Floats, n: int) -> Picked:
    """k-center greedy: the row farthest from all labelled and picked ones, lowest row on a tie."""
    nearest = _to_labeled(X, labeled)
    left = np.ones(len(X), dtype=bool)
    rows, scores = [], []
    for _ in range(n):
        row = int(np.argmax(np.where(left, nearest, -1.0)))
        rows.append(row)
        scores.append(float(nearest[row]))
        left[row] = False
        nearest = np.minimum(nearest, np.linalg.norm(X - X[row], axis=1))
    return np.array(rows), np.array(scores)


def farthest_first_along(X: Floats, labeled: Floats, rows: Ints) -> tuple[Floats, Floats]:
    """Given picks: the distance of each when it was picked, and the largest one then left."""
    nearest = _to_labeled(X, labeled)
    left = np.ones(len(X), dtype=bool)
    own, largest = [], []
    for row in rows:
        own.append(float(nearest[row]))
        largest.append(float(nearest[left].max()))
        left[row] = False
        nearest = np.minimum(nearest, np.linalg.norm(X - X[row], axis=1))
    return np.array(own), np.array(largest)


def _to_labeled(X: Floats, labeled: Floats) -> Floats:
    nearest = np.full(len(X), np.inf)
    for point in labeled:
        nearest = np.minimum(nearest, np.linalg.norm(X - point, axis=1))
    return nearest


def widest_angle(G: Floats, n: int) -> Picked:
    """The first row, then always the widest 1 − cos to the nearest pick, lowest row on a tie.

    Zero vectors have no direction: they come last, with score 0.
    """
    directed = [i for i, g in enumerate(G) if g.any()]
    rest = [i for i, g in enumerate(G) if not g.any()]
    nearest = np.full(len(G), 2.0)
    rows, scores = [], []
    for _ in range(min(n, len(directed))):
        left = [i for i in directed if i not in rows]
        row = max(left, key=lambda i: (nearest[i], -i))
        rows.append(row)
        scores.append(float(nearest[row]))
        for i in left:
            nearest[i] = min(nearest[i], one_minus_cos(G[i], G[row]))
    more = rest[: n - len(rows)]
    return np.array(rows + more), np.array(scores + [0.0] * len(more))


def widest_angle_along(G: Floats, rows: Ints) -> tuple[Floats, Floats]:
    """Given picks among vectors that are not zero: the 1 − cos of each, and the widest one left."""
    nearest = np.full(len(G), 2.0)
    left = set(range(len(G)))
    own, widest = [], []
    for row in rows:
        own.append(nearest[row])
        widest.append(max(nearest[i] for i in left))
        left.remove(int(row))
        for i in left:
            nearest[i] = min(nearest[i], one_minus_cos(G[i], G[row]))
    return np.array(own), np.array(widest)


def one_minus_cos(g: Floats, c: Floats) -> float:
    return float(1.0 - g @ c / (np.linalg.norm(g) * np.linalg.norm(c)))


def exact_one_minus_cos(g: Floats, c: Floats) -> float:
    """1 − cos with eighty digits before the last rounding."""
    with localcontext() as context:
        context.prec = 80
        g, c = [Decimal(x) for x in g.tolist()], [Decimal(x) for x in c.tolist()]
        inner = sum(x * y for x, y in zip(g, c, strict=True))
        sq_lengths = sum(x * x for x in g) * sum(y * y for y in c)
        return float(1 - inner / sq_lengths.sqrt())


def sorted_top_k(scores: list[float], k: int) -> list[int]:
    """A full sort by (score from the highest, index from the lowest)."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]


def gumbel_keys(scores: list[float], beta: float, noise: list[float]) -> list[float]:
    """β·log s + noise for positive scores."""
    return [beta * math.log(s) + g for s, g in zip(scores, noise, strict=True)]


def unit(X: Floats) -> Floats:
    """Each row divided by its length; a zero row as it is."""
    return np.array([x / math.sqrt(math.fsum(x**2)) if x.any() else x for x in X])


def covering_gains(
    X: Floats, E: Floats, weights: Floats, sq_width: float, centres: Floats
) -> Floats:
    """Σ_e w(e)·(k(x, e) − max over the centres of k(c, e))₊ of every row x, one pair at a time."""
    X, E, centres = unit(X), unit(E), unit(centres)

    def k(x: Floats, e: Floats) -> float:
        return math.exp(-math.fsum((x - e) ** 2) / sq_width)

    covered = [max((k(c, e) for c in centres), default=0.0) for e in E]
    return np.array(
        [
            math.fsum(
                w * max(k(x, e) - c, 0.0) for e, w, c in zip(E, weights, covered, strict=True)
            )
            for x in X
        ]
    )


def covering(
    X: Floats, E: Floats, weights: Floats, sq_width: float, labeled: Floats, n: int
) -> Picked:
    """Greedy: n times the row of largest gain, which is a centre from then on; ties to the lowest."""
    rows: list[int] = []
    scores: list[float] = []
    for _ in range(n):
        gains = covering_gains(X, E, weights, sq_width, np.concatenate([labeled, X[rows]]))
        # Rows that are each other's nearest have equal gains, but for the rounding of two sums.
        gains = np.array([float(f"{gain:.11g}") for gain in gains])
        gains[rows] = -1.0
        rows.append(int(gains.argmax()))
        scores.append(float(gains.max()))
    return np.array(rows), np.array(scores)
