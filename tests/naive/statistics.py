"""The penalty matrix, straight from the paper's words: loops, and one test at a time.

And what is counted over experiments, from `results/paper/JUDGING.md`.
"""

from itertools import combinations, pairwise, product

import numpy as np
from scipy import stats


def benjamini_hochberg(p_values):
    """min over k ≥ rank of p_(k) m / k, at most 1."""
    m = len(p_values)
    order = sorted(range(m), key=lambda i: p_values[i])
    adjusted = [0.0] * m
    for rank, i in enumerate(order, start=1):
        adjusted[i] = min(1.0, min(p_values[order[k - 1]] * m / k for k in range(rank, m + 1)))
    return adjusted


def penalty_matrix(tables, rounds, alpha=0.05):
    """Of one experiment, {method: {seed: {round: accuracy}}}, over some rounds."""
    methods = list(tables)
    wins, counted = {(i, j): 0 for i in methods for j in methods}, 0
    for round in rounds:
        tested = []
        for i, j in combinations(methods, 2):
            seeds = [s for s in tables[i] if s in tables[j]]
            seeds = [s for s in seeds if round in tables[i][s] and round in tables[j][s]]
            if len(seeds) < 2:
                continue
            a = [tables[i][s][round] for s in seeds]
            b = [tables[j][s][round] for s in seeds]
            p = 1.0 if a == b else stats.ttest_rel(a, b).pvalue
            tested.append((i, j, np.mean(a) - np.mean(b), p))
        if not tested:
            continue
        counted += 1
        for (i, j, difference, _), p in zip(
            tested, benjamini_hochberg([t[3] for t in tested]), strict=True
        ):
            if p < alpha:
                wins[(i, j) if difference > 0 else (j, i)] += 1
    return [[wins[i, j] / max(counted, 1) for j in methods] for i in methods]


def winning_pairs(
    accuracies, *, one_sided=False, corrected=True, both_directions=False, alpha=0.05
):
    """{(winner, loser)} of one round, {method: [accuracy of each seed]}.

    A one-sided test of a pair asks whether the method with the higher mean is above the other; with
    `both_directions` also whether the other is above it, and the correction is over all tests.
    """
    tested = []
    for i, j in combinations(accuracies, 2):
        a, b = accuracies[i], accuracies[j]
        high, low = (i, j) if np.mean(np.subtract(a, b)) > 0 else (j, i)
        sides = [(high, low)] + [(low, high)] * both_directions
        for one, other in sides:
            kind = "greater" if one_sided else "two-sided"
            test = stats.ttest_rel(accuracies[one], accuracies[other], alternative=kind)
            tested.append((one, other, 1.0 if a == b else float(test.pvalue)))
    p_values = [p for *_, p in tested]
    if corrected:
        p_values = benjamini_hochberg(p_values)
    return {(one, other) for (one, other, _), p in zip(tested, p_values, strict=True) if p < alpha}


def clustered_interval(values, datasets, level=0.95):
    """A mean whose units are datasets: residuals are summed within each, D − 1 degrees of freedom."""
    mean = sum(values) / len(values)
    names = sorted(set(datasets))
    total = 0.0
    for name in names:
        residual = sum(
            x - mean for x, dataset in zip(values, datasets, strict=True) if dataset == name
        )
        total += residual * residual
    error = (len(names) / (len(names) - 1) * total) ** 0.5 / len(values)
    width = stats.t.ppf((1 + level) / 2, len(names) - 1) * error
    return mean, mean - width, mean + width


def resampled_means(values, datasets):
    """The mean in every bootstrap sample of datasets."""
    names = sorted(set(datasets))
    found = []
    for drawn in product(names, repeat=len(names)):
        those = [x for name in drawn for x, d in zip(values, datasets, strict=True) if d == name]
        found.append(sum(those) / len(those))
    return found


def how_many(tables, limit, alpha):
    """(above, significantly above, significantly below): experiments, Holm's method step by step."""

    def significant(side):
        p_values = sorted(
            stats.ttest_1samp(table, limit, alternative=side).pvalue for table in tables
        )
        count = 0
        for rank, p in enumerate(p_values):
            if p > alpha / (len(tables) - rank):
                break
            count += 1
        return count

    above = sum(sum(table) / len(table) > limit for table in tables)
    return above, significant("greater"), significant("less")


def block_matrix(tables, rounds, left_out, size=5):
    """The mean of penalty matrices of so many seeds each, {(seed, round)} left out of them.

    A round of a block counts where none of its seeds is left out, a block with half of its rounds.
    """
    seeds = sorted(set.intersection(*(set(table) for table in tables.values())))
    matrices = []
    for start in range(0, len(seeds) - size + 1, size):
        block = seeds[start : start + size]
        kept = [r for r in rounds if not any((s, r) in left_out for s in block)]
        if kept and 2 * len(kept) >= len(rounds):
            part = {m: {s: table[s] for s in block} for m, table in tables.items()}
            matrices.append(penalty_matrix(part, kept))
    return np.mean(matrices, axis=0) if matrices else None


def gains_by_third(table, rule, other, rounds):
    """Of {method: {seed: {round: accuracy}}}: [(mean, low, high)] for all rounds and each third.

    With T queries the thirds have ⌈T/3⌉, ⌈(T − 1)/3⌉ and ⌈(T − 2)/3⌉ rounds; a seed needs half of them.
    """
    queries = [t for t in rounds if t > 0]
    sizes = [-(-(len(queries) - k) // 3) for k in range(3)]
    first, middle = sizes[0], sizes[0] + sizes[1]
    stages = [queries, queries[:first], queries[first:middle], queries[middle:]]
    found = []
    for stage in stages:
        means = []
        for seed in table[rule]:
            if seed not in table[other]:
                continue
            both = [t for t in stage if t in table[rule][seed] and t in table[other][seed]]
            if both and 2 * len(both) >= len(stage):
                means.append(
                    sum(table[rule][seed][t] - table[other][seed][t] for t in both) / len(both)
                )
        if len(means) < 2:
            found.append((means[0] if means else None, None, None))
            continue
        mean = sum(means) / len(means)
        std = np.sqrt(sum((value - mean) ** 2 for value in means) / (len(means) - 1))
        width = stats.t.ppf(0.975, len(means) - 1) * std / np.sqrt(len(means))
        found.append((mean, mean - width, mean + width))
    return found


def area_without_holes(labels, accuracies):
    """Trapezoids over the rounds of a curve that are there, divided by the labels they span."""
    there = [(x, y) for x, y in zip(labels, accuracies, strict=True) if y == y]
    if len(there) == 1:
        return there[0][1]
    total = 0.0
    for (x0, y0), (x1, y1) in pairwise(there):
        total += (x1 - x0) * (y0 + y1) / 2
    return total / (there[-1][0] - there[0][0])
