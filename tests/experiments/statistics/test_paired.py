"""Paired tests against scipy, statsmodels, and cases worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from askance.experiments.statistics.paired import ALPHA, benjamini_hochberg, pairwise
from tests.naive.statistics import winning_pairs


@given(st.integers(2, 5), st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_p_values_are_those_of_scipy(methods, seeds, seed):
    accuracy = np.random.default_rng(seed).uniform(size=(methods, seeds))
    pairs = pairwise(accuracy)
    for at, (i, j) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        expected = stats.ttest_rel(accuracy[i], accuracy[j])
        assert pairs.p[at] == pytest.approx(expected.pvalue, rel=1e-9)
        assert pairs.mean[at] == pytest.approx(np.mean(accuracy[i] - accuracy[j]))
        assert pairs.std[at] == pytest.approx(np.std(accuracy[i] - accuracy[j], ddof=1))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_the_correction_is_that_of_statsmodels(p):
    expected = multipletests(p, method="fdr_bh")[1]
    np.testing.assert_allclose(benjamini_hochberg(np.array(p)), expected, rtol=1e-12, atol=1e-300)


def test_the_correction_by_hand():
    # 0.01·4/1, 0.02·4/2, 0.03·4/3, 0.9·4/4, each at most the next
    np.testing.assert_allclose(
        benjamini_hochberg(np.array([0.03, 0.01, 0.9, 0.02])), [0.04, 0.04, 0.9, 0.04]
    )


def test_a_test_by_hand():
    # Differences 1, 2, 3 hundredths: mean 0.02, std 0.01, t = 0.02/(0.01/√3) = 3.4641, 2 degrees.
    # For 2 degrees of freedom p = 1 − t/√(2 + t²) exactly.
    pairs = pairwise(np.array([[0.51, 0.62, 0.73], [0.50, 0.60, 0.70]]))
    t = 2 * np.sqrt(3)
    assert pairs.p[0] == pytest.approx(1 - t / np.sqrt(2 + t**2))


def test_leading_axes_are_tests_of_their_own():
    accuracy = np.random.default_rng(0).uniform(size=(3, 2, 4, 5))
    whole = pairwise(accuracy)
    one = pairwise(accuracy[2, 1])
    np.testing.assert_array_equal(whole.adjusted[2, 1], one.adjusted)
    np.testing.assert_array_equal(whole.wins(4)[2, 1], one.wins(4))


@given(
    st.integers(2, 5),
    st.integers(2, 6),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.booleans(),
)
def test_wins_under_every_kind_of_test(methods, seeds, seed, one_sided, corrected):
    draws = np.random.default_rng(seed)
    accuracy = 0.5 + 0.01 * draws.normal(size=(methods, seeds)) + 0.01 * np.arange(methods)[:, None]
    alpha = 2 * ALPHA if one_sided else ALPHA
    won = pairwise(accuracy).wins(methods, alpha, corrected=corrected)
    expected = winning_pairs(
        {m: list(accuracy[m]) for m in range(methods)}, one_sided=one_sided, corrected=corrected
    )
    assert set(map(tuple, np.argwhere(won).tolist())) == expected


@given(st.integers(2, 5), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_one_sided_tests_of_both_directions_win_what_two_sided_ones_do(methods, seeds, seed):
    draws = np.random.default_rng(seed)
    accuracy = 0.5 + 0.01 * draws.normal(size=(methods, seeds)) + 0.01 * np.arange(methods)[:, None]
    by_rule = {m: list(accuracy[m]) for m in range(methods)}
    assert winning_pairs(by_rule, one_sided=True, both_directions=True) == winning_pairs(by_rule)


def test_identical_accuracies_are_no_win():
    pairs = pairwise(np.array([[0.8, 0.9, 0.7], [0.8, 0.9, 0.7]]))
    assert pairs.p[0] == 1
    assert not pairs.wins(2).any()
    assert not pairs.infinite.any()


@pytest.mark.parametrize("step", [0.1, 1 / 3, 0.25])
def test_the_same_difference_in_every_seed_is_a_win(step):
    low = np.array([0.1, 0.2, 0.3, 0.5, 0.6])
    pairs = pairwise(np.array([low, low + step]))  # equal but for rounding
    assert pairs.p[0] == 0
    assert pairs.infinite[0]
    assert pairs.wins(2).tolist() == [[False, False], [True, False]]


def test_only_seeds_in_common_are_paired():
    nan = np.nan
    accuracy = np.array([[0.5, 0.6, 0.9, nan], [0.4, 0.55, nan, 0.1], [nan, nan, 0.2, 0.3]])
    pairs = pairwise(accuracy)
    assert pairs.seeds.tolist() == [2, 1, 1]
    assert pairs.p[0] == pytest.approx(stats.ttest_rel([0.5, 0.6], [0.4, 0.55]).pvalue)
    assert np.isnan(pairs.p[1:]).all()
    assert np.isnan(pairs.adjusted[1:]).all()
    assert pairs.adjusted[0] == pairs.p[0]  # one test, nothing to correct
    assert not pairs.wins(3)[2].any()


def test_two_tests_out_of_three_are_corrected_for_two():
    p = np.array([[0.01, np.nan, 0.5], [0.01, 0.02, 0.5]])
    np.testing.assert_allclose(benjamini_hochberg(p), [[0.02, np.nan, 0.5], [0.03, 0.03, 0.5]])
