"""Batch rules over shards: the picks of one machine, whatever the division and whoever is lost."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askance.errors import InputError
from askance.picking.kcenter import kcenter
from askance.picking.kmeanspp import kmeanspp
from askance.picking.points import feature_points, gradient_points
from askance.picking.shard import PackedVectors, PickUpdate, Stale, kcenter_shard, kmeanspp_shard
from askance.picking.sharded import LocalShards, sharded_kcenter, sharded_kmeanspp
from tests.naive import picking as naive
from tests.picking.pools import KINDS, NO_TIES, assert_same_d2_picks, make, pools
from tests.picking.test_kcenter import assert_greedy, labeled_of

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.integers(1, 6)


def division(N, count, seed):
    """`count` parts of 0 … N − 1, ascending each: runs of rows for even seeds, mixed up for odd."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(count, size=N)
    owner[:count] = np.arange(min(count, N))  # nobody is left without a row
    if seed % 2 == 0:
        owner.sort()
    return [np.flatnonzero(owner == part) for part in range(min(count, N))]


def kmeanspp_shards(pool, parts, n):
    return [
        kmeanspp_shard(
            gradient_points(pool.logits[own], pool.features[own], bias=pool.bias),
            own,
            n,
            pool.residuals[own],
        )
        for own in parts
    ]


def by_clocks(pool, parts, n):
    return sharded_kmeanspp(LocalShards(kmeanspp_shards(pool, parts, n)), n).picks


def kcenter_shards(features, labeled, parts, n):
    return [kcenter_shard(feature_points(features[own]), own, n, labeled) for own in parts]


def by_cover(features, labeled, parts, n):
    return sharded_kcenter(LocalShards(kcenter_shards(features, labeled, parts, n)), n).picks


def assert_same_bits(one, other):
    assert one.rows.tolist() == other.rows.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=20)
@given(data=st.data(), count=COUNTS, seed=SEEDS)
def test_shards_pick_what_dense_clocks_pick(kind, data, count, seed):
    pool = data.draw(pools(kind))
    G = pool.gradients()
    picks = by_clocks(pool, division(len(G), count, seed), pool.n)
    assert_same_d2_picks(picks, naive.clocks(G, pool.n, pool.residuals), G)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=10)
@given(data=st.data(), count=COUNTS, seed=SEEDS)
def test_no_division_changes_a_bit_of_a_pick_or_its_score(kind, data, count, seed):
    pool = data.draw(pools(kind))
    whole = by_clocks(pool, [np.arange(len(pool.logits))], pool.n)
    assert_same_bits(by_clocks(pool, division(len(pool.logits), count, seed), pool.n), whole)


@pytest.mark.parametrize(
    ("kind", "N", "n", "dtype"),
    [
        ("random", 12_000, 400, torch.float32),
        ("relu", 6000, 300, torch.float16),
        ("repeated", 2600, 2600, torch.float32),  # runs out of positive weights at a fifth of it
        ("clusters-1e-7", 6000, 600, torch.float64),  # twice as many as there are clusters
        ("confident-300", 3000, 600, torch.float32),
    ],
)
def test_shards_larger_than_their_groups_pick_what_one_machine_picks(kind, N, n, dtype):
    pool = make(kind, N, 4, 8, seed=N + n, dtype=dtype)
    points = gradient_points(pool.logits, pool.features, bias=pool.bias)
    here = kmeanspp(points, n, pool.residuals)
    picks = by_clocks(pool, division(N, 3, seed=1), n)
    assert picks.rows.tolist() == here.rows.tolist()
    np.testing.assert_allclose(picks.scores, here.scores, rtol=1e-9, atol=1e-20)
    assert_same_bits(by_clocks(pool, division(N, 5, seed=2), n), picks)


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.integers(2, 100), COUNTS)
@example(19, 100, 1)
@example(23, 100, 3)
def test_clocks_that_fire_at_the_same_moment_fire_in_one_order(seed, N, count):
    # Whole numbers and two residuals: distances are exact, and many clocks fire in the same instant,
    # where rounding may have the second fire a last digit before the first.
    rng = np.random.default_rng(seed)
    features = torch.from_numpy(rng.integers(-6, 7, size=(N, 2)).astype(np.float64))
    residuals = rng.choice(rng.exponential(size=2), size=N)
    shards = [
        kmeanspp_shard(feature_points(features[own]), own, N, residuals[own])
        for own in division(N, count, seed)
    ]
    here = kmeanspp(feature_points(features), N, residuals)
    picks = sharded_kmeanspp(LocalShards(shards), N).picks
    assert picks.rows.tolist() == here.rows.tolist()


