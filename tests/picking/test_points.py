"""Points from factors: distances against the materialised matrix, digit for digit."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askance.picking.points import Centres, Vectors, feature_points, gradient_points
from tests.naive import picking as naive
from tests.picking.pools import DTYPES, KINDS, make, pools

SEEDS = st.integers(0, 2**32 - 1)
LOSSES = st.sampled_from(["cross-entropy", "multilabel"])


def all_of(points):
    return points.exact(np.arange(len(points)))


@settings(deadline=None)
@given(pools("random", "relu", "untrained", "confident-50", most=40), LOSSES)
def test_gradient_distances_are_those_of_the_materialised_matrix(pool, loss):
    G = naive.pseudo_gradients(pool.logits, pool.features, pool.bias, loss)
    vectors = all_of(gradient_points(pool.logits, pool.features, bias=pool.bias, loss=loss))
    np.testing.assert_allclose(vectors.sq_norms, naive.sq_norms(G), rtol=1e-12)
    assert_distances(vectors.sq_dists(vectors), G)


@settings(deadline=None)
@given(pools("random", "relu", "repeated", "clusters-1e-4", "clusters-1e-7", most=40))
def test_feature_distances_are_those_of_the_features(pool):
    X = pool.features.double().numpy()
    vectors = all_of(feature_points(pool.features))
    np.testing.assert_allclose(vectors.sq_norms, naive.sq_norms(X), rtol=1e-12)
    assert_distances(vectors.sq_dists(vectors), X)


def assert_distances(sq_dists, G):
    for column, g in zip(sq_dists.T, G, strict=True):
        np.testing.assert_allclose(column, naive.sq_dists_to(G, g), rtol=1e-9)


def test_the_embedding_is_p_minus_onehot_not_minus_p():
    # A row-indexed assignment that does nothing leaves −p ⊗ h: long where the model is *certain*.
    logits, features = (
        torch.tensor([[9.0, 0.0], [0.1, 0.0]]),
        torch.tensor([[1.0, 2.0], [1.0, 2.0]]),
    )
    norms = all_of(gradient_points(logits, features)).sq_norms
    certain, torn = torch.softmax(logits.double(), dim=1)[:, 1].tolist()
    assert norms.tolist() == pytest.approx([2 * certain**2 * 5, 2 * torn**2 * 5], rel=1e-12)
    assert norms[0] < 1e-6 * norms[1]


@given(SEEDS, st.integers(2, 30), st.integers(1, 20), st.sampled_from(DTYPES))
def test_copies_are_at_distance_zero_whatever_block_they_come_in(seed, C, D, dtype):
    # exp and sums run over several numbers at a time; the digits of a row must not depend on where
    # in a block it stands, or copies would drift apart.
    pool = make("same", 40, C, D, seed, dtype)
    for points in (gradient_points(pool.logits, pool.features), feature_points(pool.features)):
        whole = all_of(points)
        for rows in (np.array([0]), np.array([39]), np.arange(3, 20)):
            assert not whole.sq_dists(points.exact(rows)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_no_distance_is_negative_or_nan(kind):
    pool = make(kind, 300, 5, 8, seed=0)
    for points in (gradient_points(pool.logits, pool.features), feature_points(pool.features)):
        vectors = all_of(points)
        assert (vectors.sq_dists(vectors) >= 0).all()


@settings(deadline=None)
@given(SEEDS, st.floats(-10.0, 0.0), st.sampled_from(["both", "a", "h"]), st.booleans())
def test_near_copies_keep_the_digits_of_their_distance(seed, exponent, which, bias):
    # distance²/norm² down to 1e-20, where the expanded square has no digits at all.
    rng = np.random.default_rng(seed)
    a, h = rng.normal(size=(2, 4)), rng.normal(size=(2, 5))
    a[1] = a[0] + (0 if which == "h" else 10**exponent) * a[1]
    h[1] = h[0] + (0 if which == "a" else 10**exponent) * h[1]
    assert relative_error(a, h, bias) < 1e-6


@settings(deadline=None)
@given(SEEDS, st.floats(-5.0, -1.0))
def test_factors_that_change_in_opposite_directions_keep_the_digits_too(seed, exponent):
    # a grows as h shrinks: the gradient moves by ε² only, distance²/norm² = ε⁴ ≥ 1e-20.
    rng = np.random.default_rng(seed)
    a, h = rng.normal(size=4), rng.normal(size=5)
    a = np.stack([a, a * (1 + 10**exponent)])
    h = np.stack([h, h * (1 - 10**exponent)])
    assert relative_error(a, h, bias=False) < 1e-6


def relative_error(a, h, bias):
    """Of the distance between two vectors; half that of its square."""
    vectors = Vectors.of(a, h, bias)
    actual = vectors[:1].sq_dists(vectors[1:]).item()
    exact = naive.exact_sq_dist(a[0], h[0], a[1], h[1], bias)
    return float(abs(Fraction(actual) - exact) / exact) / 2


@settings(deadline=None)
@given(SEEDS, st.sampled_from([1, 7, 300]), st.floats(-9.0, 0.5), st.booleans(), st.booleans())
@example(seed=0, D=9000, exponent=-0.5, bias=True, plain=False)
@example(seed=0, D=9000, exponent=-0.5, bias=True, plain=True)
def test_the_distance_of_a_pair_is_exact_and_the_same_in_any_company(
    seed, D, exponent, bias, plain
):
    # From pairs whose difference is formed to pairs whose square is expanded.
    rng = np.random.default_rng(seed)
    a, h = rng.normal(size=(30, 4)), rng.normal(size=(30, D))
    b, k = a + 10**exponent * rng.normal(size=a.shape), h + 10**exponent * rng.normal(size=h.shape)
    one, other = (
        Vectors.of(None if plain else a, h, bias),
        Vectors.of(None if plain else b, k, bias),
    )
    together = one.paired_sq_dists(other)
    for i in range(30):
        assert one[i : i + 1].paired_sq_dists(other[i : i + 1]) == together[i]
    some = rng.permutation(30)[:7]
    assert (other[some].paired_sq_dists(one[some]) == together[some]).all()
    if plain:
        a, b, bias = np.ones((1, 1)), np.ones((1, 1)), False
    exact = naive.exact_sq_dist(a[0], h[0], b[0], k[0], bias)
    assert together[0] == pytest.approx(float(exact), rel=1e-11, abs=0.0)


@given(SEEDS, st.floats(-10.0, 0.0), st.floats(0.0, 6.0))
def test_near_copies_of_plain_vectors_far_from_the_origin(seed, exponent, offset):
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(2, 6))
    h[1] = h[0] + 10**exponent * h[1]
    h += 10**offset
    vectors = Vectors.of(None, h, False)
    one = np.ones(1)
    exact = naive.exact_sq_dist(one, h[0], one, h[1], False)
    actual = vectors[:1].sq_dists(vectors[1:]).item()
    assert actual == pytest.approx(float(exact), rel=1e-9, abs=0.0)


def upper_sq_dists(points, rows, vectors):
    centres = Centres(points, len(vectors.h))
    centres.add(vectors)
    return points.upper_sq_dists(rows, centres, 0)


@settings(deadline=None, max_examples=200)
@given(
    kind=st.sampled_from(KINDS),
    seed=SEEDS,
    C=st.integers(2, 40),
    D=st.integers(1, 300),
    scale=st.floats(-12.0, 12.0),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    bias=st.booleans(),
)
# ⟨a, a'⟩ is below float32's normal numbers here, and ⟨h, h'⟩ makes its error a large one.
@example(kind="confident-50", seed=1, C=2, D=1, scale=6.0, dtype=torch.float32, bias=False)
def test_upper_bounds_are_never_below_the_distance(kind, seed, C, D, scale, dtype, bias):
    pool = make(kind, 30, C, D, seed, dtype)
    features = pool.features * 10**scale
    for points in (gradient_points(pool.logits, features, bias=bias), feature_points(features)):
        vectors = all_of(points)
        upper = upper_sq_dists(points, slice(5, 25), vectors)
        assert (upper >= vectors[5:25].sq_dists(vectors)).all()
        rows = np.array([29, 0, 7])
        assert (upper_sq_dists(points, rows, vectors) >= vectors[rows].sq_dists(vectors)).all()


def test_upper_bounds_are_tight_where_float32_has_digits():
    pool = make("random", 200, 10, 64, seed=0)
    points = gradient_points(pool.logits, pool.features)
    vectors = all_of(points)
    exact = vectors.sq_dists(vectors)
    slack = upper_sq_dists(points, slice(0, 200), vectors) - exact
    assert (slack <= 1e-3 * (vectors.sq_norms[:, None] + vectors.sq_norms)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_point_is_what_it_was_given_to_the_last_digit(dtype):
    pool = make("random", 20, 3, 5, seed=1, dtype=dtype)
    assert (all_of(feature_points(pool.features)).h == pool.features.double().numpy()).all()
