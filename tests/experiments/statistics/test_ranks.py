"""Across experiments: ranks, the critical difference, Wilcoxon, profiles."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from askance.experiments.statistics.curves import curves
from askance.experiments.statistics.ranks import (
    critical_difference,
    profile,
    ranks,
    signed_rank,
    wilcoxon,
)
from tests.experiments.statistics.worlds import experiment, noise

# Demšar (2006), table 6: C4.5 and its variants on 14 datasets.
DEMSAR = np.array([
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970],
])  # fmt: skip
METHODS = ("random", "entropy", "badge", "kcenter")


def flat(scores, name):
    """An experiment whose areas are the given scores."""
    tables = {m: np.full((2, 3), score) for m, score in zip(METHODS, scores, strict=False)}
    return curves(experiment(tables, name=name))


@pytest.fixture(scope="module")
def demsar():
    return [flat(row, f"e{i:02}") for i, row in enumerate(DEMSAR)]


def test_ranks_and_friedman_are_those_of_demsar(demsar):
    ranked = ranks(demsar)
    by_method = dict(zip(ranked.methods, ranked.mean_M, strict=True))
    assert by_method == pytest.approx(
        {"random": 3.143, "entropy": 2.000, "badge": 2.893, "kcenter": 1.964}, abs=6e-4
    )
    assert ranked.methods[0] == "kcenter"
    assert len(ranked.experiments) == 14
    # His χ² of 9.28 leaves out the correction for ties that scipy makes.
    assert ranked.friedman == pytest.approx(stats.friedmanchisquare(*DEMSAR.T).pvalue)
    assert ranked.critical == pytest.approx(1.25, abs=0.005)  # 2.569 √(4·5/(6·14))
    assert ranked.groups == ((0, 3),)  # 3.143 − 1.964 < 1.25


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_nemenyis_q_is_that_of_the_tables(k, q):
    assert critical_difference(k, 24) == pytest.approx(q * np.sqrt(k * (k + 1) / 144), abs=2e-3)


def test_groups_join_what_is_within_the_critical_difference():
    ranked = ranks([flat([0.9, 0.8, 0.5, 0.4], f"e{i:02}") for i in range(30)])
    assert ranked.mean_M.tolist() == [1, 2, 3, 4]
    assert ranked.critical < 1
    assert ranked.groups == ()
    close = ranks([flat([0.9, 0.8, 0.5, 0.4], f"e{i:02}") for i in range(20)])
    assert 1 < close.critical < 2
    assert close.groups == ((0, 1), (1, 2), (2, 3))


def test_wilcoxon_by_hand():
    tested = wilcoxon([flat([0.5 + i / 100, 0.5], f"e{i}") for i in range(1, 7)])
    assert tested.p[0] == pytest.approx(2 / 2**6)  # all six above: one of 64 orders a side
    assert tested.median[0] == pytest.approx(0.035)
    assert tested.least == 2 / 2**6
    assert wilcoxon([flat([0.6, 0.5], f"e{i}") for i in range(3)]).least == 0.25


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_the_signed_rank_test_is_exact_with_ties(values):
    """Against every assignment of signs."""
    some = np.array([value for value in values if value], dtype=float)
    if not len(some):
        assert np.isnan(signed_rank(np.array(values, dtype=float)))
        return
    rank = stats.rankdata(np.abs(some))
    signs = np.array(list(itertools.product([0, 1], repeat=len(some))))
    sums, seen = signs @ rank, rank[some > 0].sum()
    expected = min(1.0, 2 * min((sums <= seen).mean(), (sums >= seen).mean()))
    assert signed_rank(np.array(values, dtype=float)) == pytest.approx(expected)


@given(st.integers(3, 25), st.integers(0, 2**32 - 1))
def test_the_signed_rank_test_is_scipys_without_ties(count, seed):
    values = np.random.default_rng(seed).normal(0.3, 1, count)
    expected = stats.wilcoxon(values, method="exact").pvalue
    assert signed_rank(values) == pytest.approx(expected)


def test_four_equal_differences_are_four_and_no_more():
    tested = wilcoxon([flat([0.6, 0.5], f"e{i}") for i in range(4)])
    assert tested.p[0] == tested.least == 0.125


def test_wilcoxon_is_scipys_and_corrected_over_the_pairs(demsar):
    tested = wilcoxon(demsar)
    for at, (i, j) in enumerate(zip(tested.first, tested.second, strict=True)):
        a = DEMSAR[:, i] - DEMSAR[:, j]
        a = a[np.abs(a) > 1e-12]
        if len(np.unique(np.abs(a).round(9))) == len(a):
            assert tested.p[at] == pytest.approx(stats.wilcoxon(a, method="exact").pvalue)
    np.testing.assert_allclose(tested.adjusted, stats.false_discovery_control(tested.p))


def test_equal_everywhere_is_not_tested():
    tested = wilcoxon([flat([0.5, 0.5], f"e{i}") for i in range(6)])
    assert np.isnan(tested.p[0])


def test_one_experiment_has_no_ranks_to_test():
    ranked = ranks([flat([0.5, 0.6], "e")])
    assert np.isnan(ranked.friedman)
    assert np.isnan(ranked.critical)
    assert ranks([]).methods == ()


def test_ranks_are_over_methods_all_experiments_have():
    one = curves(experiment(noise(("random", "grad", "badge")), name="a"))
    two = curves(experiment(noise(("random", "grad")), name="b"))
    assert set(ranks([one, two]).methods) == {"random", "grad"}


def test_profile_by_hand():
    # Goal 0.6: random after 40 labels, grad after 20, badge never. A second seed: 40, 40, 20.
    random, slow = [0.3, 0.4, 0.5, 0.6], [0.3, 0.3, 0.3, 0.3]
    quick = [0.3, 0.6, 0.6, 0.6]
    tables = {"random": [random, random], "grad": [quick, random], "badge": [slow, quick]}
    profiled = profile([curves(experiment(tables))])
    share = dict(zip(profiled.methods, profiled.share_MK.tolist(), strict=True))
    assert profiled.problems == 2
    assert profiled.factors_K.tolist() == [1, 2]
    assert share == {"random": [0, 1], "grad": [0.5, 1], "badge": [0.5, 0.5]}


def test_profile_without_random_or_problems():
    profiled = profile([curves(experiment({"grad": [[0.3, 0.5]] * 2, "badge": [[0.3, 0.6]] * 2}))])
    assert profiled.problems == 2
    assert profile([]).problems == 0
