"""Numbers over experiments that share datasets, against slow twins, scipy, statsmodels and chance."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from askance.experiments.statistics.clusters import clustered, holm, how_many, resampled
from askance.experiments.statistics.resample import interval
from tests.naive.statistics import clustered_interval, resampled_means
from tests.naive.statistics import how_many as how_many_naive


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.integers(0, 2**32 - 1))
def test_the_interval_is_that_of_sums_within_datasets(datasets, seed):
    values = np.random.default_rng(seed).normal(size=len(datasets))
    mean = clustered(values, datasets)
    assert mean.n == len(set(datasets))
    assert mean.value == pytest.approx(values.mean())
    if mean.n == 1:
        assert np.isnan(mean.low)
        return
    _, low, high = clustered_interval(values.tolist(), datasets)
    assert (mean.low, mean.high) == (pytest.approx(low), pytest.approx(high))


def test_one_experiment_a_dataset_is_students():
    values = np.array([0.3, -0.1, 0.4, 0.2, 0.9])
    mean = clustered(values, "abcde")
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (mean.low, mean.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_copies_of_an_experiment_say_nothing_more():
    values, datasets = np.array([0.3, -0.1, 0.4]), ["a", "b", "c"]
    once = clustered(values, datasets)
    thrice = clustered(np.tile(values, 3), datasets * 3)
    assert (thrice.low, thrice.high) == (pytest.approx(once.low), pytest.approx(once.high))


@given(st.lists(st.integers(0, 3), min_size=2, max_size=9), st.integers(0, 2**32 - 1))
def test_datasets_are_drawn_with_all_of_their_experiments(datasets, seed):
    values = np.random.default_rng(seed).normal(size=len(datasets))
    mean, means = resampled(values, datasets), resampled_means(values.tolist(), datasets)
    expected = interval(values.mean(), np.array(means), len(set(datasets)))
    assert mean.n == expected.n
    np.testing.assert_allclose(
        [mean.value, mean.low, mean.high], [expected.value, expected.low, expected.high]
    )


def lower_ends(values, level):
    """Of the bootstrap of seven, over all 1,716 ways to draw them; one a row of `values`."""
    counts = np.array([c for c in product(range(8), repeat=6) if sum(c) <= 7])
    counts = np.column_stack([counts, 7 - counts.sum(axis=1)])
    chance = np.exp(gammaln(8) - gammaln(counts + 1).sum(axis=1) - 7 * np.log(7))
    means = values @ counts.T / 7
    order = np.argsort(means, axis=1)
    tail = stats.norm.cdf(-np.sqrt(7 / 6) * stats.t.ppf((1 + level) / 2, 6))
    at = (chance[order].cumsum(axis=1) >= tail).argmax(axis=1)
    return np.take_along_axis(means, np.take_along_axis(order, at[:, None], 1), 1)[:, 0]


def test_with_seven_datasets_students_keeps_its_word_and_the_bootstrap_does_not():
    """The numbers of JUDGING.md: one-sided errors of one pair of four, and of six."""
    draws, times, datasets = np.random.default_rng(0), 8_000, "abcdefg"
    values = draws.normal(size=(times, 7))
    for pairs in (4, 6):
        level, promised = 1 - 0.05 / pairs, 0.025 / pairs
        student = sum(clustered(one, datasets, level).low > 0 for one in values)
        assert binomtest(student, times, promised).pvalue > 0.01
        drawn = int((lower_ends(values, level) > 0).sum())
        assert binomtest(drawn, times, 1.25 * promised, alternative="greater").pvalue < 0.01
    one, level = values[0], 1 - 0.05 / 4
    assert resampled(one, datasets, level).low == pytest.approx(
        lower_ends(one[None], level)[0], abs=0.1
    )


@pytest.mark.parametrize("seed", range(10))
def test_holm_is_that_of_statsmodels(seed):
    p = np.random.default_rng(seed).uniform(0, 0.05, 12)
    expected = multipletests(p, 0.05, method="holm")[0]
    np.testing.assert_array_equal(holm(p, 0.05), expected)


@given(st.integers(1, 9), st.integers(2, 8), st.floats(-1, 1), st.integers(0, 2**32 - 1))
def test_how_many_is_counted_one_by_one(experiments, seeds, limit, seed):
    draws = np.random.default_rng(seed)
    each = [draws.normal(draws.normal(0, 2), 1, seeds) for _ in range(experiments)]
    count = how_many(each, limit)
    above, low, below = how_many_naive([one.tolist() for one in each], limit, 0.025)
    assert (count.value, count.low, count.high) == (above, low, experiments - below)
    assert count.n == experiments


def test_differences_without_spread():
    same = [np.full(5, x) for x in (0.1, 0.0, -0.1)]
    count = how_many(same)
    assert (count.value, count.low, count.high) == (1, 1, 2)
    assert how_many(same, 0.1).value == 0  # at the limit is not above it


@pytest.mark.parametrize("true", [0, 3, 7])
def test_the_number_of_experiments_is_in_its_interval_as_often_as_promised(true):
    """Effects large enough to be found, and others exactly at the limit from below."""
    draws, times, wrong = np.random.default_rng(1), 600, np.zeros(2)
    for _ in range(times):
        each = [draws.normal(2.0 if e < true else -1e-9, 1, 20) for e in range(7)]
        estimate = how_many(each)
        wrong += [estimate.low > true, estimate.high < true]
    for count in wrong:
        assert binomtest(int(count), times, 0.025, alternative="greater").pvalue > 0.01
