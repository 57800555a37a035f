"""The regression on frozen features: its minimum, classes without labels, strength and temperature."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from askance.encoders.linear import NO_LABEL, Standardiser, fit_linear
from askance.errors import InputError, LabelError, NonFiniteError
from tests.naive import linear as naive


def points(seed, count, width, classes, apart=1.0):
    """(features, labels): every class has a point."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, count - classes)])
    return apart * rng.normal(size=(classes, width))[labels] + rng.normal(
        size=(count, width)
    ), labels


shapes = st.tuples(st.integers(0, 2**31), st.integers(4, 12), st.integers(1, 15), st.integers(2, 4))


@given(shapes, st.sampled_from([0.01, 1.0, 30.0]))
def test_the_slope_is_zero_at_the_fit(shape, strength):
    x, y = points(*shape)
    fit = fit_linear(x, y, shape[3], strength=strength)
    by_weight, by_bias = naive.slope(fit.weight, fit.bias, x, y, strength)
    assert np.abs(by_weight).max() < 2e-4
    assert np.abs(by_bias).max() < 2e-4


@given(shapes, st.integers(0, 2**31))
def test_no_other_weights_are_better(shape, seed):
    x, y = points(*shape)
    fit = fit_linear(x, y, shape[3], strength=1.0)
    least = naive.objective(fit.weight, fit.bias, x, y, 1.0)
    rng = np.random.default_rng(seed)
    for size in (1e-2, 1.0):
        weight = fit.weight + size * rng.normal(size=fit.weight.shape)
        bias = fit.bias + size * rng.normal(size=fit.bias.shape)
        assert naive.objective(weight, bias, x, y, 1.0) > least


@pytest.mark.parametrize(("count", "width"), [(60, 8), (20, 50)])
def test_the_weights_are_scikit_learns(count, width):
    x, y = points(3, count, width, 5)
    fit = fit_linear(x, y, 5, strength=0.3)
    theirs = LogisticRegression(C=0.3, tol=1e-10, max_iter=10_000).fit(x, y)
    np.testing.assert_allclose(fit.weight, theirs.coef_, atol=1e-4)
    logits = theirs.decision_function(x)
    np.testing.assert_allclose(
        log_softmax(fit.logits(x), axis=1), log_softmax(logits, axis=1), atol=2e-3
    )


def test_where_it_begins_does_not_matter():
    x, y = points(5, 40, 12, 4)
    before = fit_linear(x[:25], y[:25], 6, strength=0.5)  # of a class fewer, perhaps
    cold = fit_linear(x, y, 6, strength=0.5)
    warm = fit_linear(x, y, 6, strength=0.5, start=before)
    np.testing.assert_allclose(warm.weight, cold.weight, atol=1e-4)
    np.testing.assert_allclose(warm.bias, cold.bias, atol=1e-3)


def test_calibration_changes_no_weight():
    x, y = points(5, 40, 12, 4)
    with_it, without = (fit_linear(x, y, 4, strength=0.5, calibrated=c) for c in (True, False))
    np.testing.assert_array_equal(with_it.weight, without.weight)
    assert with_it.temperature != without.temperature == 1
    # A strength that is not given is chosen either way.
    assert fit_linear(x, y, 4, calibrated=False).strength == fit_linear(x, y, 4).strength


def test_the_same_points_give_the_same_bits():
    x, y = points(5, 40, 12, 4)
    first, second = fit_linear(x, y, 4), fit_linear(x.copy(), list(y), 4)
    np.testing.assert_array_equal(first.weight, second.weight)
    assert (first.strength, first.temperature) == (second.strength, second.temperature)


def test_classes_without_a_label_are_never_guessed():
    x, y = points(0, 30, 6, 3)
    relabelled = np.array([1, 3, 4])[y]
    fit = fit_linear(x, relabelled, 6, strength=1.0)
    alone = fit_linear(x, y, 3, strength=1.0)
    np.testing.assert_array_equal(fit.logits(x)[:, [1, 3, 4]], alone.logits(x))
    assert (fit.logits(x)[:, [0, 2, 5]] == NO_LABEL).all()
    # In p, and so in a gradient's residual p − e_ŷ, they are as good as nothing.
    assert softmax(fit.logits(x), axis=1)[:, [0, 2, 5]].max() < 1e-9


def test_labels_of_one_class_alone():
    x, _ = points(0, 5, 3, 2)
    fit = fit_linear(x, [2] * 5, 4)
    assert (fit.logits(x).argmax(axis=1) == 2).all()
    assert not fit.cross_validated


def test_strength_is_chosen_where_every_class_has_two_labels():
    x, y = points(1, 80, 10, 4, apart=3.0)
    sure = fit_linear(x, y, 4)
    noise = fit_linear(np.random.default_rng(0).normal(size=x.shape), y, 4)
    assert sure.cross_validated
    assert noise.cross_validated
    assert sure.strength > noise.strength
    once = fit_linear(x[:5], [0, 1, 2, 3, 3], 4)
    assert not once.cross_validated
    assert (once.strength, once.temperature) == (32 / 10, 1.0)


def test_probabilities_for_people_are_as_sure_as_they_are_right():
    """Fitted far too sharply, the logits are overconfident by much; calibrated, they are not."""
    x, y = points(2, 600, 20, 3, apart=0.5)
    fit = fit_linear(x[:120], y[:120], 3, strength=1000.0)
    raw = softmax(fit.logits(x[120:]), axis=1)
    shown = fit.probabilities(x[120:])
    right = raw.argmax(axis=1) == y[120:]
    too_sure = raw.max(axis=1).mean() - right.mean()
    assert too_sure > 0.1
    assert abs(shown.max(axis=1).mean() - right.mean()) < too_sure / 2
    assert fit.temperature > 1.5
    np.testing.assert_array_equal(shown.argmax(axis=1), raw.argmax(axis=1))


@given(st.integers(0, 2**31), st.booleans())
def test_standardised_by_the_pool(seed, constant):
    rng = np.random.default_rng(seed)
    pool = rng.normal(3, 7, size=(30, 4)).astype(np.float32)
    if constant:
        pool[:, 2] = 1e6 + 0.1
    z = Standardiser.of(pool)(pool)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(z.std(axis=0)[[0, 1, 3]], 1, rtol=1e-5)
    assert not constant or np.abs(z[:, 2]).max() == 0


def test_as_a_network_its_last_layer_is_the_regression():
    from askance.embedding.forward import embed

    x, y = points(4, 50, 9, 4)
    raw = (100 + 5 * x).astype(np.float32)
    standardiser = Standardiser.of(raw)
    z = standardiser(raw)
    fit = fit_linear(z, y, 4, strength=1.0)
    rows = embed(fit.module(standardiser), torch.from_numpy(raw))
    np.testing.assert_allclose(rows.features, z, atol=1e-3)
    np.testing.assert_allclose(rows.logits, fit.logits(z), atol=1e-3)


def test_what_cannot_be_fitted_is_refused():
    x, y = points(0, 6, 3, 2)
    with pytest.raises(InputError, match=r"features \(L, D\) and labels \(L,\)"):
        fit_linear(x, y[:3], 2)
    with pytest.raises(InputError, match="at least one point"):
        fit_linear(x[:0], y[:0], 2)
    with pytest.raises(LabelError, match="labels must be 0 to 1, found 0 to 7"):
        fit_linear(x, [0, 1, 0, 1, 0, 7], 2)
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        fit_linear(np.where(x == x[0, 0], np.nan, x), y, 2)
    with pytest.raises(InputError, match="strength must be a number above 0"):
        fit_linear(x, y, 2, strength=0.0)
