"""Limits on a batch, against a search through every way to go on."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from askance.errors import InputError
from askance.picking.eligible import Groups, LimitedRows, best_eligible
from askance.picking.front import reachable
from askance.picking.kcenter import kcenter
from askance.picking.kmeanspp import kmeanspp
from askance.picking.points import feature_points
from askance.picking.similar import Similar
from askance.picking.spread import farthest_by_angle
from tests.naive import limits as naive

G = 3


@st.composite
def problems(draw, rows=9):
    """(groups, most, least, costs, budget, n) that some n rows satisfy, in whole numbers."""
    N = draw(st.integers(3, rows))
    n = draw(st.integers(1, min(N, 5)))
    groups = draw(st.lists(st.integers(0, G - 1), min_size=N, max_size=N))
    costs = draw(st.lists(st.integers(0, 6), min_size=N, max_size=N))
    chosen = draw(st.permutations(range(N)))[:n]
    counts = {g: sum(groups[row] == g for row in chosen) for g in range(G)}
    most = {g: counts[g] + draw(st.integers(0, 2)) for g in range(G)}
    least = {g: max(0, counts[g] - draw(st.integers(0, 2))) for g in range(G)}
    budget = max(1, sum(costs[row] for row in chosen) + draw(st.integers(0, 5)))
    return groups, most, least, costs, budget, n


def limited(groups, most, least, costs, budget, n, similar=None):
    by_group = Groups(
        np.array(groups),
        range(G),
        np.array([most[g] for g in range(G)]),
        np.array([least[g] for g in range(G)]),
    )
    return LimitedRows(len(groups), n, by_group, np.array(costs, float), float(budget), similar)


@settings(deadline=None, max_examples=300)
@given(problems(), st.integers(0, 2**32 - 1))
def test_a_row_is_eligible_when_there_is_a_way_to_go_on_from_it(problem, seed):
    groups, most, least, costs, budget, n = problem
    limits, rng, picks = limited(*problem), np.random.default_rng(seed), []
    while True:
        expected = [
            row not in picks
            and len(picks) < n
            and naive.possible([*picks, row], n, groups, most, least, costs, budget)
            for row in range(len(groups))
        ]
        if len(picks) == n:
            break
        assert limits.mask.tolist() == expected
        if not any(expected):
            break
        picks.append(int(rng.choice(np.flatnonzero(limits.mask))))
        before = limits.mask.copy()
        gone = limits.take(picks[-1])
        before[picks[-1]] = False
        assert gone.tolist() == np.flatnonzero(before & ~limits.mask).tolist()
    assert limits.taken == picks


@settings(deadline=None, max_examples=200)
@given(problems(), st.integers(0, 2**32 - 1), st.booleans())
def test_a_pointwise_rule_picks_as_the_search_does_and_from_few_rows(problem, seed, by_cost):
    groups, most, least, costs, budget, n = problem
    if not by_cost:
        costs, budget = [0] * len(groups), 1
        problem = groups, most, least, costs, budget, n
    scores = np.random.default_rng(seed).integers(5, size=len(groups))
    expected = naive.greedy(
        n, lambda _, row: scores[row], groups, most, least, costs, budget
    )  # fmt: skip
    order = np.lexsort((np.arange(len(scores)), -scores))
    limits = limited(*problem)
    assert best_eligible(order, n, limits).tolist() == expected
    # The rows that can be reached are enough, also where the pool is thinned out in two parts first.
    by_group = limits.groups
    parts = np.array_split(np.arange(len(groups)), 2)
    kept = np.arange(len(groups))
    for among in ([*parts, kept], [kept]):
        for part in among:
            rows = np.intersect1d(part, kept)
            own = Groups(by_group.codes[rows], by_group.names, by_group.most, by_group.least)
            ranked = np.argsort(-scores[rows], kind="stable")
            price = np.array(costs, float)[rows] if by_cost else None
            stays = rows[reachable(ranked, own, n, price)]
            kept = np.setdiff1d(kept, np.setdiff1d(rows, stays))
    again = limited(
        [groups[row] for row in kept], most, least, [costs[row] for row in kept], budget, n
    )
    ranked = np.argsort(-scores[kept], kind="stable")
    assert kept[best_eligible(ranked, n, again)].tolist() == expected


def test_few_rows_are_kept_of_many():
    rng = np.random.default_rng(0)
    groups = Groups(rng.integers(50, size=20_000), range(50), np.full(50, 3), np.full(50, 1))
    order = rng.permutation(20_000)
    assert len(reachable(order, groups, 40)) <= 40 + 50
    assert len(reachable(order, groups, 40, rng.random(20_000))) < 2000


@settings(deadline=None, max_examples=100)
@given(problems(), st.integers(0, 2**32 - 1))
def test_k_center_picks_as_the_search_does(problem, seed):
    groups, most, least, costs, budget, n = problem
    rng = np.random.default_rng(seed)
    features, labeled = rng.normal(size=(len(groups), 3)), rng.normal(size=(2, 3))

    def distance(picks, row):
        centres = np.concatenate([labeled, features[picks]])
        return ((centres - features[row]) ** 2).sum(axis=1).min()

    expected = naive.greedy(n, distance, groups, most, least, costs, budget)
    points = feature_points(torch.from_numpy(features))
    picks = kcenter(points, torch.from_numpy(labeled), n, limited(*problem))
    assert picks.rows.tolist() == expected


@settings(deadline=None, max_examples=100)
@given(problems(), st.integers(0, 2**32 - 1))
def test_the_widest_angle_is_picked_as_the_search_does(problem, seed):
    groups, most, least, costs, budget, n = problem
    rng = np.random.default_rng(seed)
    a, h = rng.normal(size=(len(groups), 2)), rng.normal(size=(len(groups), 3))
    vectors = np.einsum("nc,nd->ncd", a, np.c_[h, np.ones(len(h))]).reshape(len(a), -1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def angle(picks, row):
        if not picks:
            return -row
        return (1 - vectors[picks] @ vectors[row]).min()

    expected = naive.greedy(n, angle, groups, most, least, costs, budget)
    assert farthest_by_angle(a, h, n, True, limited(*problem)).rows.tolist() == expected


@settings(deadline=None, max_examples=100)
@given(problems(), st.integers(0, 2**32 - 1))
def test_clocks_run_for_the_rows_that_are_eligible(problem, seed):
    groups, most, least, costs, budget, n = problem
    rng = np.random.default_rng(seed)
    features, clocks = rng.normal(size=(len(groups), 3)), rng.exponential(size=len(groups))
    sq = ((features[:, None] - features) ** 2).sum(axis=2)
    elapsed = {}  # of each list of picks, what is left of the clocks

    def residuals(picks):
        if len(picks) < 2:
            return clocks
        key = tuple(picks)
        if key not in elapsed:
            weights = sq[:, picks[:-1]].min(axis=1)
            left = residuals(picks[:-1])
            elapsed[key] = left - weights * left[picks[-1]] / weights[picks[-1]]
        return elapsed[key]

    def soonest(picks, row):
        if not picks:
            return (features[row] ** 2).sum()
        return -residuals(picks)[row] / sq[row, picks].min()

    expected = naive.greedy(n, soonest, groups, most, least, costs, budget)
    points = feature_points(torch.from_numpy(features))
    assert kmeanspp(points, n, clocks, limited(*problem)).rows.tolist() == expected


def test_each_draw_is_in_proportion_to_d2_among_eligible_rows():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(9, 3))
    groups, rounds = np.arange(9) % 3, 4000
    first = int((features**2).sum(axis=1).argmax())
    weights = ((features - features[first]) ** 2).sum(axis=1)
    weights[groups == groups[first]] = 0.0
    points, counts = feature_points(torch.from_numpy(features)), np.zeros(9)
    for _ in range(rounds):
        limits = LimitedRows(9, 2, Groups(groups, range(3), np.ones(3, int), np.zeros(3, int)))
        counts[kmeanspp(points, 2, rng.exponential(size=9), limits).rows[1]] += 1
    open_ = weights > 0
    assert counts[~open_].sum() == 0
    expected = rounds * weights[open_] / weights.sum()
    assert stats.chisquare(counts[open_], expected).pvalue > 1e-3


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 12), st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(0.1, 1.0))
def test_no_two_picks_are_alike(N, n, seed, most):
    rng = np.random.default_rng(seed)
    h = rng.integers(-2, 3, size=(N, 2)).astype(float)
    scores = rng.normal(size=N)
    units = h / np.maximum(np.linalg.norm(h, axis=1, keepdims=True), 1e-300)
    gaps = ((units[:, None] - units) ** 2).sum(axis=2) / 2
    zero = ~h.any(axis=1)
    gaps[zero] = gaps[:, zero] = 1.0  # a zero feature has no direction, and is like others alone
    gaps[np.ix_(zero, zero)] = 0.0
    assume((np.abs(gaps - (1 - most)) > 1e-9).all() or most == 1.0)
    expected = naive.greedy(
        n, lambda _, row: scores[row], [0] * N, {}, {}, [0] * N, 1,
        lambda pick, row: gaps[pick, row] <= 1 - most + 1e-12,
    )  # fmt: skip
    limits = LimitedRows(N, n, similar=Similar(torch.from_numpy(h), most))
    assert best_eligible(np.argsort(-scores, kind="stable"), n, limits).tolist() == expected


def test_a_minimum_gives_way_to_rows_that_are_alike_and_says_so():
    features = torch.tensor([[1.0, 0], [1, 0], [0, 1], [-1, 0]])
    groups = Groups(np.array([1, 1, 0, 0]), ["cat", "dog"], np.full(2, 4), np.array([0, 2]))
    limits = LimitedRows(4, 3, groups, similar=Similar(features, 1.0))
    assert best_eligible(np.arange(4), 3, limits).tolist() == [0, 2, 3]
    assert limits.notes() == ("groups with fewer picks than at_least asks for: 'dog' by 1",)


def test_ten_times_a_tenth_is_one():
    limits = LimitedRows(12, 12, costs=np.full(12, 0.1), budget=1.0)
    assert len(best_eligible(np.arange(12), 12, limits)) == 10
    assert limits.notes()[0].startswith("10 of 12 points picked")


@pytest.mark.parametrize(
    ("most", "least", "costs", "budget", "message"),
    [
        ([5, 5], [3, 0], 1, 99, "asks for 3 of group 'a', the pool has 2"),
        ([1, 5], [2, 0], 1, 99, "asks for 2 of group 'a', at_most lets 1"),
        ([5, 5], [2, 3], 1, 99, "asks for 5 points in all, n is 4"),
        ([1, 2], [0, 0], 1, 99, "n = 4 points were asked for, at_most leaves 3;"),
        ([5, 5], [2, 2], 3, 11, "that at_least asks for cost 12, the budget is 11"),
        ([5, 5], [0, 0], 3, 2, "no point costs as little as the budget, 2; the cheapest costs 3"),
    ],
)
def test_limits_that_cannot_be_met_are_refused(most, least, costs, budget, message):
    groups = Groups(np.array([0, 0, 1, 1, 1, 1]), ["a", "b"], np.array(most), np.array(least))
    with pytest.raises(InputError, match=message):
        LimitedRows(6, 4, groups, np.full(6, float(costs)), budget)


def test_a_row_that_has_left_cannot_be_taken():
    limits = LimitedRows(3, 3)
    limits.take(1)
    with pytest.raises(InputError, match="row 1 may not be picked"):
        limits.take(1)
