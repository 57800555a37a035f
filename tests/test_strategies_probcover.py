"""`probcover` against its naive twin."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import askance
from askance import Embedding
from askance.errors import InputError
from askance.picking.balls import cover, pure_radius
from askance.strategies import ProbCover
from tests.naive import clusters as naive

SEEDS = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=80)


def rows(N, D, seed):
    return naive.unit(np.random.default_rng(seed).normal(size=(N, D)))


@quick
@given(
    st.integers(1, 40), st.integers(0, 5), st.integers(2, 4), SEEDS, st.floats(0.05, 1.8), st.data()
)
def test_picks_are_those_of_the_twin(N, L, D, seed, radius, data):
    n = data.draw(st.integers(1, N))
    X, ties = rows(N + L, D, seed), np.random.default_rng(seed).random(N)
    picks = cover(torch.from_numpy(X[:N]), torch.from_numpy(X[N:]), radius, n, ties)
    expected, gains = naive.cover(X[:N], X[N:], radius, n, ties.tolist())
    assert picks.rows.tolist() == expected
    assert picks.scores.tolist() == gains


@quick
@given(st.integers(2, 40), st.integers(2, 4), st.integers(2, 4), SEEDS, st.floats(0.3, 1.0))
def test_the_radius_is_the_largest_of_that_purity(N, D, k, seed, share):
    X, clusters = rows(N, D, seed), np.random.default_rng(seed).integers(k, size=N)
    clusters[:2] = 0, 1
    radius = pure_radius(torch.from_numpy(X), clusters, share)
    assert naive.purity(X, clusters.tolist(), radius - 1e-7) >= share
    # All of the pure balls reach to some row of another cluster, so there is a next radius.
    assert naive.purity(X, clusters.tolist(), radius + 1e-7) < share or share == 1.0


def test_what_lies_on_the_edge_is_decided_as_in_float64():
    """Many pairs at the radius up to float32's rounding, in blocks of any size."""
    rng = np.random.default_rng(0)
    angles = np.arange(300) * 0.01 + rng.normal(size=300) * 1e-9
    X = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    radius = float(2 * np.sin(0.05 / 2))  # five steps, and the edge is a matter of the ninth digit
    ties = rng.random(300)
    picks = cover(torch.from_numpy(X), torch.from_numpy(X[:3]), radius, 40, ties)
    expected, gains = naive.cover(X, X[:3], radius, 40, ties.tolist())
    assert picks.rows.tolist() == expected
    assert picks.scores.tolist() == gains


def test_blocks_change_nothing(monkeypatch):
    X, ties = torch.from_numpy(rows(60, 3, 1)), np.random.default_rng(1).random(60)
    clusters = np.arange(60) % 3
    whole = cover(X, X[:4], 0.4, 20, ties), pure_radius(X, clusters, 0.9)
    monkeypatch.setattr("askance.picking.balls._ENTRIES", 130)
    parts = cover(X, X[:4], 0.4, 20, ties), pure_radius(X, clusters, 0.9)
    assert parts[0].rows.tolist() == whole[0].rows.tolist()
    assert parts[1] == pytest.approx(whole[1])


def blobs():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), [60, 40, 30, 20])
    return torch.from_numpy(5 * np.eye(4)[truth] + 0.1 * rng.normal(size=(150, 4))), truth


def test_the_radius_follows_the_classes_and_labelled_clusters_are_covered():
    X, truth = blobs()
    known = Embedding(features=X[[0, 60]]), [0, 1]
    rule = ProbCover(classes=4)
    picks = askance.select(None, known, Embedding(features=X), 2, strategy=rule)
    assert truth[picks.indices].tolist() == [2, 3]
    assert picks.scores.tolist() == [30, 20]


def test_chance_decides_between_points_that_cover_as_many():
    X, _ = blobs()
    first = set()
    for seed in range(40):
        known = Embedding(features=X[:1]), [0]
        rule = ProbCover(radius=0.5)
        picks = askance.select(None, known, Embedding(features=X), 6, strategy=rule, seed=seed)
        assert picks.scores.tolist() == [40, 30, 20, 0, 0, 0]
        first.add(int(picks.indices[0]))
    assert len(first) > 15


@pytest.mark.parametrize(
    ("option", "value"), [("radius", 0.0), ("radius", 2.1), ("purity", 0), ("classes", 1)]
)
def test_options_that_make_no_sense_are_refused(option, value):
    with pytest.raises(InputError, match=f"{option} must be"):
        ProbCover(**{option: value})
