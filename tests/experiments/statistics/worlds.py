"""Tables small enough to know their winners."""

import numpy as np

from askance.experiments.formats import ResultRow
from askance.experiments.statistics.table import experiments

FIVE = ("random", "entropy", "badge", "kcenter", "grad")


def rows(accuracies, name="made", dataset="digits", model="mlp", batch=10):
    """Rows of {method: (S, T) accuracies}; NaN where a run has no such round."""
    return [
        ResultRow(name, dataset, model, method, seed, round, batch * (round + 1), float(accuracy))
        for method, table in accuracies.items()
        for seed, run in enumerate(np.asarray(table, dtype=float))
        for round, accuracy in enumerate(run)
        if np.isfinite(accuracy)
    ]


def experiment(accuracies, **options):
    (one,) = experiments(rows(accuracies, **options), FIVE)
    return one


def noise(methods, seeds=5, rounds=4, seed=0, lifts=None, spread=0.02):
    """{method: (S, T)} of a rising curve with noise, each method lifted by its own amount."""
    draws = np.random.default_rng(seed)
    curve = 0.5 + 0.3 * np.arange(rounds) / max(rounds - 1, 1)
    start = draws.normal(0, spread, seeds)
    tables = {}
    for method in methods:
        table = curve + draws.normal(0, spread, (seeds, rounds)) + (lifts or {}).get(method, 0.0)
        table[:, 0] = curve[0] + start  # round 0 is the same for all
        tables[method] = np.clip(table, 0, 1)
    return tables
