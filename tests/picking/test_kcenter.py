"""k-center greedy: lazy bounds against dense farthest-first.

Of two candidates at the same distance either is a right greedy pick, and rounding decides between
them: sums run in another order here and in the twin. Row-by-row equality is therefore asked for
where it means something: on pools without ties, and on whole-number features, where all arithmetic
is exact and the lowest row must win. Elsewhere each pick is checked to be the farthest of those
left, given the picks before it, and copies are compared as the point they are copies of.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.picking.kcenter import kcenter
from askance.picking.points import feature_points
from tests.naive import picking as naive
from tests.picking.pools import DTYPES, NO_TIES, make, pools

SEEDS = st.integers(0, 2**32 - 1)
LABELED = st.integers(1, 60)


def labeled_of(pool, count, seed, copies=0):
    """New points of the pool's kind, and some copies of its rows."""
    rng = np.random.default_rng(seed)
    picked = torch.from_numpy(rng.integers(len(pool.features), size=count))
    noise = torch.from_numpy(rng.normal(size=(count, pool.features.shape[1])))
    new = pool.features[picked].double() + noise
    return torch.cat([new.to(pool.features.dtype), pool.features[picked[:copies]]])


def dense(features, labeled, n):
    return naive.farthest_first(features.double().numpy(), labeled.double().numpy(), n)


def assert_same(picks, twin):
    np.testing.assert_array_equal(picks.rows, twin[0])
    np.testing.assert_allclose(picks.scores, twin[1], rtol=1e-9)


def assert_greedy(picks, features, labeled):
    """Every pick is the farthest row left, given the picks before it."""
    X, labeled = features.double().numpy(), labeled.double().numpy()
    own, largest = naive.farthest_first_along(X, labeled, picks.rows)
    assert len(set(picks.rows.tolist())) == len(picks.rows)
    np.testing.assert_allclose(own, largest, rtol=1e-9)
    np.testing.assert_allclose(picks.scores, own, rtol=1e-9)


@settings(deadline=None, max_examples=50)
@given(pools("random", "clusters-1e-4", most=300), LABELED, SEEDS)
def test_lazy_picks_are_the_dense_ones(pool, L, seed):
    features = pool.features.double()
    labeled = labeled_of(pool, L, seed).double()
    if len(torch.unique(features, dim=0)) < len(features):
        return  # copies, from float16: see below
    assert_same(
        kcenter(feature_points(features), labeled, pool.n), dense(features, labeled, pool.n)
    )


@settings(deadline=None, max_examples=50)
@given(
    pools("random", "relu", "repeated", "same", "clusters-1e-4", "clusters-1e-7", most=300),
    LABELED,
    st.integers(0, 60),
    SEEDS,
)
def test_every_pick_is_the_farthest_left(pool, L, copies, seed):
    labeled = labeled_of(pool, L, seed, copies)
    assert_greedy(kcenter(feature_points(pool.features), labeled, pool.n), pool.features, labeled)


@settings(deadline=None, max_examples=50)
@given(pools("repeated", "same", most=300, dtypes=NO_TIES), LABELED, SEEDS)
def test_repeated_points_are_picked_in_the_order_of_the_points_they_repeat(pool, L, seed):
    labeled = labeled_of(pool, L, seed)
    points, copy_of = torch.unique(pool.features, dim=0, return_inverse=True)
    picks = kcenter(feature_points(pool.features), labeled, pool.n)
    rows, scores = dense(pool.features, labeled, pool.n)
    np.testing.assert_allclose(picks.scores, scores, rtol=1e-9)
    spread = min(len(points), pool.n)  # from here on all are copies of picks, at distance zero
    assert copy_of[picks.rows[:spread]].tolist() == copy_of[rows[:spread]].tolist()
    assert not picks.scores[spread:].any()


@settings(deadline=None, max_examples=50)
@given(SEEDS, st.integers(1, 300), st.integers(1, 5), LABELED, st.data())
def test_ties_go_to_the_lowest_row(seed, N, D, L, data):
    # Small whole numbers: many ties, many copies, and no rounding anywhere.
    rng = np.random.default_rng(seed)
    features = torch.from_numpy(rng.integers(-3, 4, size=(N, D))).float()
    labeled = torch.from_numpy(rng.integers(-3, 4, size=(L, D))).float()
    n = data.draw(st.one_of(st.just(N), st.integers(1, N)))
    assert_same(kcenter(feature_points(features), labeled, n), dense(features, labeled, n))


