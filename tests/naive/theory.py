"""The paper's bound, the floored step and Proposition A.1, loop by loop from their equations."""

import math


def bound(risk, norms, gamma, epsilon, n, m, d, delta, eta, first=None, source="paper"):
    """The right-hand side of eq. 6, or of its simplified form, as one number."""
    constant = 1 / (1 - math.exp(-eta))
    steps = len(norms)
    if first is None:
        total = 0.0
        for t in range(steps):
            total += gamma[t] ** 2 / epsilon[t] ** 2 * norms[t] ** 2
    else:
        largest = max(gamma[t] ** 2 / epsilon[t] ** 2 for t in range(first - 1, steps))
        total = (steps - first + 1) * largest * norms[first - 1] ** 2
    if source == "paper":
        second = (constant * math.log(1 / delta) + 3) / (n - m)
    else:
        second = constant * (math.log(1 / delta) + 3) / (n - m)
    return eta * constant * risk + second + constant * math.log(d * steps) / (n - m) * total


def floored_path(start, whole_gradient, prior_gradient, steps, rate, precision, momentum):
    """Algorithm 1 of Luo, Luo & Li for a list of numbers; every W_t from W_0 on."""
    path = [list(start)]
    for _ in range(steps):
        w, before = path[-1], path[-2] if len(path) > 1 else path[-1]
        g, g_prior = whole_gradient(w), prior_gradient(w)
        new = []
        for k in range(len(w)):
            ratio = rate * (g[k] - g_prior[k]) / precision
            floored = math.floor(ratio) if ratio >= 0 else -math.floor(-ratio)
            new.append(
                w[k] + momentum * (w[k] - before[k]) - rate * g_prior[k] - precision * floored
            )
        path.append(new)
    return path


def rate(distances, discrepancies, first):
    """(q, μ_Δ, L_Δ) over the points of the path from t₀ = `first` (from 1) on."""
    points = range(first - 1, len(distances))
    ratios = [discrepancies[t] / distances[t] for t in points]
    steps = [distances[t + 1] / distances[t] for t in points if t + 1 < len(distances)]
    return max(steps), min(ratios), max(ratios)
