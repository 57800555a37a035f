"""The learning-rate sweep's rule."""

from __future__ import annotations

import numpy as np
import pytest

from askance.errors import InputError
from askance.training import SWEEP_SEEDS, best_rate, sweep_rows

RATES = [1e-3, 1e-2, 1e-1]


def results(*rows: tuple[float, float]) -> dict[tuple[float, int], float]:
    return {
        (rate, seed): accuracy
        for rate, row in zip(RATES, rows, strict=True)
        for seed, accuracy in zip(SWEEP_SEEDS, row, strict=True)
    }


def test_the_highest_mean_wins():
    assert best_rate(results((0.5, 0.5), (0.9, 0.2), (0.6, 0.6)), RATES) == 1e-1


def test_a_tie_goes_to_the_smaller_rate():
    assert best_rate(results((0.1, 0.1), (0.75, 0.5), (0.5, 0.75)), RATES) == 1e-2
    assert best_rate(results((0.1, 0.1), (0.75, 0.5), (0.5, 0.75)), RATES[::-1]) == 1e-2


def test_a_rate_that_does_not_train_a_first_set_is_taken_only_where_there_is_no_other():
    some = results((0.5, 0.5), (0.9, 0.9), (0.6, 0.6))
    assert best_rate(some, RATES, untrained={1e-2}) == 1e-1
    assert best_rate(some, RATES, untrained={1e-2, 1e-1}) == 1e-3
    assert best_rate(some, RATES, untrained=set(RATES)) == 1e-2


def test_an_unfinished_sweep_has_no_winner():
    some = results((0.5, 0.5), (0.9, 0.2), (0.6, 0.6))
    del some[1e-1, 1]
    with pytest.raises(InputError, match=r"not finished.*\(0.1, 1\)"):
        best_rate(some, RATES)


def test_the_sets_of_a_sweep_are_random_and_of_the_final_budget():
    first, second = (sweep_rows(500, 60, seed) for seed in SWEEP_SEEDS)
    assert len(np.unique(first)) == len(np.unique(second)) == 60
    assert set(first) != set(second)
    assert np.array_equal(first, sweep_rows(500, 60, 0))
    assert len(sweep_rows(50, 60, 0)) == 50