@pytest.mark.parametrize(
    ("kind", "N", "n", "L"),
    [
        ("random", 6000, 400, 500),
        ("relu", 6000, 400, 1),
        ("clusters-1e-4", 6000, 700, 200),  # more picks than clusters
        ("random", 2500, 2500, 30),
        ("clusters-1e-4", 2500, 2500, 30),
    ],
)
def test_lazy_picks_are_the_dense_ones_in_pools_larger_than_a_group(kind, N, n, L):
    pool = make(kind, N, 2, 8, seed=N + n, dtype=torch.float64)
    labeled = labeled_of(pool, L, seed=1)
    picks = kcenter(feature_points(pool.features), labeled, n)
    assert_same(picks, dense(pool.features, labeled, n))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["random", "repeated", "same", "clusters-1e-7"])
def test_every_pick_is_the_farthest_left_in_pools_larger_than_a_group(kind, dtype):
    pool = make(kind, 5000, 2, 8, seed=4, dtype=dtype)
    labeled = labeled_of(pool, 100, seed=2, copies=50)
    assert_greedy(kcenter(feature_points(pool.features), labeled, 600), pool.features, labeled)


def test_ties_go_to_the_lowest_row_in_pools_larger_than_a_group():
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.integers(-4, 5, size=(6000, 3))).float()
    labeled = features[:3]
    picks = kcenter(feature_points(features), labeled, 900)  # 729 distinct points
    assert_same(picks, dense(features, labeled, 900))


@settings(deadline=None, max_examples=50)
@given(pools("random", most=300, dtypes=NO_TIES), LABELED, SEEDS)
def test_the_order_of_the_pool_does_not_matter(pool, L, seed):
    labeled = labeled_of(pool, L, seed)
    order = np.random.default_rng(seed).permutation(len(pool.features))
    picks = kcenter(feature_points(pool.features), labeled, pool.n)
    again = kcenter(feature_points(pool.features[order]), labeled, pool.n)
    assert order[again.rows].tolist() == picks.rows.tolist()


def test_scores_are_distances_not_their_squares():
    pool = feature_points(torch.tensor([[3.0, 4.0], [1.0, 0.0]]))
    picks = kcenter(pool, torch.zeros(1, 2), 2)
    assert (picks.rows.tolist(), picks.scores.tolist()) == ([0, 1], [5.0, 1.0])


@settings(deadline=None, max_examples=50)
@given(pools("random", "relu", "clusters-1e-7", "repeated", most=300), LABELED, SEEDS)
def test_distances_never_rise_along_the_picks(pool, L, seed):
    picks = kcenter(feature_points(pool.features), labeled_of(pool, L, seed), pool.n)
    assert (np.diff(picks.scores) <= 1e-9 * picks.scores[:-1]).all()


@settings(deadline=None, max_examples=50)
@given(SEEDS, st.floats(-6.0, 0.0), st.floats(0.0, 6.0))
def test_a_copy_of_a_labelled_point_is_never_farther_than_another_point(seed, exponent, offset):
    # Far from the origin ‖x‖² + ‖c‖² − 2⟨x, c⟩ cancels below zero; its root is NaN, and NaN wins
    # an argmax.
    rng = np.random.default_rng(seed)
    labeled = rng.normal(size=(20, 4)) + 10**offset
    others = labeled + 10**exponent * rng.normal(size=(20, 4))
    features = torch.from_numpy(np.concatenate([labeled, others, labeled]))
    picks = kcenter(feature_points(features), torch.from_numpy(labeled), 60)
    apart = (features.numpy()[:, None] != labeled).any(axis=2).all(axis=1).sum()
    assert np.isfinite(picks.scores).all()
    assert (picks.scores[:apart] > 0).all()
    assert set(picks.rows[:apart]) <= set(range(20, 40))
    assert not picks.scores[apart:].any()


def test_a_pool_of_copies_of_labelled_points_is_picked_in_its_order():
    labeled = torch.randn(10, 5, generator=torch.Generator().manual_seed(0)) + 1e4
    picks = kcenter(feature_points(labeled.repeat(3, 1)), labeled, 30)
    assert picks.rows.tolist() == list(range(30))
    assert not picks.scores.any()


@settings(deadline=None, max_examples=50)
@given(pools("random", most=200, dtypes=NO_TIES), st.integers(1, 4), st.integers(1, 40), SEEDS)
def test_labelling_a_point_twice_changes_nothing(pool, L, times, seed):
    labeled = labeled_of(pool, L, seed)
    once = kcenter(feature_points(pool.features), labeled, pool.n)
    again = kcenter(feature_points(pool.features), labeled.repeat(times, 1), pool.n)
    assert again.rows.tolist() == once.rows.tolist()


@pytest.mark.parametrize("kind", ["random", "repeated", "same"])
def test_no_row_is_picked_twice(kind):
    pool = make(kind, 400, 2, 6, seed=6)
    picks = kcenter(feature_points(pool.features), labeled_of(pool, 5, seed=0), 400)
    assert sorted(picks.rows.tolist()) == list(range(400))
