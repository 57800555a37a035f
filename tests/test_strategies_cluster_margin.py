"""`cluster-margin` against its naive twins."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import askance
from askance import Embedding
from askance.errors import InputError
from askance.picking.linkage import average_linkage
from askance.seeding import Draws
from askance.strategies import ClusterMargin
from askance.strategies.cluster_margin import in_turn
from tests.naive import clusters as naive

SEEDS = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=40)


@quick
@given(st.integers(1, 18), st.integers(1, 4), st.integers(1, 18), SEEDS)
def test_clusters_are_those_of_average_linkage(M, D, k, seed):
    X = np.random.default_rng(seed).normal(size=(M, D))
    labels = average_linkage(torch.from_numpy(X), k)
    found = {frozenset(np.flatnonzero(labels == c).tolist()) for c in set(labels.tolist())}
    assert found == {frozenset(cluster) for cluster in naive.average_linkage(X, k)}


def test_blocks_change_nothing(monkeypatch):
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 3)))
    whole = average_linkage(X, 7).tolist()
    monkeypatch.setattr("askance.picking.linkage._ENTRIES", 90)
    assert average_linkage(X, 7).tolist() == whole


@quick
@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), SEEDS)
def test_the_turns_are_a_round_robin(clusters, seed):
    ties = np.random.default_rng(seed).random(len(clusters))
    order = in_turn(np.array(clusters), ties)
    assert order.tolist() == naive.round_robin(clusters, ties.tolist(), len(clusters))


@quick
@given(st.integers(2, 50), st.integers(1, 6), st.integers(1, 4), SEEDS)
def test_picks_are_those_of_the_twins(N, n, k, seed):
    n, rng = min(n, N), np.random.default_rng(seed)
    pool = Embedding(
        torch.from_numpy(rng.normal(size=(N, 3))), torch.from_numpy(rng.normal(size=(N, 2)))
    )
    rule = ClusterMargin(candidates=3, clusters=k)
    picks = askance.select(None, None, pool, n, strategy=rule, seed=seed)
    margins = askance.select(None, None, pool, min(N, 3 * n), strategy="margin")
    clusters = naive.average_linkage(pool.features.numpy()[margins.indices], k)
    # Numbered as the library does, which only decides between clusters of one size.
    labels = average_linkage(pool.features[margins.indices], k).tolist()
    assert {frozenset(np.flatnonzero(np.array(labels) == c).tolist()) for c in set(labels)} == {
        frozenset(cluster) for cluster in clusters
    }
    ties = Draws(seed).uniform("cluster-margin", range(N))[margins.indices]
    order = naive.round_robin(labels, ties.tolist(), n)
    assert picks.indices.tolist() == margins.indices[order].tolist()
    np.testing.assert_array_equal(picks.scores, margins.scores[order])


def test_each_cluster_gives_one_of_its_points_by_chance():
    """Three clusters of ten candidates each: one pick of each, every point as often as the others."""
    rng = np.random.default_rng(0)
    truth = np.arange(30) % 3
    features = torch.from_numpy(10 * np.eye(3)[truth] + 0.1 * rng.normal(size=(30, 3)))
    pool, counts = Embedding(torch.zeros(30, 2), features), np.zeros(30)
    for seed in range(1_000):
        picks = askance.select(None, None, pool, 3, strategy="cluster-margin", seed=seed).indices
        assert sorted(truth[picks].tolist()) == [0, 1, 2]
        counts[picks] += 1
    assert chisquare(counts).pvalue > 1e-3


def test_what_is_no_candidate_is_not_picked():
    pool = Embedding(torch.tensor([[0.0, 0.0]] * 4 + [[9.0, 0.0]] * 6), torch.randn(10, 3))
    picks = askance.select(None, None, pool, 2, strategy=ClusterMargin(candidates=2))
    assert set(picks.indices.tolist()) < {0, 1, 2, 3}


def test_more_picks_than_pairs_fit_into_memory_are_refused():
    with pytest.raises(InputError, match=r"n = 10,001 is more. Ask in several batches"):
        ClusterMargin().shortlisted(10_001)
    assert ClusterMargin().shortlisted(2_000)[1] == 10_000
