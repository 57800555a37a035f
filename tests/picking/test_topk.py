"""The n best of a stream; draws without replacement by top-k."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.embedding import Embedding, Listed, texts
from askance.picking import StreamingTopK, TopRows
from askance.picking.topk import gumbel_keys, top_k
from askance.seeding import Draws
from tests.naive import picking as naive
from tests.picking.pools import DTYPES, pair_p_value

# Few values, so that ties are the rule.
LEVELS = st.sampled_from([-np.inf, -2.0, -0.0, 0.0, 0.5, 1.0, np.inf])
SCORES = st.lists(LEVELS, min_size=1, max_size=60)


@given(SCORES, st.integers(1, 70), st.sampled_from(DTYPES))
def test_top_k_is_a_full_sort_cut_off(scores, k, dtype):
    assert top_k(torch.tensor(scores, dtype=dtype), k).tolist() == naive.sorted_top_k(scores, k)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3000), st.data())
def test_top_k_of_many_distinct_scores(seed, count, data):
    scores = torch.from_numpy(np.random.default_rng(seed).normal(size=count))
    k = data.draw(st.integers(1, count))
    assert top_k(scores, k).tolist() == naive.sorted_top_k(scores.tolist(), k)


def test_equal_scores_go_to_the_lowest_index():
    assert top_k(torch.ones(5000), 3).tolist() == [0, 1, 2]


def test_more_than_there_are_gives_all_of_them_in_order():
    assert top_k(torch.tensor([1.0, 3.0, 2.0]), 9).tolist() == [1, 2, 0]


def rows_at(*positions, ids=None):
    """Rows at these positions, whose features repeat them."""
    where = np.array(positions, dtype=np.int64)
    features = torch.from_numpy(where).double()[:, None] * torch.ones(2)
    return Embedding(features=features, positions=where, ids=ids, inputs=(features,))


@given(SCORES, st.integers(1, 70), st.sampled_from([None, 0, 3, 20]), st.data())
def test_a_stream_in_any_blocks_is_the_top_k_of_the_whole(scores, k, buffered, data):
    cuts = data.draw(st.lists(st.integers(0, len(scores)), max_size=8).map(sorted))
    whole = torch.tensor(scores)
    rows = rows_at(*(100 + 3 * i for i in range(len(scores))))  # ascending, but no row numbers
    best = StreamingTopK(k, buffered)
    for start, stop in zip([0, *cuts], [*cuts, len(scores)], strict=True):
        best.push(rows[start:stop], whole[start:stop])

    top = best.result()
    expected = naive.sorted_top_k(scores, k)
    assert top.rows.positions.tolist() == [100 + 3 * i for i in expected]
    assert top.scores.tolist() == [scores[i] for i in expected]
    assert top.rows.features[:, 0].tolist() == top.rows.positions.tolist()
    assert top.rows.inputs[0][:, 1].tolist() == top.rows.positions.tolist()


@given(SCORES, st.integers(1, 70), st.data())
def test_the_best_of_parts_is_the_top_k_of_the_whole_in_any_order(scores, k, data):
    rows = rows_at(*range(len(scores)))
    owner = data.draw(st.lists(st.integers(0, 4), min_size=len(scores), max_size=len(scores)))
    parts = []
    for number in data.draw(st.permutations(range(5))):
        mine = np.flatnonzero(np.array(owner) == number)
        part = StreamingTopK(k)
        part.push(rows[mine], torch.tensor(scores)[mine])
        parts.append(part.result())
    top = TopRows.best_of(parts, k)
    assert top.rows.positions.tolist() == naive.sorted_top_k(scores, k)
    assert top.rows.features[:, 0].tolist() == top.rows.positions.tolist()


def test_identifiers_go_with_their_rows():
    best = StreamingTopK(2)
    for start in (0, 3):
        names = Listed([f"row {at}" for at in range(start, start + 3)])
        block = rows_at(*range(start, start + 3), ids=names)
        best.push(block, torch.tensor([1.0, 5.0 + start, 0.0]))
    assert texts(best.result().rows.ids) == ("row 4", "row 1")


def test_the_best_of_nothing_is_empty():
    assert len(TopRows.best_of([], 3)) == len(StreamingTopK(3).result()) == 0


def test_a_stream_breaks_ties_by_position_after_thinning_out():
    best = StreamingTopK(2, buffered=0)
    for start in range(0, 100, 5):
        best.push(rows_at(*range(start, start + 5)), torch.ones(5))
    assert best.result().rows.positions.tolist() == [0, 1]


def test_a_stream_shorter_than_k_gives_what_there_is():
    best = StreamingTopK(10)
    best.push(rows_at(4, 7), torch.tensor([1.0, 2.0]))
    top = best.result()
    assert (top.rows.positions.tolist(), top.scores.tolist()) == ([7, 4], [2.0, 1.0])


def test_the_result_of_a_stream_may_be_asked_for_in_between():
    best = StreamingTopK(2)
    best.push(rows_at(0, 1, 2), torch.tensor([3.0, 1.0, 2.0]))
    assert best.result().rows.positions.tolist() == [0, 2]
    best.push(rows_at(3), torch.tensor([2.5]))
    assert best.result().rows.positions.tolist() == [0, 3]


@given(
    st.lists(st.floats(1e-30, 1e30), min_size=1, max_size=20),
    st.floats(0.0, 8.0),
    st.integers(0, 1000),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_gumbel_keys_are_beta_log_s_plus_noise(scores, beta, seed, dtype):
    scores = torch.tensor(scores, dtype=dtype)
    noise = Draws(seed).gumbel("powergrad", range(len(scores)))
    keys = gumbel_keys(scores, beta, noise)
    assert keys.dtype == torch.float64
    twin = naive.gumbel_keys(scores.tolist(), beta, noise.tolist())
    np.testing.assert_allclose(keys.numpy(), twin, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 2.0])
def test_gumbel_top_k_draws_without_replacement_in_proportion_to_s_to_the_beta(beta):
    assert gumbel_p_value([0.3, 1.0, 0.7, 2.0, 1.5], beta, runs=3_000) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.0, 1.0, 2.0])
def test_gumbel_top_k_draws_without_replacement_from_a_larger_pool(beta):
    assert gumbel_p_value(np.linspace(0.5, 2.0, 25).tolist(), beta, runs=60_000) > 1e-3


def test_the_chi_square_sees_a_wrong_beta():
    scores = [0.3, 1.0, 0.7, 2.0, 1.5]
    assert gumbel_p_value(scores, 2.0, runs=3_000, law_beta=1.5) < 1e-6


@cache
def noises(runs, N):
    """The noise of as many seeds: the same for every β."""
    return [Draws(seed).gumbel("powergrad", range(N)) for seed in range(runs)]


def gumbel_p_value(scores, beta, runs, law_beta=None):
    scores = torch.tensor(scores, dtype=torch.float64)
    drawn = (top_k(gumbel_keys(scores, beta, noise), 2) for noise in noises(runs, len(scores)))
    pairs = np.array([pair.numpy() for pair in drawn])
    weights = scores.numpy() ** (beta if law_beta is None else law_beta)
    return pair_p_value(pairs, naive.without_replacement_pair_law(weights))


@given(st.floats(0.0, 4.0, exclude_min=True), st.integers(0, 2**32 - 1))
def test_zero_scores_come_last_for_any_beta_but_zero(beta, seed):
    # 0^β = 0: such a row is drawn when nothing else is left.
    scores = torch.tensor([0.0, 1.0, 0.0, 0.25, 2.0, 0.0])
    noise = Draws(seed).gumbel("powergrad", range(len(scores)))
    order = top_k(gumbel_keys(scores, beta, noise), len(scores)).tolist()
    assert set(order[:3]) == {1, 3, 4}


def test_zero_scores_among_themselves_come_in_an_order_of_chance():
    noise = Draws(0).gumbel("powergrad", range(50))
    order = top_k(gumbel_keys(torch.zeros(50), 2.0, noise), 50)
    assert order.tolist() == np.argsort(-noise).tolist()


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_beta_zero_ignores_the_scores(seed):
    noise = Draws(seed).gumbel("powergrad", range(6))
    keys = gumbel_keys(torch.tensor([0.0, 1e-30, 1.0, 2.0, 5.0, 1e30]), 0.0, noise)
    assert keys.tolist() == noise.tolist()
