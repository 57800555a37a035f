"""Intervals cover what they say, and kappa is Cohen's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from askance.errors import InputError
from askance.stopping import Gain, cohen_kappa, paired_gain, wilson
from tests.naive import stopping as naive


@pytest.mark.parametrize(("right", "n"), [(0, 1), (5, 5), (7, 20), (950, 1000)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_wilson_is_scipys(right, n, level):
    interval = wilson(right, n, level)
    expected = stats.binomtest(right, n).proportion_ci(level, method="wilson")
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert interval.accuracy == right / n


@pytest.mark.parametrize("p", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("n", [10, 40, 200])
def test_wilson_covers(p, n):
    """Exactly, by summing over all outcomes: Wilson's coverage swings around 95%."""
    outcomes = np.arange(n + 1)
    holds = [wilson(int(k), n).low <= p <= wilson(int(k), n).high for k in outcomes]
    coverage = stats.binom.pmf(outcomes, n, p)[holds].sum()
    assert 0.90 < coverage <= 1


@pytest.mark.parametrize(("b", "c"), [(0.1, 0.1), (0.15, 0.05), (0.05, 0.0), (0.02, 0.01)])
@pytest.mark.parametrize("n", [30, 100])
def test_the_paired_interval_covers(b, c, n):
    rng = np.random.default_rng(0)
    hits, trials = 0, 3000
    for counts in rng.multinomial(n, [b, c, 1 - b - c], size=trials):
        before = np.zeros(n, bool)
        after = np.zeros(n, bool)
        after[: counts[0]] = True
        before[counts[0] : counts[0] + counts[1]] = True
        gain = paired_gain(before, after)
        assert gain.low <= gain.high
        hits += gain.low <= b - c <= gain.high
    # 3,000 trials of 95%: a standard error of 0.4 points; the interval may be wider, not narrower.
    assert hits / trials > 0.935


def test_the_gain_is_the_plain_difference():
    rng = np.random.default_rng(1)
    before, after = rng.random((2, 50)) < 0.6
    assert paired_gain(before, after).gain == pytest.approx(after.mean() - before.mean())


def test_a_gain_in_another_unit_stays_within_the_possible():
    assert Gain(0.2, -0.1, 0.5).times(5) == Gain(1.0, -0.5, 1.0)
    assert Gain(0.2, -0.1, 0.5).times(0.5) == Gain(0.1, -0.05, 0.25)


labels = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@given(labels)
def test_kappa_is_its_definition(pairs):
    one, other = map(list, zip(*pairs, strict=True))
    expected = naive.kappa(one, other)
    assert cohen_kappa(one, other) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 4, (2, 60))
    assert cohen_kappa(one, other) == pytest.approx(cohen_kappa_score(one, other))


def test_kappa_says_nothing_of_one_class():
    assert math.isnan(cohen_kappa([2, 2, 2], [2, 2, 2]))
    assert cohen_kappa([2, 2, 2], [1, 1, 1]) == 0.0
    assert cohen_kappa(["a", "b"], ["a", "b"]) == 1.0


@pytest.mark.parametrize(("one", "other"), [([], []), ([1, 2], [1]), ([[1]], [[1]])])
def test_kappa_takes_two_lists_of_the_same_items(one, other):
    with pytest.raises(InputError, match="of the same items"):
        cohen_kappa(one, other)
