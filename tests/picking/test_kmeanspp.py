"""D² sampling: lazy clocks against dense ones pick for pick, and the law of the picks."""

from itertools import chain, repeat

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.errors import InputError
from askance.picking.kmeanspp import kmeanspp, kmeanspp_replay
from askance.picking.points import feature_points, gradient_points
from askance.seeding import Draws
from tests.naive import picking as naive
from tests.picking.pools import (
    DTYPES,
    KINDS,
    NO_TIES,
    assert_same_d2_picks,
    make,
    pair_p_value,
    pools,
)

SEEDS = st.integers(0, 2**32 - 1)


def points_of(pool):
    return gradient_points(pool.logits, pool.features, bias=pool.bias)


def line(*places):
    """Points on a line."""
    return feature_points(torch.tensor(places, dtype=torch.float64)[:, None])


def assert_dense_picks(points, G, n, residuals):
    assert_same_d2_picks(kmeanspp(points, n, residuals), naive.clocks(G, n, residuals), G)


# Equality of ordered picks is well-posed on copies as well: between copies w is exactly zero on
# both sides, and before that their clocks differ because their residuals do.
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_lazy_picks_are_the_dense_ones(kind, data):
    pool = data.draw(pools(kind))
    assert_dense_picks(points_of(pool), pool.gradients(), pool.n, pool.residuals)


@pytest.mark.parametrize(
    ("kind", "N", "n", "dtype"),
    [
        ("random", 6000, 500, torch.float32),
        ("relu", 6000, 300, torch.float16),
        ("repeated", 6000, 500, torch.float32),
        ("repeated", 2600, 2600, torch.float32),  # runs out of positive weights at a fifth of it
        ("same", 5000, 200, torch.float64),
        ("clusters-1e-4", 6000, 600, torch.float64),  # twice as many as there are clusters
        ("clusters-1e-7", 6000, 600, torch.float64),
        ("clusters-1e-7", 3000, 3000, torch.float32),
        ("confident-50", 6000, 500, torch.float32),
        ("confident-300", 3000, 600, torch.float32),
        ("untrained", 6000, 500, torch.float32),
        ("untrained-0", 3000, 3000, torch.float64),
    ],
)
def test_lazy_picks_are_the_dense_ones_in_pools_larger_than_a_front(kind, N, n, dtype):
    pool = make(kind, N, 4, 8, seed=N + n, dtype=dtype)
    assert_dense_picks(points_of(pool), pool.gradients(), n, pool.residuals)


@settings(deadline=None, max_examples=20)
@given(SEEDS)
def test_lazy_picks_are_the_dense_ones_where_one_pick_makes_many_bounds_stale(seed):
    pool = make("lumps", 1000, 3, 4, seed)
    assert_dense_picks(points_of(pool), pool.gradients(), 300, pool.residuals)


@settings(deadline=None)
@given(pools("random", "relu", "repeated", "same", "clusters-1e-4", "clusters-1e-7"))
def test_lazy_picks_are_the_dense_ones_among_plain_features(pool):
    X = pool.features.double().numpy()
    assert_dense_picks(feature_points(pool.features), X, pool.n, pool.residuals)


@settings(deadline=None)
@given(pools("random", "confident-50"))
def test_lazy_picks_are_the_dense_ones_under_the_multilabel_loss(pool):
    G = naive.pseudo_gradients(pool.logits, pool.features, pool.bias, "multilabel")
    points = gradient_points(pool.logits, pool.features, bias=pool.bias, loss="multilabel")
    assert_dense_picks(points, G, pool.n, pool.residuals)


@settings(deadline=None)
@given(pools("random", "confident-50", "clusters-1e-4", most=400, dtypes=NO_TIES), SEEDS)
def test_the_order_of_the_pool_does_not_matter(pool, seed):
    order = np.random.default_rng(seed).permutation(len(pool.logits))
    shuffled = gradient_points(pool.logits[order], pool.features[order], bias=pool.bias)
    picks = kmeanspp(points_of(pool), pool.n, pool.residuals)
    again = kmeanspp(shuffled, pool.n, pool.residuals[order])
    assert order[again.rows].tolist() == picks.rows.tolist()


def test_residuals_are_read_and_not_written():
    pool = make("random", 50, 3, 4, seed=0)
    before = pool.residuals.copy()
    kmeanspp(points_of(pool), 20, pool.residuals)
    assert (pool.residuals == before).all()


