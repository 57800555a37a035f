"""Coverage of the pool: stale bounds against every gain computed at every pick.

Two candidates may have gains that differ in the last digit alone, and sums run in another order here
and in the twin. Rows are therefore compared where nothing is so near; elsewhere each pick is checked to
have the largest gain of those left, given the picks before it.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.picking import coverage, near, sparse_cover
from askance.picking.audience import (
    Audience,
    sq_dists_between,
    sq_dists_to_nearest,
    unit_rows,
)
from askance.picking.coverage import cover
from tests.naive import picking as naive

SEEDS = st.integers(0, 2**32 - 1)
KINDS = ("random", "relu", "lumps", "copies", "same", "zeros")
DTYPES = (torch.float64, torch.float32, torch.float16)


def features_of(kind, count, D, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, D))
    if kind == "relu":
        X = np.maximum(X, 0.0)
    elif kind == "lumps":
        X = rng.normal(size=(3, D))[rng.integers(3, size=count)] + 1e-3 * X
    elif kind == "copies":
        X = X[rng.integers(max(1, count // 4), size=count)]
    elif kind == "same":
        X = np.repeat(X[:1], count, axis=0)
    elif kind == "zeros":
        X[rng.random(count) < 0.5] = 0.0
    return X


def asked(X, E, weights, sq_width, labeled, n, dtype=torch.float64):
    """(picks, features as the function sees them)."""
    X, E = (torch.from_numpy(rows).to(dtype) for rows in (X, E))
    unit = unit_rows(E)
    sq = torch.full((len(E),), torch.inf, dtype=torch.float64)
    if len(labeled):
        sq = sq_dists_to_nearest(unit, torch.from_numpy(labeled))
    audience = Audience(unit, torch.from_numpy(weights), torch.exp(-sq / sq_width), sq_width)
    picks = cover(X, audience, n)
    return picks, X.double().numpy(), E.double().numpy()


@pytest.mark.parametrize("most_pairs", [0, 1 << 20])
@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 30),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(0, 8),
    st.sampled_from([1e-6, 0.01, 0.3, 1.5, 6.0]),
    st.sampled_from(DTYPES),
    st.data(),
    SEEDS,
)
def test_every_pick_has_the_largest_gain(most_pairs, kind, N, M, D, L, sq_width, dtype, data, seed):
    rng = np.random.default_rng(seed + 1)
    X, labeled = features_of(kind, N, D, seed), rng.normal(size=(L, D))
    E = X[rng.integers(N, size=M)]
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=M)
    n = data.draw(st.integers(1, N))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_cover, "_MOST_PAIRS", most_pairs)
        picks, X, E = asked(X, E, weights, sq_width, labeled, n, dtype)
    assert len(set(picks.rows.tolist())) == n
    for place, row in enumerate(picks.rows):
        earlier = picks.rows[:place]
        centres = np.concatenate([labeled, X[earlier]])
        gains = naive.covering_gains(X, E, weights, sq_width, centres)
        gains[earlier] = -1.0
        largest = gains.max()
        assert gains[row] == pytest.approx(largest, rel=1e-9, abs=1e-9)
        assert picks.scores[place] == pytest.approx(largest, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kept", [0, 1 << 12, 1 << 26])
@pytest.mark.parametrize("L", [0, 5])
@settings(deadline=None, max_examples=10)
@given(seed=SEEDS)
def test_picks_are_those_of_the_twin(kept, L, seed):
    rng = np.random.default_rng(seed)
    X, labeled = rng.normal(size=(80, 5)), rng.normal(size=(L, 5))
    E, weights = X[rng.permutation(80)[:40]], rng.random(40)
    # With room for no kernel row but one, for a few, and for all of the kernel.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_cover, "_MOST_PAIRS", 0)
        patch.setattr(coverage, "_KEPT_BYTES", kept)
        picks, *_ = asked(X, E, weights, 0.7, labeled, 20)
    rows, scores = naive.covering(X, E, weights, 0.7, labeled, 20)
    np.testing.assert_array_equal(picks.rows, rows)
    np.testing.assert_allclose(picks.scores, scores, rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("ahead", [1, 16])
@settings(deadline=None, max_examples=4)
@given(seed=SEEDS)
def test_picks_from_few_entries_are_those_of_the_twin(dtype, ahead, seed):
    rng = np.random.default_rng(seed)
    X, labeled = rng.normal(size=(90, 5)), rng.normal(size=(12, 5))
    E, weights = X[rng.permutation(90)[:50]], rng.random(50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near, "product_dtype", lambda: dtype)
        patch.setattr(sparse_cover, "_AHEAD", ahead)
        patch.setattr(sparse_cover, "_BLOCK", 40)
        patch.delattr(coverage, "_Greedy")  # nothing is left to it
        picks, *_ = asked(X, E, weights, 0.7, labeled, 14)
    rows, scores = naive.covering(X, E, weights, 0.7, labeled, 14)
    np.testing.assert_array_equal(picks.rows, rows)
    np.testing.assert_allclose(picks.scores, scores, rtol=1e-9)


@pytest.mark.parametrize("most_pairs", [0, 1 << 20])
@pytest.mark.parametrize("group", [4, 2048])
def test_a_larger_pool_than_a_group(monkeypatch, group, most_pairs):
    monkeypatch.setattr(coverage, "_GROUP", group)
    monkeypatch.setattr(sparse_cover, "_GROUP", group)
    monkeypatch.setattr(sparse_cover, "_MOST_PAIRS", most_pairs)
    monkeypatch.setattr(coverage, "_BLOCK_ENTRIES", 300)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    E, weights = X[::7], np.ones(43)
    picks, *_ = asked(X, E, weights, 1.0, X[:2], 30)
    rows, scores = naive.covering(X, E, weights, 1.0, X[:2], 30)
    np.testing.assert_array_equal(picks.rows, rows)
    np.testing.assert_allclose(picks.scores, scores, rtol=1e-9)


def test_ties_go_to_the_lowest_row():
    X = torch.eye(3).repeat(4, 1)
    picks = cover(
        X, Audience(X[:3].double(), torch.ones(3).double(), torch.zeros(3).double(), 1e-3), 12
    )
    assert picks.rows.tolist() == list(range(12))
    assert picks.scores[:3].tolist() == [1.0, 1.0, 1.0]
    assert picks.scores[3:].tolist() == [0.0] * 9


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_lengths_do_not_matter(scale):
    X = np.random.default_rng(0).normal(size=(40, 3))
    audience = Audience(
        unit_rows(torch.from_numpy(X)), torch.ones(40).double(), torch.zeros(40).double(), 0.5
    )
    expected = cover(torch.from_numpy(X), audience, 10)
    picks = cover(torch.from_numpy(X * scale), audience, 10)
    np.testing.assert_array_equal(picks.rows, expected.rows)


def test_distances_are_those_of_the_rows_at_unit_length():
    rng = np.random.default_rng(0)
    X, labeled = rng.normal(size=(30, 4)), rng.normal(size=(7, 4))
    X[3], labeled[2] = 0.0, 2 * X[5]
    unit = unit_rows(torch.from_numpy(X))
    np.testing.assert_allclose(unit, naive.unit(X), rtol=1e-12)
    every = ((naive.unit(X)[:, None] - naive.unit(labeled)) ** 2).sum(2)
    nearest = sq_dists_to_nearest(unit, torch.from_numpy(labeled))
    np.testing.assert_allclose(nearest, every.min(axis=1), rtol=1e-9, atol=1e-30)
    pairs = ((naive.unit(X)[:, None] - naive.unit(X)) ** 2).sum(2)[np.triu_indices(30, 1)]
    np.testing.assert_allclose(np.sort(sq_dists_between(unit)), np.sort(pairs), atol=1e-6)
