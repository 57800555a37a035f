"""The learning rate: chosen once for a dataset and a network, then fixed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from askance.errors import InputError
from askance.seeding import Draws

SWEEP_SEEDS = (0, 1)


def sweep_rows(pool: int, size: int, seed: int) -> NDArray[np.int64]:
    """The random labelled set one seed of the sweep trains on: the final budget's size."""
    return Draws(seed).generator("sweep").choice(pool, min(size, pool), replace=False)


def best_rate(
    accuracies: Mapping[tuple[float, int], float],
    rates: Sequence[float],
    untrained: Collection[float] = (),
) -> float:
    """The rate with the highest validation accuracy, averaged over seeds; the smaller one on a tie.

    `untrained` rates, with which a network did not train on a first labelled set, are taken only
    where there is no other.
    """
    missing = [
        (rate, seed) for rate in rates for seed in SWEEP_SEEDS if (rate, seed) not in accuracies
    ]
    if missing:
        raise InputError(f"the sweep is not finished: (learning rate, seed) {missing} are missing")
    usable = [rate for rate in rates if rate not in untrained] or rates
    means = {rate: sum(accuracies[rate, seed] for seed in SWEEP_SEEDS) for rate in usable}
    return max(sorted(means), key=lambda rate: means[rate])
