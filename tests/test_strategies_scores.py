"""Every pointwise rule's score against its definition."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import nn

import askance
from askance import Embedding
from askance.errors import InputError
from askance.seeding import Draws
from askance.strategies import EGL, Entropy, Grad, GradNorm, PowerMargin
from tests.gradients import exactly
from tests.gradients.exactly import check
from tests.naive import gradients as naive
from tests.naive.picking import gumbel_keys

quick = settings(deadline=None, max_examples=60)
shapes = {
    "N": st.integers(1, 6),
    "C": st.integers(2, 5),
    "D": st.integers(1, 4),
    "seed": st.integers(0, 2**32 - 1),
    "scale": st.sampled_from([0.0, 1.0, 5.0, 30.0]),
}
dtypes = st.sampled_from([torch.float64, torch.float32])


def drawn(seed, N, C, D, scale, dtype=torch.float64):
    return exactly.drawn(seed, N, C, D, dtype, scale)[0]


def scores_of(rule, pool, labeled=None, **options):
    picks = askance.select(
        None, labeled, pool, len(pool), strategy=rule, keep_scores=True, **options
    )
    order = np.argsort(-picks.pool_scores, kind="stable")
    np.testing.assert_array_equal(picks.scores, picks.pool_scores[order])
    return picks.pool_scores


# --- uncertainty ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "twin"), [("entropy", naive.entropy), ("least-confidence", lambda p: 1 - max(p))]
)
@quick
@given(**shapes, dtype=dtypes)
def test_confident_points_keep_their_digits(rule, twin, seed, N, C, D, scale, dtype):
    pool = drawn(seed, N, C, D, scale, dtype)
    expected = [float(twin(naive.softmax(z))) for z in pool.logits.tolist()]
    tolerance = {torch.float64: 1e-11, torch.float32: 1e-4}[dtype]
    tiny = torch.finfo(dtype).tiny
    np.testing.assert_allclose(scores_of(rule, pool), expected, rtol=tolerance, atol=tiny)


@quick
@given(**shapes)
def test_multilabel_entropy_is_the_sum_of_binary_entropies(seed, N, C, D, scale):
    pool = drawn(seed, N, C, D, scale)
    expected = [
        sum(float(naive.entropy([naive.sigmoid(z), naive.sigmoid(-z)])) for z in row)
        for row in pool.logits.tolist()
    ]
    np.testing.assert_allclose(scores_of(Entropy(loss="multilabel"), pool), expected, rtol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("rule", ["entropy", "least-confidence", "margin", "egl", "gradnorm"])
def test_a_certain_point_scores_finite_and_lowest(rule, dtype):
    """p = 0 exactly in every other class: p·log p must not turn into NaN, nor NaN into a pick."""
    logits = torch.tensor([[0.0, 0.1, 0.0], [0.0, -1000.0, -1000.0], [1.0, 0.0, 0.5]], dtype=dtype)
    scores = scores_of(rule, Embedding(logits, torch.ones(3, 2, dtype=dtype)))
    assert np.isfinite(scores).all()
    assert scores.argmin() == 1


def test_an_undecided_point_has_the_largest_entropy_there_is():
    pool = drawn(0, 50, 4, 1, 1.0)
    flat = Embedding(torch.cat([pool.logits, torch.full((1, 4), 7.0).double()]))
    scores = scores_of("entropy", flat)
    assert scores.argmax() == 50
    assert scores[50] == pytest.approx(np.log(4))


@quick
@given(**shapes)
def test_margin(seed, N, C, D, scale):
    pool = drawn(seed, N, C, D, scale)
    expected = []
    for z in pool.logits.tolist():
        first, second = sorted(naive.softmax(z), reverse=True)[:2]
        expected.append(-float(first - second))
    np.testing.assert_allclose(scores_of("margin", pool), expected, rtol=1e-12, atol=1e-15)


def test_margin_needs_two_classes():
    with pytest.raises(
        InputError, match=r"the model has one output.*or give the model two outputs"
    ):
        scores_of("margin", drawn(0, 3, 1, 1, 1.0))


@quick
@given(**shapes, beta=st.sampled_from([0.5, 1.0, 3.0]))
def test_powermargin_is_the_power_of_one_less_the_margin_plus_noise(seed, N, C, D, scale, beta):
    pool = drawn(seed, N, C, D, scale)
    weights = []
    for z in pool.logits.tolist():
        _, second, *others = sorted(naive.softmax(z), reverse=True)
        weights.append(float(second + second + sum(others)))  # 1 − (p₁ − p₂), as Σ p = 1
    noise = Draws(7).gumbel("powermargin", range(N)).tolist()
    expected = gumbel_keys(weights, beta, noise)
    scores = scores_of(PowerMargin(beta=beta), pool, seed=7)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


def test_powermargin_draws_in_proportion_to_its_score():
    """The first pick of 3,000 seeds, against 1 − margin to the power β."""
    pool = Embedding(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]).double())
    p = torch.softmax(pool.logits, dim=1).amax(dim=1).numpy()
    law = (1 - (2 * p - 1)) ** 2
    rule, counts = PowerMargin(beta=2.0), np.zeros(4)
    for seed in range(3_000):
        counts[rule.score(pool, None, Draws(seed)).argmax()] += 1
    assert chisquare(counts, 3_000 * law / law.sum()).pvalue > 1e-3
    assert chisquare(counts, 3_000 * law**0.5 / (law**0.5).sum()).pvalue < 1e-6


@pytest.mark.parametrize("beta", [-1.0, np.inf, "2"])
def test_powermargin_refuses_a_power_that_is_none(beta):
    with pytest.raises(InputError, match="beta must be a finite number"):
        PowerMargin(beta=beta)


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "most", "tolerance"), [(torch.float64, 30.0, 1e-9), (torch.float32, 10.0, 1e-4)]
)
@quick
@given(**shapes, bias=st.booleans())
def test_egl_is_the_expected_length_over_the_classes(
    dtype, most, tolerance, seed, N, C, D, scale, bias
):
    pool = drawn(seed, N, C, D, min(scale, most), dtype)
    expected = [
        naive.expected_gradient_length(z, h, bias)
        for z, h in zip(pool.logits.tolist(), pool.features.tolist(), strict=True)
    ]
    np.testing.assert_allclose(scores_of(EGL(bias=bias), pool), expected, rtol=tolerance)


@quick
@given(**shapes)
def test_egl_is_autograds_too(seed, N, C, D, scale):
    """A real head, one backward pass for each class."""
    features = drawn(seed, N, C, D, scale).features
    torch.manual_seed(seed % 2**31)
    head = nn.Linear(D, C).double()
    logits = head(features).detach()
    expected = [
        sum(
            float(p) * float(naive.objective_gradient(head, x[None], torch.tensor([y])).norm())
            for y, p in enumerate(torch.softmax(z, 0))
        )
        for x, z in zip(features, logits, strict=True)
    ]
    np.testing.assert_allclose(scores_of("egl", Embedding(logits, features)), expected, rtol=1e-9)


def test_an_expected_length_is_euclidean():
    """Two classes, p = ½: ‖p − e_y‖ = √½, where a sum of absolute values would give 1."""
    pool = Embedding(torch.zeros(1, 2).double(), torch.tensor([[3.0, 4.0]]).double())
    assert scores_of(EGL(bias=False), pool)[0] == pytest.approx(5 * np.sqrt(0.5))


@quick
@given(**shapes, bias=st.booleans(), multilabel=st.booleans(), dtype=dtypes)
def test_gradnorm(seed, N, C, D, scale, bias, multilabel, dtype):
    pool = drawn(seed, N, C, D, min(scale, 10.0), dtype)
    expected = []
    for z, h in zip(pool.logits.tolist(), pool.features.tolist(), strict=True):
        point = (z, h, naive.pseudo_label(z, multilabel))
        expected.append(float(naive.norm(naive.gradient(point, bias))))
    rule = GradNorm(bias=bias, loss="multilabel" if multilabel else "cross-entropy")
    tolerance = {torch.float64: 1e-11, torch.float32: 1e-4}[dtype]
    np.testing.assert_allclose(scores_of(rule, pool), expected, rtol=tolerance)


@quick
@given(**shapes, L=st.integers(1, 5), bias=st.booleans(), dtype=dtypes)
def test_grad(seed, N, C, D, scale, L, bias, dtype):
    both = drawn(seed, N + L, C, D, min(scale, 10.0), dtype)
    pool, labeled = both[:N], both[N:]
    labels = np.random.default_rng(seed).integers(C, size=L)
    scores = torch.from_numpy(scores_of(Grad(bias=bias), pool, (labeled, labels)))
    check(scores, pool, labeled, labels, bias)


def test_grad_is_df_scores():
    both = drawn(0, 30, 4, 3, 2.0)
    labels = torch.arange(10) % 4
    expected = askance.df_scores(both[:20], both[20:], labels)
    np.testing.assert_array_equal(scores_of("grad", both[:20], (both[20:], labels)), expected)


def test_without_a_reference_to_speak_of_grad_ranks_like_gradnorm():
    """A labelled set the model is sure of has ḡ_L ≈ 0: what is left is n/(n+1)·‖g‖."""
    pool = drawn(0, 30, 4, 3, 1.0)
    sure = Embedding(torch.eye(4).double()[:1] * 200, torch.ones(1, 3).double())
    grad = scores_of("grad", pool, (sure, [0]))
    np.testing.assert_allclose(grad, scores_of("gradnorm", pool) / 2, rtol=1e-12)


# --- random ---------------------------------------------------------------------------------------


def test_random_scores_are_one_uniform_draw_a_row():
    pool = drawn(0, 300, 3, 2, 1.0)
    scores = scores_of("random", pool, seed=5)
    assert ((scores > 0) & (scores < 1)).all()
    assert len(np.unique(scores)) == 300
    np.testing.assert_array_equal(scores, scores_of("random", pool, seed=5))
    assert (scores != scores_of("random", pool, seed=6)).all()


def test_random_does_not_look_at_the_points():
    one, other = (scores_of("random", drawn(s, 40, 3, 2, 1.0), seed=5) for s in (0, 1))
    np.testing.assert_array_equal(one, other)


def test_random_picks_are_uniform():
    pool, counts = drawn(0, 20, 2, 1, 1.0), np.zeros(20)
    for seed in range(400):
        counts[askance.select(None, None, pool, 5, strategy="random", seed=seed).indices] += 1
    assert chisquare(counts).pvalue > 0.01


def test_the_twin_is_right_where_the_answer_is_known():
    assert naive.softmax([0.0, 0.0]) == [Decimal("0.5")] * 2
    assert float(naive.entropy([Decimal("0.5")] * 2)) == pytest.approx(np.log(2))
    assert float(naive.norm(naive.gradient(([0.0, 0.0], [2.0], 0), bias=False))) == pytest.approx(
        np.sqrt(2)
    )
