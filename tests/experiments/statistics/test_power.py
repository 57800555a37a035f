"""What a number of seeds can see, against statsmodels and against simulation."""

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from askance.experiments.statistics.paired import pairwise
from askance.experiments.statistics.power import detectable, power


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 10])
@pytest.mark.parametrize("effect", [0.3, 1.0, 2.0])
def test_power_is_that_of_statsmodels(n, alpha, effect):
    assert power(effect * 0.02, 0.02, n, alpha) == pytest.approx(
        TTestPower().power(effect, n, alpha), abs=1e-6
    )


@pytest.mark.parametrize("n", [3, 5, 10])
def test_detectable_is_that_of_statsmodels(n):
    expected = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8)
    assert detectable(0.02, n) == pytest.approx(0.02 * float(np.squeeze(expected)), rel=1e-4)


def test_detectable_is_detected_four_times_in_five():
    draws = np.random.default_rng(0)
    shift = detectable(1.0, 5)
    accuracy = np.stack([draws.normal(shift, 1.0, (20_000, 5)), np.zeros((20_000, 5))], axis=1)
    assert (pairwise(accuracy).p < 0.05).mean() == pytest.approx(0.8, abs=0.01)


def test_one_seed_sees_nothing_and_no_spread_sees_all():
    assert detectable(1.0, 1) == np.inf
    assert power(1.0, 1.0, 1) == 0
    assert detectable(0.0, 5) == 0
    assert power(0.1, 0.0, 5) == 1
    assert power(0.0, 0.0, 5) == 0
    assert power(1.0, 1e-6, 5) == pytest.approx(1)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 12])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 3, 0.05 / 55, 1e-6])
def test_what_few_seeds_and_many_pairs_could_have_seen_is_a_number(n, alpha):
    """Far tails, where the noncentral t of scipy gives NaN."""
    least = detectable(1.0, n, alpha)
    assert 0 < least < float("inf")
    assert power(least, 1.0, n, alpha) == pytest.approx(0.8, abs=1e-6)
    assert power(0.0, 1.0, n, alpha) == pytest.approx(alpha, rel=1e-5)
