"""`typiclust` against its naive twin, and on clusters that are known."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import askance
from askance import Embedding
from askance.errors import InputError
from askance.picking.kmeans import kmeans, unit_length
from askance.seeding import Draws
from askance.strategies import TypiClust
from askance.strategies.typiclust import most_typical
from tests.naive import clusters as naive


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 50), st.integers(0, 8), st.integers(1, 7), st.integers(1, 6), st.data())
def test_picks_are_those_of_the_twin(N, L, k, neighbours, data):
    seed, n = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.integers(1, N))
    rng = np.random.default_rng(seed)
    X = naive.unit(rng.normal(size=(N + L, 3)))
    clusters = rng.integers(k, size=N + L)
    clusters[0] = k - 1  # so that no cluster above the last is counted
    picks = most_typical(torch.from_numpy(X[:N]), clusters, n, neighbours)
    # Two rows that are each other's neighbours have the same mean, so rows are no test of their own.
    own, least = zip(
        *naive.typical_along(X, clusters.tolist(), L, picks.rows.tolist(), neighbours), strict=True
    )
    np.testing.assert_allclose(own, least, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(-picks.scores, least, rtol=1e-9, atol=1e-7)
    assert len(set(picks.rows.tolist())) == n


def blobs(seed=0):
    """Six clusters of 60, 50, …, 10 points in directions at right angles."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(6), [60, 50, 40, 30, 20, 10])
    X = 5 * np.eye(6)[truth] + 0.1 * rng.normal(size=(210, 6))
    # Lengths say nothing.
    return torch.from_numpy(X * rng.uniform(0.1, 10.0, size=(210, 1))), truth


def test_the_largest_clusters_without_a_label_are_asked_about_first():
    X, truth = blobs()
    known = Embedding(features=X[[0, 60]]), [0, 1]
    picks = askance.select(None, known, Embedding(features=X), 4, strategy="typiclust")
    assert truth[picks.indices].tolist() == [2, 3, 4, 5]
    cluster = X[truth == 2]
    dists = [naive.mean_neighbour_dist(naive.unit(cluster.numpy()), i, 20) for i in range(40)]
    assert picks.indices[0] == 110 + int(np.argmin(dists))
    assert picks.scores[0] == pytest.approx(-min(dists))


def test_the_number_of_clusters_has_a_limit():
    """Two clusters for four picks: each is asked about twice."""
    X, truth = blobs()
    X, truth = X[truth < 2], truth[truth < 2]
    picks = TypiClust(clusters=2).pick(Embedding(features=X), 4, None, Draws(0))
    assert truth[picks.rows].tolist() == [0, 1, 0, 1]


def test_picks_come_from_the_clusters_of_all_rows():
    X, _ = blobs(1)
    known = Embedding(features=X[:5]), [0] * 5
    pool = Embedding(features=X[5:])
    picks = askance.select(None, known, pool, 7, strategy="typiclust", seed=3)
    both = torch.cat([unit_length(X[5:]), unit_length(X[:5])])
    clusters = kmeans(both, 12, "typiclust", Draws(3)).tolist()
    own, least = zip(
        *naive.typical_along(both.numpy(), clusters, 5, picks.indices.tolist(), 20), strict=True
    )
    np.testing.assert_allclose(own, least, rtol=1e-9)
    np.testing.assert_allclose(-picks.scores, least, rtol=1e-9)


@pytest.mark.parametrize("option", ["clusters", "neighbours"])
def test_options_are_whole_numbers(option):
    with pytest.raises(InputError, match=f"{option} must be a whole number"):
        TypiClust(**{option: 0})
