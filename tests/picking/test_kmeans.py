"""k-means and neighbours, against plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.picking.kmeans import first_centres, kmeans, lloyd, unit_length
from askance.picking.typical import mean_neighbour_dists
from askance.seeding import Draws
from tests.naive import clusters as naive
from tests.picking.pools import pair_p_value

SEEDS = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=60)


def rows(N, D, seed):
    return np.random.default_rng(seed).normal(size=(N, D))


@quick
@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 9), SEEDS)
def test_lloyd_is_assign_and_average(N, D, k, seed):
    X = rows(N, D, seed)
    centres = X[np.random.default_rng(seed).permutation(N)[: min(k, N)]]
    labels = lloyd(torch.from_numpy(X), torch.from_numpy(centres))
    assert labels.tolist() == naive.lloyd(X, centres)


def test_a_cluster_of_copies_keeps_the_rest_empty():
    X = torch.ones(8, 3, dtype=torch.float64)
    assert set(kmeans(X, 4, "test", Draws(0)).tolist()) == {0}


def test_clusters_that_are_far_apart_are_found():
    centres = 10 * np.eye(6)
    truth = np.arange(90) % 6
    X = torch.from_numpy(centres[truth] + 0.1 * rows(90, 6, 0))
    labels = kmeans(X, 6, "test", Draws(1))
    assert len({(a, b) for a, b in zip(labels.tolist(), truth.tolist(), strict=True)}) == 6


def test_the_first_centres_are_drawn_as_in_kmeanspp():
    X = rows(5, 2, 3)
    drawn = [first_centres(torch.from_numpy(X), 2, "test", Draws(seed)) for seed in range(4_000)]
    assert pair_p_value(np.array(drawn), naive.kmeanspp_pair_law(X)) > 1e-3
    uniform = np.full((5, 5), 1 / 20) * (1 - np.eye(5))
    assert pair_p_value(np.array(drawn), uniform) < 1e-6


@quick
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 45), SEEDS)
def test_the_mean_distance_to_the_nearest(N, D, k, seed):
    X = rows(N, D, seed)
    expected = [naive.mean_neighbour_dist(X, i, k) for i in range(N)]
    means = mean_neighbour_dists(torch.from_numpy(X), k)
    np.testing.assert_allclose(means, expected, rtol=1e-9, atol=1e-7)


@quick
@given(st.integers(1, 20), st.integers(1, 4), SEEDS, st.sampled_from([1e-120, 1.0, 1e120]))
def test_unit_length(N, D, seed, scale):
    X = rows(N, D, seed)
    X[::3] = 0.0
    units = unit_length(torch.from_numpy(scale * X))
    np.testing.assert_allclose(units.numpy(), naive.unit(X), rtol=1e-12)


def test_tiny_and_huge_rows_of_float32_have_a_direction_too():
    X = torch.tensor([[3e-30, 4e-30], [3e30, 4e30]])
    np.testing.assert_allclose(unit_length(X).numpy(), [[0.6, 0.8]] * 2, rtol=1e-6)


@pytest.mark.parametrize("block", [1, 7])
def test_blocks_change_nothing(monkeypatch, block):
    X = torch.from_numpy(rows(30, 3, 5))
    whole = mean_neighbour_dists(X, 4), kmeans(X, 5, "test", Draws(2))
    monkeypatch.setattr("askance.picking.typical._ENTRIES", 30 * block)
    monkeypatch.setattr("askance.picking.kmeans._BLOCK", 5 * block)
    np.testing.assert_allclose(mean_neighbour_dists(X, 4), whole[0], rtol=1e-12)
    assert kmeans(X, 5, "test", Draws(2)).tolist() == whole[1].tolist()
