"""Farthest-first by angle, against 1 − cosine on the materialised gradients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.picking.spread import farthest_by_angle
from tests.naive import picking as naive

SEEDS = st.integers(0, 2**32 - 1)


def factors(M, C, D, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    a = np.array([naive.softmax_residual(scale * z) for z in rng.normal(size=(M, C))])
    return a, rng.normal(size=(M, D))


def matrix(a, h, bias):
    h = np.concatenate([h, np.ones((len(h), 1))], axis=1) if bias else h
    return np.array([np.outer(x, y).ravel() for x, y in zip(a, h, strict=True)])


@settings(deadline=None)
@given(
    st.integers(1, 80),
    st.integers(2, 6),
    st.integers(3, 12),
    SEEDS,
    st.sampled_from([1e-3, 1.0]),
    st.booleans(),
    st.data(),
)
def test_picks_are_those_of_the_materialised_gradients(M, C, D, seed, scale, bias, data):
    a, h = factors(M, C, D, seed, scale)
    n = data.draw(st.one_of(st.just(M), st.integers(1, M)))
    picks = farthest_by_angle(a, h, n, bias)
    rows, scores = naive.widest_angle(matrix(a, h, bias), n)
    assert picks.rows.tolist() == rows.tolist()
    np.testing.assert_allclose(picks.scores, scores, rtol=1e-9, atol=1e-13)


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(2, 6), st.integers(2, 8), SEEDS, st.booleans())
def test_every_pick_of_an_over_confident_network_is_the_widest_left(M, C, D, seed, bias):
    # Residuals become e_k − e_ŷ up to length, and many angles the same up to rounding. So each pick
    # is held against what was left, not against one of several right orders.
    a, h = factors(M, C, D, seed, scale=50.0)
    picks = farthest_by_angle(a, h, M, bias)
    own, widest = naive.widest_angle_along(matrix(a, h, bias), picks.rows)
    np.testing.assert_allclose(own, widest, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(picks.scores, own, rtol=1e-9, atol=1e-13)


def test_the_first_row_is_first_with_the_widest_score_there_is():
    a, h = factors(5, 3, 4, seed=0)
    picks = farthest_by_angle(a, h, 1)
    assert (picks.rows.tolist(), picks.scores.tolist()) == ([0], [2.0])


def test_the_opposite_direction_is_the_farthest():
    a = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    h = np.ones((4, 2))
    picks = farthest_by_angle(a, h, 4, bias=False)
    assert picks.rows.tolist() == [0, 2, 3, 1]
    assert picks.scores == pytest.approx([2.0, 2.0, 1.0, 0.0])


@given(st.integers(2, 60), SEEDS, st.booleans())
def test_lengths_do_not_matter(M, seed, bias):
    # Powers of two, so that no digit changes; [h; 1] would not keep its direction if h were scaled.
    a, h = factors(M, 4, 5, seed)
    rng = np.random.default_rng(seed)
    longer = 2.0 ** rng.integers(-30, 30, size=(M, 1))
    picks, again = farthest_by_angle(a, h, M, bias), farthest_by_angle(a * longer, h, M, bias)
    assert again.rows.tolist() == picks.rows.tolist()
    assert again.scores.tolist() == picks.scores.tolist()


@given(st.integers(1, 30), st.integers(2, 4), SEEDS)
def test_copies_come_last_with_score_zero_lowest_row_first(M, times, seed):
    a, h = factors(M, 4, 5, seed)
    picks = farthest_by_angle(np.tile(a, (times, 1)), np.tile(h, (times, 1)), M * times)
    assert len({row % M for row in picks.rows[:M].tolist()}) == M
    rest = [row for row in range(M * times) if row not in picks.rows[:M]]
    assert picks.rows[M:].tolist() == rest
    assert not picks.scores[M:].any()


@settings(deadline=None)
@given(st.integers(1, 30), SEEDS, st.booleans(), st.data())
def test_a_zero_gradient_has_no_direction_and_comes_last(M, seed, bias, data):
    # The first row too: were it a pick like the others, it would be half a unit from all of them.
    a, h = factors(M, 3, 4, seed)
    zeros = sorted(data.draw(st.sets(st.integers(0, M - 1), min_size=1)))
    a[zeros] = 0.0
    picks = farthest_by_angle(a, h, M, bias)
    rows, scores = naive.widest_angle(matrix(a, h, bias), M)
    assert picks.rows.tolist() == rows.tolist()
    np.testing.assert_allclose(picks.scores, scores, rtol=1e-9, atol=1e-13)
    assert picks.rows[-len(zeros) :].tolist() == zeros
    assert not picks.scores[-len(zeros) :].any()


@given(SEEDS, st.floats(-8.0, 0.0), st.booleans())
def test_small_angles_keep_their_digits(seed, exponent, bias):
    # 1 − cos is half the angle squared: at 1e-8 it is 5e-17, which 1 − ⟨u, u'⟩ rounds to zero.
    rng = np.random.default_rng(seed)
    a, h = np.tile(rng.normal(size=4), (2, 1)), rng.normal(size=(2, 5))
    h[1] = h[0] + 10**exponent * h[1]
    exact = naive.exact_one_minus_cos(*matrix_exact(a, h, bias))
    assert farthest_by_angle(a, h, 2, bias).scores[1] == pytest.approx(exact, rel=1e-6, abs=0.0)


def matrix_exact(a, h, bias):
    """Where `a` is shared the angle is that between the [h; 1], which need no rounding."""
    assert (a[0] == a[1]).all()
    return np.concatenate([h, np.ones((2, 1))], axis=1) if bias else h


@pytest.mark.parametrize("scale", [50.0, 300.0])
def test_every_row_is_picked_once(scale):
    # × 300 makes gradients whose squares are zero in float64: they count as zero.
    a, h = factors(200, 5, 8, seed=1, scale=scale)
    picks = farthest_by_angle(a, h, 200)
    assert sorted(picks.rows.tolist()) == list(range(200))
    assert ((picks.scores >= 0) & (picks.scores <= 2)).all()
