"""Rank-one factors a ⊗ [h; 1] against gradients taken of a real head, and of exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from askance import Embedding
from askance.errors import InputError, LabelError, NonFiniteError
from askance.gradients.discrepancy import df, last_layer_reference
from askance.gradients.last_layer import (
    gradient_matrix,
    mean_gradient,
    pseudo_labels,
    pseudo_residuals,
    residuals,
    sq_norms,
)
from tests.naive import gradients as naive

quick = settings(deadline=None, max_examples=100)
shapes = {
    "N": st.integers(1, 6),
    "C": st.integers(2, 5),
    "D": st.integers(1, 4),
    "seed": st.integers(0, 2**32 - 1),
}


def drawn(seed, N, C, D, scale=1.0, dtype=torch.float64):
    """Logits (N, C), features (N, D) and classes (N,)."""
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(N, C)) * scale).to(dtype)
    features = torch.from_numpy(rng.normal(size=(N, D)) * 3).to(dtype)
    return logits, features, torch.from_numpy(rng.integers(C, size=N))


def headed(seed, N, C, D):
    """A real head, what it is given, what it gives, and classes."""
    logits, features, labels = drawn(seed, N, C, D)
    head = nn.Linear(D, C).double()
    with torch.no_grad():
        head.weight.copy_(logits.new_tensor(np.random.default_rng(seed + 1).normal(size=(C, D))))
        head.bias.copy_(logits[0])
    return head, features, head(features).detach(), labels


def matrix(flat, C, bias):
    """A flat (weight, bias) gradient as (C, D + 1), or (C, D) without the bias."""
    weight, column = flat[:-C].reshape(C, -1), flat[-C:, None]
    return torch.cat([weight, column], dim=1) if bias else weight


def multi_hot(seed, N, C):
    return torch.from_numpy(np.random.default_rng(seed + 2).integers(2, size=(N, C)))


# --- residuals ------------------------------------------------------------------------------------


@quick
@given(**shapes, scale=st.sampled_from([1.0, 10.0, 30.0]))
def test_residuals_keep_every_digit_of_confident_points(seed, N, C, D, scale):
    logits, _, labels = drawn(seed, N, C, D, scale)
    for loss, given_labels in (
        ("cross-entropy", labels),
        ("cross-entropy", pseudo_labels(logits)),
        ("multilabel", multi_hot(seed, N, C)),
    ):
        a = residuals(logits, given_labels, loss)
        for row, z, y in zip(a.tolist(), logits.tolist(), given_labels.tolist(), strict=True):
            np.testing.assert_allclose(row, [float(v) for v in naive.residual(z, y)], rtol=1e-11)


def test_a_confident_point_is_not_certain():
    """1 − p_ŷ = e⁻³⁰ is below the spacing of numbers near 1, and is still there."""
    a = pseudo_residuals(torch.tensor([[30.0, 0.0]], dtype=torch.float32))
    torch.testing.assert_close(a, torch.tensor([[-9.357623e-14, 9.357623e-14]]), rtol=1e-5, atol=0)


def test_residuals_of_one_point_sum_to_zero():
    logits, _, labels = drawn(0, 50, 5, 2, scale=5.0)
    torch.testing.assert_close(residuals(logits, labels).sum(1), torch.zeros(50).double())


def test_logits_far_apart_or_far_from_zero_do_not_overflow():
    logits = torch.tensor([[1e4, -1e4, 0.0], [1e30, 1e30, -1e30]], dtype=torch.float64)
    expected = torch.tensor([[0.0, 0.0, 0.0], [-0.5, 0.5, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(pseudo_residuals(logits), expected)


def test_the_logits_are_left_alone():
    logits, _, labels = drawn(0, 4, 3, 2)
    kept = logits.clone()
    residuals(logits, labels)
    pseudo_residuals(logits, "multilabel")
    assert torch.equal(logits, kept)


def test_half_precision_is_worked_on_in_single():
    logits = torch.tensor([[4.0, 1.0, 0.0]], dtype=torch.float16)
    a = pseudo_residuals(logits)
    assert a.dtype == torch.float32
    torch.testing.assert_close(a, pseudo_residuals(logits.float()))


def test_pseudo_labels_are_the_models_answer():
    logits = torch.tensor([[0.0, 2.0, 1.0], [1.0, 1.0, 0.0], [-1.0, -2.0, 0.0]])
    assert pseudo_labels(logits).tolist() == [1, 0, 2], "ties go to the lowest class"
    assert pseudo_labels(logits, "multilabel").tolist() == [[0, 1, 1], [1, 1, 0], [0, 0, 0]]


# --- norms, products, means -----------------------------------------------------------------------


@quick
@given(**shapes, bias=st.booleans())
def test_norms_and_sums_are_those_of_the_gradients(seed, N, C, D, bias):
    logits, features, labels = drawn(seed, N, C, D, scale=3.0)
    a = residuals(logits, labels)
    points = zip(logits.tolist(), features.tolist(), labels.tolist(), strict=True)
    g = [naive.gradient(point, bias) for point in points]
    squares = [float(naive.dot(u, u)) for u in g]
    np.testing.assert_allclose(sq_norms(a, features, bias), squares, rtol=1e-11)
    total = np.sum(np.array(g, dtype=float), axis=0).reshape(C, -1)
    np.testing.assert_allclose(gradient_matrix(a, features, bias), total, rtol=1e-9, atol=1e-12)


def soft_maximum(logits, labels):
    """log of the mean of the exponentials of the losses: the worst points weigh most."""
    return F.cross_entropy(logits, labels, reduction="none").exp().mean().log()


# Of each loss, the objective that autograd differentiates; the multi-label one sums over classes.
LOSSES = [
    ("cross-entropy", F.cross_entropy),
    ("multilabel", naive.summed_bce),
    (soft_maximum, soft_maximum),
]


@pytest.mark.parametrize(("loss", "objective"), LOSSES)
@quick
@given(**shapes, bias=st.booleans())
def test_mean_gradient_is_autograds_of_a_real_head(loss, objective, seed, N, C, D, bias):
    head, features, logits, labels = headed(seed, N, C, D)
    labels = multi_hot(seed, N, C) if loss == "multilabel" else labels
    expected = naive.objective_gradient(head, features, labels, objective)
    mean = mean_gradient(logits, features, labels, bias=bias, loss=loss)
    torch.testing.assert_close(mean, matrix(expected, C, bias), rtol=1e-9, atol=1e-12)


def test_the_mean_is_taken_over_points_not_over_batches():
    """A gradient averaged over unequal mini-batches would weigh the last, smaller one too much."""
    logits, features, labels = drawn(0, 7, 3, 2)
    parts = [slice(0, 5), slice(5, 7)]
    weighted = sum(
        mean_gradient(logits[p], features[p], labels[p]) * (p.stop - p.start) / 7 for p in parts
    )
    torch.testing.assert_close(mean_gradient(logits, features, labels), weighted)


# --- DF(S, T) -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "objective"), LOSSES)
@quick
@given(**shapes, M=st.integers(1, 6), bias=st.booleans())
def test_df_is_the_difference_of_two_gradients(loss, objective, seed, N, C, D, M, bias):
    head, features, logits, labels = headed(seed, N + M, C, D)
    labels = multi_hot(seed, N + M, C) if loss == "multilabel" else labels
    S, T = (
        (Embedding(logits[part], features[part]), labels[part])
        for part in (slice(0, N), slice(N, None))
    )
    expected = naive.objective_gradient(head, features[:N], labels[:N], objective)
    expected = expected - naive.objective_gradient(head, features[N:], labels[N:], objective)
    difference = df(S, T, bias=bias, loss=loss)
    torch.testing.assert_close(difference, matrix(expected, C, bias), rtol=1e-9, atol=1e-12)


def test_df_is_antisymmetric_and_zero_on_equal_sets():
    logits, features, labels = drawn(0, 6, 3, 2)
    S, T = (
        (Embedding(logits[:4], features[:4]), labels[:4]),
        (Embedding(logits[4:], features[4:]), labels[4:]),
    )
    torch.testing.assert_close(df(S, T), -df(T, S))
    assert df(S, S).norm() == 0


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float64, bool])
def test_df_takes_labels_of_any_whole_number_type(dtype):
    logits, features, _ = drawn(0, 2, 2, 2)
    S = Embedding(logits, features)
    T = (Embedding(logits[:1], features[:1]), [0])
    expected = df((S, torch.tensor([1, 0])), T)
    torch.testing.assert_close(df((S, np.array([1, 0], dtype=dtype)), T), expected)


def test_df_refuses_what_it_cannot_compare():
    logits, features, labels = drawn(0, 4, 3, 2)
    S = (Embedding(logits, features), labels)
    with pytest.raises(InputError, match=r"the S points must be an Embedding, .* got a Tensor"):
        df((features, labels), S)
    with pytest.raises(InputError, match="the T Embedding has no features"):
        df(S, (Embedding(logits), labels))
    with pytest.raises(
        InputError, match="features must have the same number of columns, got 2 and 1"
    ):
        df(S, (Embedding(logits, features[:, :1]), labels))
    with pytest.raises(
        LabelError, match=r"labels must be between 0 and 2 .* the first is 7 at labelled"
    ):
        df(S, (S[0], torch.tensor([0, 7, 1, 2])))
    with pytest.raises(LabelError, match=r"labels must be \(4,\) class indices.* got shape \(3,\)"):
        df(S, (S[0], labels[:3]))
    with pytest.raises(LabelError, match="at least one point, it is empty"):
        df(S, (S[0][:0], labels[:0]))
    bad = features.clone()
    bad[0] = float("nan")
    with pytest.raises(NonFiniteError, match=r"1 of 4 T rows have NaN .* the first is row 0"):
        df(S, (Embedding(logits, bad), labels))


def test_an_objective_must_give_one_number():
    logits, features, labels = drawn(0, 4, 3, 2)
    with pytest.raises(InputError, match=r"one number for a set, it gave shape \(4,\)"):
        mean_gradient(
            logits, features, labels, loss=lambda z, y: F.cross_entropy(z, y, reduction="none")
        )


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.float32])
def test_the_reference_takes_labels_of_any_whole_number_type(dtype):
    logits, features, labels = drawn(0, 4, 3, 2)
    labeled = Embedding(logits, features)
    expected = last_layer_reference(labeled, labels)
    torch.testing.assert_close(last_layer_reference(labeled, labels.to(dtype)).mean, expected.mean)
