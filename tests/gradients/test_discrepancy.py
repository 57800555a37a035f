"""s(x) = ‖∇f(D_L ∪ {x̂}) − ∇f({x̂})‖, every digit of it, against exact arithmetic and autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from askance import Embedding, df_scores
from askance.errors import InputError, LabelError, NonFiniteError
from askance.gradients.discrepancy import df, df_parts, last_layer_reference
from askance.gradients.last_layer import mean_gradient
from tests.gradients.exactly import check, drawn, dtypes, points, pools, quick, shapes
from tests.naive import gradients as naive


@quick
@given(**shapes, scale=st.sampled_from([1.0, 5.0, 20.0]))
def test_df_scores_are_exact(seed, N, L, C, D, bias, dtype, scale):
    """From undecided points to 1 − p_ŷ far below the spacing of numbers near 1."""
    both, labels = drawn(seed, N + L, C, D, dtype, scale)
    pool, labeled = both[:N], both[N:]
    check(df_scores(pool, labeled, labels[N:], bias=bias), pool, labeled, labels[N:], bias)


@quick
@given(**shapes, margin=st.floats(20.0, 40.0))
def test_when_every_point_is_confident_the_scores_are_still_exact(
    seed, N, L, C, D, bias, dtype, margin
):
    """A converged model: every gradient is around e⁻ᵐᵃʳᵍⁱⁿ, and so is the error that is allowed."""
    both, _ = drawn(seed, N + L, C, D, dtype)
    sure = both.logits.argmax(1)
    logits = both.logits + margin * F.one_hot(sure, C).to(dtype)
    both = Embedding(logits, both.features)
    pool, labeled = both[:N], both[N:]
    check(df_scores(pool, labeled, sure[N:], bias=bias), pool, labeled, sure[N:], bias)


@quick
@given(**pools, **dtypes, margin=st.floats(0.0, 35.0))
def test_a_point_that_is_the_labelled_set_scores_zero(seed, N, C, D, bias, dtype, margin):
    """The labelled point stands in the pool with its own label: g = ḡ_L, and √ of it is no NaN."""
    both, _ = drawn(seed, N, C, D, dtype)
    sure = both.logits.argmax(1)
    pool = Embedding(both.logits + margin * F.one_hot(sure, C).to(dtype), both.features)
    labeled, label = pool[:1], pool.logits[:1].argmax(1)
    scores = df_scores(pool, labeled, label, bias=bias)
    check(scores, pool, labeled, label, bias)
    _, scale = naive.df_score(
        pool.logits[0].tolist(), pool.features[0].tolist(), points(labeled, label)
    )
    assert 0 <= float(scores[0]) <= 1e-7 * scale


@quick
@given(**pools, **dtypes, distance=st.floats(-7.0, -1.0), large=st.sampled_from([1.0, 100.0]))
def test_near_copies_of_the_labelled_set_keep_their_order_of_magnitude(
    seed, N, C, D, bias, dtype, distance, large
):
    """Where ‖g‖² − 2⟨g,ḡ⟩ + ‖ḡ‖² cancels, at every distance from a copy."""
    one, label = drawn(seed, 1, C, D, dtype)
    label = one.logits.argmax(1)
    noise, _ = drawn(seed + 1, N, C, D, dtype)
    pool = Embedding(
        one.logits + noise.logits * 10**distance,
        (one.features + noise.features * 10**distance) * large,
    )
    labeled = Embedding(one.logits, one.features * large)
    check(df_scores(pool, labeled, label, bias=bias), pool, labeled, label, bias)


def test_a_pool_of_nothing_but_copies_is_finite_and_ties():
    one, _ = drawn(0, 1, 5, 64, torch.float32)
    copies = Embedding(one.logits.expand(1000, -1), one.features.expand(1000, -1))
    scores = df_scores(copies, one, one.logits.argmax(1))
    assert torch.isfinite(scores).all()
    assert scores.min() == scores.max() >= 0


def test_wide_features_lose_no_more_digits():
    """As wide as a real penultimate layer, confident and undecided points together."""
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(size=(20, 10)) * rng.uniform(0, 15, size=(20, 1))).float()
    features = torch.from_numpy(np.abs(rng.normal(size=(20, 512)))).float()
    both, labels = Embedding(logits, features), torch.from_numpy(rng.integers(10, size=20))
    pool, labeled = both[:6], both[6:]
    check(df_scores(pool, labeled, labels[6:]), pool, labeled, labels[6:], True)


@quick
@given(**pools, L=st.integers(1, 5))
def test_df_scores_are_two_backward_passes_through_a_real_head(seed, N, L, C, D, bias):
    """∇ of the mean loss over D_L ∪ {x̂}, minus ∇ at {x̂}: no factor, no shortcut."""
    inputs, labels = drawn(seed, N + L, C, D, torch.float64)
    torch.manual_seed(seed % 2**31)
    head = nn.Linear(D, C, bias=bias).double()
    both = Embedding(head(inputs.features).detach(), inputs.features)
    expected, scale = naive.autograd_df_scores(
        head, both.features[N:], labels[N:], both.features[:N]
    )
    scores = df_scores(both[:N], both[N:], labels[N:], bias=bias)
    assert ((scores - expected).abs() <= 1e-9 * scale).all()


def test_the_factor_is_n_over_n_plus_one():
    both, labels = drawn(1, 10, 3, 4, torch.float64)
    pool, labeled, labels = both[:6], both[6:], labels[6:]
    mean = mean_gradient(labeled.logits, labeled.features, labels)
    pseudo = pool.logits.argmax(1)
    distances = torch.stack(
        [
            (
                mean
                - mean_gradient(pool.logits[i : i + 1], pool.features[i : i + 1], pseudo[i : i + 1])
            ).norm()
            for i in range(6)
        ]
    )
    torch.testing.assert_close(df_scores(pool, labeled, labels), distances * 4 / 5)


def test_true_labels_make_the_reference_pseudo_labels_make_the_point():
    both, _ = drawn(0, 8, 3, 2, torch.float64)
    pool, labeled = both[:4], both[4:]
    one, other = (df_scores(pool, labeled, torch.tensor(y)) for y in ([0, 0, 0, 0], [1, 1, 1, 1]))
    assert (one - other).abs().min() > 1e-3


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
    ],
)
def test_the_dtype_of_the_scores(dtype, expected):
    both, labels = drawn(0, 8, 3, 2, dtype)
    scores = df_scores(both[:5], both[5:], labels[5:])
    assert scores.dtype == expected
    exact = df_scores(
        *(Embedding(part.logits.double(), part.features.double()) for part in (both[:5], both[5:])),
        labels[5:],
    )
    torch.testing.assert_close(scores.double(), exact, rtol=1e-4, atol=1e-6)


def test_logits_and_features_of_different_dtypes_are_worked_on_in_double():
    both, labels = drawn(0, 8, 3, 2, torch.float32)
    mixed = Embedding(both.logits, both.features.double())
    scores = df_scores(mixed[:5], both[5:], labels[5:])
    check(scores.float(), both[:5], both[5:], labels[5:], True)


def test_nothing_given_is_changed():
    both, labels = drawn(0, 8, 3, 2, torch.float32)
    kept = both.logits.clone(), both.features.clone(), labels.clone()
    df_scores(both[:5], both[5:], labels[5:])
    assert all(
        torch.equal(a, b) for a, b in zip(kept, (both.logits, both.features, labels), strict=True)
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cancelling", [0.0, 0.9, 0.995, 1.0])
def test_the_reference_of_a_large_float32_set_keeps_the_score_exact(bias, cancelling):
    """A large set's sum is made in float32 unless its terms cancel too far; either way s(x) holds."""
    generator = torch.Generator().manual_seed(0)
    L, C, D = 4000, 20, 300
    features = torch.randn(L // 2, D, generator=generator).relu().repeat(2, 1)
    # The second half answers two classes the other way round: residuals that cancel where logits agree.
    labels = torch.arange(L) % 2
    labels[L // 2 :] = 1 - labels[: L // 2]
    logits = torch.randn(L, C, generator=generator) * (1 - cancelling)
    logits[:, 2:] -= 20
    labeled = Embedding(logits, features)
    pool = Embedding(torch.randn(50, C, generator=generator), features[:50])
    pool.logits[:, 0] += torch.linspace(0, 15, 50)
    ours = df_scores(pool, labeled, labels, bias=bias)
    wide = [Embedding(e.logits.double(), e.features.double()) for e in (pool, labeled)]
    exact = df_scores(*wide, labels, bias=bias)
    norms = df_parts(wide[0].logits, wide[0].features, last_layer_reference(wide[1], labels))
    scale = norms.sq_norms.sqrt() + last_layer_reference(wide[1], labels).norm
    assert ours.dtype == torch.float32
    assert bool(((ours - exact).abs() <= 2e-5 * scale).all())


# --- what is refused ------------------------------------------------------------------------------


def test_df_scores_says_what_is_wrong():
    both, labels = drawn(0, 8, 3, 2, torch.float32)
    pool, labeled, labels = both[:5], both[5:], labels[5:]
    with pytest.raises(InputError, match=r"pool points must be an Embedding, .* got a Tensor"):
        df_scores(pool.features, labeled, labels)
    with pytest.raises(InputError, match=r"labelled points must be an Embedding, .* got a Tensor"):
        df_scores(pool, labeled.features, labels)
    with pytest.raises(InputError, match="the pool Embedding has no features"):
        df_scores(Embedding(pool.logits), labeled, labels)
    with pytest.raises(InputError, match="the labelled Embedding has no logits"):
        df_scores(pool, Embedding(features=labeled.features), labels)
    with pytest.raises(
        InputError, match="logits must have the same number of columns, got 2 and 3"
    ):
        df_scores(Embedding(pool.logits[:, :2], pool.features), labeled, labels)
    with pytest.raises(LabelError, match=r"labels must be \(3,\) class indices"):
        df_scores(pool, labeled, labels[:2])
    with pytest.raises(
        LabelError, match=r"between 0 and 2 .*; 2 are not, the first is 3 at labelled point 1"
    ):
        df_scores(pool, labeled, torch.tensor([0, 3, -1]))
    with pytest.raises(
        LabelError, match=r"got shape \(3, 3\); for several labels a point use loss="
    ):
        df_scores(pool, labeled, torch.eye(3))
    with pytest.raises(LabelError, match="at least one point, it is empty"):
        df_scores(pool, labeled[:0], labels[:0])
    for matrix, name in ((0, "logits"), (1, "features")):
        for which, part in ((0, "pool"), (1, "labelled")):
            sets = [[e.logits.clone(), e.features.clone()] for e in (pool, labeled)]
            sets[which][matrix][[1, 2], 0] = float("nan")
            with pytest.raises(
                NonFiniteError, match=f"2 of . {part} rows have NaN.*{name}.* row 1"
            ):
                df_scores(*(Embedding(*parts) for parts in sets), labels)


def test_probabilities_are_no_logits():
    pool, _ = drawn(0, 20, 3, 4, torch.float32)
    seen, labels = drawn(1, 5, 3, 4, torch.float32)

    def likely(one):
        return Embedding(one.logits.softmax(dim=1), one.features)

    for sides, what in (
        ((likely(pool), seen), "the pool"),
        ((pool, likely(seen)), "the labelled set"),
    ):
        with pytest.raises(InputError, match=f"the logits of {what} look like probabilities"):
            df_scores(*sides, labels)
    with pytest.raises(InputError, match="the logits of the set T look like probabilities"):
        df((seen, labels), (likely(seen), labels))
    # An objective of one's own may be one of probabilities.
    df((seen, labels), (likely(seen), labels), loss=lambda z, y: z[:, 0].mean())