@settings(deadline=None, max_examples=40)
@given(
    pools("random", "clusters-1e-4", most=300, dtypes=NO_TIES), st.integers(1, 60), COUNTS, SEEDS
)
def test_shards_cover_what_one_machine_covers(pool, L, count, seed):
    labeled = labeled_of(pool, L, seed)
    parts = division(len(pool.features), count, seed)
    picks = by_cover(pool.features, labeled, parts, pool.n)
    assert_greedy(picks, pool.features, labeled)
    here = kcenter(feature_points(pool.features), labeled, pool.n)
    assert picks.rows.tolist() == here.rows.tolist()
    np.testing.assert_allclose(picks.scores, here.scores, rtol=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    pools("random", "relu", "repeated", "same", "clusters-1e-4", "clusters-1e-7", most=300),
    st.integers(1, 60),
    COUNTS,
    SEEDS,
)
def test_no_division_changes_a_bit_of_a_cover_even_where_points_are_tied(pool, L, count, seed):
    labeled = labeled_of(pool, L, seed, copies=L // 2)
    parts = division(len(pool.features), count, seed)
    picks = by_cover(pool.features, labeled, parts, pool.n)
    assert_greedy(picks, pool.features, labeled)
    whole = by_cover(pool.features, labeled, [np.arange(len(pool.features))], pool.n)
    assert_same_bits(picks, whole)


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.integers(2, 300), COUNTS)
def test_of_equal_distances_the_lowest_position_wins_whichever_shard_has_it(seed, N, count):
    rng = np.random.default_rng(seed)
    features = torch.from_numpy(rng.integers(-2, 3, size=(N, 2)).astype(np.float64))
    labeled = torch.zeros(1, 2, dtype=torch.float64)
    picks = by_cover(features, labeled, division(N, count, seed), N)
    rows, scores = naive.farthest_first(features.numpy(), labeled.numpy(), N)
    assert picks.rows.tolist() == rows.tolist()
    np.testing.assert_allclose(picks.scores, scores)


class Mortal(LocalShards):
    """Loses shards between questions; each is made again, knowing nothing."""

    def __init__(self, make_shards, seed):
        super().__init__(make_shards())
        self.make_shards, self.rng, self.lost = make_shards, np.random.default_rng(seed), 0

    def _lose(self):
        fresh = self.make_shards()
        gone = self.rng.random(len(fresh)) < 0.5
        self.shards = [
            new if g else old for new, old, g in zip(fresh, self.shards, gone, strict=True)
        ]
        self.lost += int(gone.sum())

    def fronts(self, update, width):
        answers = super().fronts(update, width)
        self._lose()
        return answers

    def rest(self, update, n):
        self._lose()
        return super().rest(update, n)


@pytest.mark.parametrize("kind", ["random", "repeated", "clusters-1e-4"])
@settings(deadline=None, max_examples=15)
@given(SEEDS, COUNTS)
def test_shards_that_are_lost_and_made_again_change_nothing(kind, seed, count):
    pool = make(kind, 150, 3, 8, seed)
    parts = division(150, count, seed)
    mortal = Mortal(lambda: kmeanspp_shards(pool, parts, 150), seed)
    picks = sharded_kmeanspp(mortal, 150).picks
    assert_same_bits(picks, by_clocks(pool, parts, 150))
    labeled = labeled_of(pool, 5, seed)
    mortal = Mortal(lambda: kcenter_shards(pool.features, labeled, parts, 100), seed)
    picks = sharded_kcenter(mortal, 100).picks
    assert_same_bits(picks, by_cover(pool.features, labeled, parts, 100))


def test_shards_are_lost_in_that_test():
    pool = make("random", 3000, 3, 8, seed=0)
    parts = division(3000, 4, seed=1)
    mortal = Mortal(lambda: kmeanspp_shards(pool, parts, 900), seed=0)
    outcome = sharded_kmeanspp(mortal, 900)
    assert mortal.lost > 4
    assert_same_bits(outcome.picks, by_clocks(pool, parts, 900))


def test_a_shard_that_knows_too_little_says_so():
    pool = make("random", 20, 3, 4, seed=0)
    (shard,) = kmeanspp_shards(pool, [np.arange(20)], 5)
    late = PickUpdate(
        1, np.array([3]), PackedVectors.of(shard.greedy.points, np.array([3])), np.zeros(1)
    )
    assert shard.front(late, 5) == Stale(0)


def test_a_pick_costs_no_round_trip_of_its_own():
    pool = make("random", 20_000, 4, 16, seed=4)
    outcome = sharded_kmeanspp(LocalShards(kmeanspp_shards(pool, division(20_000, 4, 1), 400)), 400)
    assert outcome.traffic.trips < 100
    # A pick and a row of a front are (16·4 + 4·8) bytes of vector and a few numbers.
    row = 16 * 4 + 4 * 8 + 32
    assert outcome.traffic.received < outcome.traffic.fronts * 160 * row + 1000
    assert outcome.traffic.sent < 4 * 400 * row


def test_a_shard_wants_a_position_for_every_point():
    points = feature_points(torch.zeros(3, 2))
    for positions in ([0, 1], [2, 1, 0], [1, 1, 2]):
        with pytest.raises(InputError, match="as many positions, ascending"):
            kmeanspp_shard(points, np.array(positions), 1, np.ones(3))


def test_there_must_be_a_shard():
    with pytest.raises(InputError, match="no shard"):
        sharded_kmeanspp(LocalShards([]), 1)