def test_the_first_pick_has_the_largest_norm_and_its_square_as_score():
    picks = kmeanspp(line(1.0, -4.0, 3.0), 1, np.ones(3))
    assert (picks.rows.tolist(), picks.scores.tolist()) == ([1], [16.0])


@given(st.integers(0, 299))
def test_the_largest_norm_is_found_beyond_the_digits_of_float32(best):
    rows = torch.full((300, 4), 1.0, dtype=torch.float64)
    rows[best] += 1e-13
    assert kmeanspp(feature_points(rows), 1, np.ones(300)).rows.tolist() == [best]


def test_of_equal_norms_the_first_row_is_first():
    assert kmeanspp(line(1.0, -2.0, 2.0), 1, np.array([3.0, 2.0, 1.0])).rows.tolist() == [1]


@given(SEEDS, st.floats(40.0, 60.0))
def test_the_first_pick_of_a_pool_that_is_certain_of_everything(seed, gap):
    # Squared norms of 1e-35 to 1e-52, where float32 has few digits left or none.
    rng = np.random.default_rng(seed)
    logits = torch.zeros(20, 2, dtype=torch.float64)
    logits[:, 0] = gap + torch.from_numpy(rng.normal(size=20)) / 100
    features = 10 * torch.from_numpy(rng.normal(size=(20, 8)))
    largest = naive.sq_norms(naive.pseudo_gradients(logits, features)).argmax()
    assert kmeanspp(gradient_points(logits, features), 1, np.ones(20)).rows.tolist() == [largest]


def test_the_origin_is_no_centre():
    # Seen from 10, the row at 0.1 is the farthest; a centre at the origin would hide it.
    residuals = np.ones(4)
    picks = kmeanspp(line(0.1, 10.0, 8.0, 9.0), 2, residuals)
    assert picks.rows.tolist() == [1, 0]
    assert picks.scores[1] == pytest.approx(9.9**2)
    phantom, _ = naive.clocks(np.array([[0.1], [10.0], [8.0], [9.0]]), 2, residuals, origin=True)
    assert phantom.tolist() == [1, 2]


def test_weights_are_squared_distances_neither_distances_nor_their_fourth_powers():
    # Rows at distance 1 and 3 from the first pick. With clocks 1 and 5 the far one is earlier only
    # by d² (5/9 < 1 < 5/3); with 1 and 20 it is earlier only by d⁴.
    assert kmeanspp(line(10.0, 9.0, 7.0), 2, np.array([1.0, 1.0, 5.0])).rows.tolist() == [0, 2]
    assert kmeanspp(line(10.0, 9.0, 7.0), 2, np.array([1.0, 1.0, 20.0])).rows.tolist() == [0, 1]


