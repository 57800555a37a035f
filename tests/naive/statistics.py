"""The penalty matrix, straight from the paper's words: loops, and one test at a time."""

from itertools import combinations

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
