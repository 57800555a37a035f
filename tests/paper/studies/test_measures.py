"""The studies' numbers against cases small enough to do by hand, and against other libraries."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics import roc_auc_score

from askance.errors import InputError
from askance.paper.studies.measures import (
    auroc,
    close_limit,
    contraction,
    overlap,
    rank_correlation,
    spread,
)

# Four points on a line, at 0, 1, 3 and 7.
LINE = np.abs(np.subtract.outer([0.0, 1, 3, 7], [0.0, 1, 3, 7]))


def test_spread_by_hand():
    measured = spread(LINE, np.array([0, 1, 3]), limit=2.0)
    assert measured.mean_distance == pytest.approx((1 + 7 + 6) / 3)
    assert measured.coverage_radius == 2  # from 3 to 1
    assert measured.close_share == pytest.approx(1 / 3)  # 0 and 1


def test_a_pair_at_the_limit_is_not_closer_than_it():
    assert spread(LINE, np.array([0, 1]), limit=1.0).close_share == 0


def test_spread_of_one_point_is_refused():
    with pytest.raises(InputError, match="at least two picks, got 1"):
        spread(LINE, np.array([2]), 1.0)


@given(st.integers(0, 10_000), st.integers(2, 12))
def test_spread_is_that_of_the_points(seed, count):
    points = np.random.default_rng(seed).normal(size=(30, 3))
    picks = np.random.default_rng(seed + 1).choice(30, count, replace=False)
    distances = cdist(points, points)
    limit = close_limit(distances, 0.2)
    assert limit == pytest.approx(np.quantile(pdist(points), 0.2))
    measured, pairs = spread(distances, picks, limit), pdist(points[picks])
    assert measured.mean_distance == pytest.approx(pairs.mean())
    assert measured.close_share == np.mean(pairs < limit)
    nearest = [min(np.linalg.norm(x - points[p]) for p in picks) for x in points]
    assert measured.coverage_radius == pytest.approx(max(nearest))


@given(st.lists(st.integers(0, 5), min_size=1), st.lists(st.integers(0, 5), min_size=1))
def test_auroc_is_scikit_learns_ties_included(inside, outside):
    truth = [0] * len(inside) + [1] * len(outside)
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(truth, inside + outside))


def test_auroc_by_hand():
    assert auroc([1, 2], [3, 4]) == 1
    assert auroc([3, 4], [1, 2]) == 0
    assert auroc([1, 1], [1, 1]) == 0.5
    assert auroc([1, 3], [2, 4]) == 0.75
    with pytest.raises(InputError, match="got 0 inside and 1 outside"):
        auroc([], [1])


def test_rank_correlation_by_hand():
    assert rank_correlation([1, 2, 3], [10, 20, 90]) == pytest.approx(1)
    # Spearman's 1 − 6 Σd² / (n(n² − 1)) with rank differences 1, −1, 0.
    assert rank_correlation([1, 2, 3], [2, 1, 3]) == pytest.approx(1 - 6 * 2 / 24)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None


def test_overlap_by_hand():
    assert overlap(np.array([1, 2, 3, 4]), np.array([4, 9, 1, 8])) == 0.5
    with pytest.raises(InputError, match="got 2 and 3"):
        overlap(np.arange(2), np.arange(3))


def test_contraction_of_a_series_that_falls_from_the_start():
    measured = contraction([3.0, 2.0, 2.0, 1.0])
    assert (measured.first, measured.rises, measured.largest_rise) == (1, 0, 0)
    assert measured.fall == pytest.approx(2 / 3)
    assert measured.rarity == 0.5
    assert measured.total == measured.tail == 9 + 4 + 4 + 1
    assert measured.simplified == 4 * 9


def test_contraction_of_a_series_with_rises():
    #                     t = 1    2    3    4    5
    measured = contraction([4.0, 1.0, 2.0, 3.0, 1.0])
    assert measured.rises == 2
    assert measured.rarity == 0.0  # two of four steps
    assert measured.calm == pytest.approx(0.75 - 2 / 3)  # 4 → 1, and 3 → 1
    assert measured.first == 4
    assert measured.largest_rise == pytest.approx(1.0)  # from 1 to 2
    assert (measured.total, measured.tail, measured.simplified) == (31, 10, 18)


def test_contraction_of_a_series_whose_last_step_rises_is_empty():
    measured = contraction([1.0, 2.0])
    assert (measured.first, measured.rises, measured.fall) == (2, 1, -1)
    assert measured.tail == measured.simplified == 4


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=30))
def test_contraction_keeps_to_the_assumption(series):
    measured = contraction(series)
    tail = series[measured.first - 1 :]
    assert all(later <= sooner for sooner, later in pairwise(tail))
    if measured.first > 1:
        assert series[measured.first - 1] > series[measured.first - 2]
    assert measured.tail <= measured.simplified * (1 + 1e-12)
    assert measured.rises == sum(later > sooner for sooner, later in pairwise(series))


@pytest.mark.parametrize("series", [[], [1.0], [1.0, 0.0], [1.0, float("nan")], [[1.0, 2.0]]])
def test_what_is_no_series_is_refused(series):
    with pytest.raises(InputError, match="at least two numbers above 0"):
        contraction(series)