def test_a_clock_has_run_down_by_the_time_of_the_next_pick():
    # Seen from 20, w = 121, 100 and 9. The row at 9 fires at time 1; the one at 10 has by then used
    # up 100 of its 100.5, and though its w falls to 1 it is due in 0.5, the one at 17 in 27/9 = 3.
    # Had its clock not run, it would be due in 100.5 and the other in 36/9 = 4.
    residuals = np.array([1.0, 121.0, 100.5, 36.0])
    places = [20.0, 9.0, 10.0, 17.0]
    assert kmeanspp(line(*places), 4, residuals).rows.tolist() == [0, 1, 2, 3]
    unpaid, _ = naive.clocks(np.array(places)[:, None], 4, residuals, elapse=False)
    assert unpaid.tolist() == [0, 1, 3, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_picked_twice(kind):
    pool = make(kind, 700, 3, 8, seed=3)
    picks = kmeanspp(points_of(pool), 700, pool.residuals)
    assert sorted(picks.rows.tolist()) == list(range(700))


def test_copies_of_picks_come_after_all_others_by_their_clocks_alone():
    residuals = np.array([0.4, 0.3, 9.0, 9.0, 0.2, 0.1])
    picks = kmeanspp(line(2.0, 2.0, 1.0, -1.0, 2.0, 2.0), 6, residuals)
    assert picks.rows[0] == 0
    assert set(picks.rows[1:3]) == {2, 3}
    assert picks.rows[3:].tolist() == [5, 4, 1]
    assert picks.scores[3:].tolist() == [0.0, 0.0, 0.0]


def test_a_pool_of_zero_gradients_is_picked_by_its_clocks():
    picks = kmeanspp(line(0.0, 0.0, 0.0, 0.0), 4, np.array([0.5, 0.3, 0.1, 0.2]))
    assert picks.rows.tolist() == [0, 2, 3, 1]


SMALL = make("random", 7, 3, 2, seed=2)


def pairs_of(pick, N, runs):
    """The second and third pick under the clocks of many seeds, as BADGE draws them."""
    draws = (Draws(seed).exponential("badge", range(N)) for seed in range(runs))
    return np.array([pick(residuals)[1:3] for residuals in draws])


def test_the_second_and_third_pick_follow_the_law_of_d2_sampling():
    points = points_of(SMALL)
    pairs = pairs_of(lambda R: kmeanspp(points, 3, R).rows, 7, runs=4_000)
    assert pair_p_value(pairs, naive.d2_pair_law(SMALL.gradients())) > 1e-3


@pytest.mark.slow
def test_the_second_and_third_pick_follow_the_law_of_d2_sampling_in_a_larger_pool():
    pool = make("random", 30, 4, 3, seed=0)
    points = points_of(pool)
    pairs = pairs_of(lambda R: kmeanspp(points, 3, R).rows, 30, runs=40_000)
    assert pair_p_value(pairs, naive.d2_pair_law(pool.gradients())) > 1e-3


@pytest.mark.parametrize("mistake", [{"elapse": False}, {"origin": True}])
def test_the_chi_square_sees_a_sampler_that_is_wrong(mistake):
    G = SMALL.gradients()
    law = naive.d2_pair_law(G)
    right = pairs_of(lambda R: naive.clocks(G, 3, R)[0], 7, runs=4_000)
    wrong = pairs_of(lambda R: naive.clocks(G, 3, R, **mistake)[0], 7, runs=4_000)
    assert pair_p_value(right, law) > 1e-3
    assert pair_p_value(wrong, law) < 1e-6


@settings(deadline=None, max_examples=30)
@given(pools("random", "relu", "repeated", "confident-50", "clusters-1e-4", most=40), SEEDS)
def test_replay_is_the_authors_sampler_on_the_same_stream(pool, seed):
    G = pool.gradients()
    distinct = len(np.unique(G, axis=0))  # with more picks than that no weight would be left
    n = min(pool.n, distinct, 12)
    ours, theirs = np.random.RandomState(seed), np.random.RandomState(seed)
    picks = kmeanspp_replay(points_of(pool), n, ours.uniform)
    assert_same_d2_picks(picks, naive.cumulative_sum(G, n, theirs), G)
    assert ours.uniform() == theirs.uniform()  # and as many numbers of it were used


def test_replay_draws_again_where_the_row_is_taken():
    stream = chain([0.0, 0.0, 0.6], repeat(0.0))  # 0.0 falls on row 0, the largest
    picks = kmeanspp_replay(line(5.0, 4.0, 3.0, 2.0), 2, lambda: next(stream))
    assert picks.rows.tolist() == [0, 3]


def test_replay_survives_a_number_past_a_total_that_rounding_left_below_one():
    features = torch.from_numpy(np.random.default_rng(3).normal(size=(40, 3)))
    w = naive.sq_dists_to(features.numpy(), features[features.norm(dim=1).argmax()].numpy())
    last = 1 - 2.0**-53
    assert np.cumsum(w / w.sum())[-1] < last
    picks = kmeanspp_replay(feature_points(features), 2, lambda: last)
    assert picks.rows[1] in range(40)
    assert picks.rows[1] != picks.rows[0]


def test_replay_refuses_to_draw_among_copies():
    with pytest.raises(InputError, match="copy of the 2 picked"):
        kmeanspp_replay(line(1.0, 2.0, 1.0, 2.0), 3, lambda: 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_replay_and_clocks_start_at_the_same_row(dtype):
    pool = make("random", 200, 4, 8, seed=5, dtype=dtype)
    points = points_of(pool)
    rng = np.random.RandomState(0)
    start = kmeanspp_replay(points, 1, rng.uniform)
    assert start.rows.tolist() == kmeanspp(points, 1, pool.residuals).rows.tolist()
