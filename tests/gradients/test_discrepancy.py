"""s(x) = ‖∇f(D_L ∪ {x̂}) − ∇f({x̂})‖, every digit of it, against exact arithmetic and autograd."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import nn

import askance
from askance import Embedding, df_scores
from askance.errors import InputError, LabelError, NonFiniteError
from askance.gradients import last_layer_reference, mean_gradient
from askance.gradients.discrepancy import df_parts
from askance.seeding import Draws
from askance.strategies import Grad
from tests.naive import gradients as naive

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}

quick = settings(deadline=None, max_examples=200)
pools = {
    "N": st.integers(1, 5),
    "C": st.integers(2, 4),
    "D": st.integers(1, 4),
    "seed": st.integers(0, 2**32 - 1),
    "bias": st.booleans(),
}
dtypes = {"dtype": st.sampled_from([torch.float64, torch.float32])}
shapes = pools | dtypes | {"L": st.integers(1, 5)}


def drawn(seed, rows, C, D, dtype, scale=1.0):
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(rows, C)) * scale).to(dtype)
    features = torch.from_numpy(rng.normal(size=(rows, D)) * 2).to(dtype)
    return Embedding(logits, features), torch.from_numpy(rng.integers(C, size=rows))


def points(embedding, labels):
    return list(
        zip(embedding.logits.tolist(), embedding.features.tolist(), labels.tolist(), strict=True)
    )


def check(scores, pool, labeled, labels, bias, multilabel=False):
    """Every score within the tolerance of its dtype times ‖g‖ + ‖ḡ_L‖ of the exact one."""
    tolerance = TOLERANCE[pool.logits.dtype]
    assert torch.isfinite(scores).all()
    assert (scores >= 0).all()
    seen = points(labeled, labels)
    rows = zip(scores.tolist(), pool.logits.tolist(), pool.features.tolist(), strict=True)
    for score, z, h in rows:
        expected, scale = naive.df_score(z, h, seen, bias, multilabel)
        assert abs(score - expected) <= tolerance * scale


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


# --- multi-label ----------------------------------------------------------------------------------


@quick
@given(**shapes, scale=st.sampled_from([1.0, 5.0, 30.0]))
def test_multilabel_scores_are_exact(seed, N, L, C, D, bias, dtype, scale):
    both, _ = drawn(seed, N + L, C, D, dtype, scale)
    labels = torch.from_numpy(np.random.default_rng(seed).integers(2, size=(L, C)))
    pool, labeled = both[:N], both[N:]
    reference = last_layer_reference(labeled, labels, bias=bias, loss="multilabel")
    scores = reference.scores(next(pool.blocks(N)))
    check(scores, pool, labeled, labels, bias, multilabel=True)
    picks = askance.select(
        None,
        (labeled, labels),
        pool,
        N,
        strategy=Grad(loss="multilabel", bias=bias),
        keep_scores=True,
    )
    np.testing.assert_allclose(picks.pool_scores, scores.double(), rtol=1e-6)


def test_a_multilabel_copy_scores_zero():
    both, _ = drawn(0, 3, 4, 3, torch.float32, scale=8.0)
    reference = last_layer_reference(both[:1], (both.logits[:1] > 0).long(), loss="multilabel")
    scores = reference.scores(next(both.blocks(3)))
    assert 0 <= scores[0] < 1e-6 < scores[1:].min()


# --- objectives that are no mean ------------------------------------------------------------------


def soft_maximum(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none").exp().mean().log()


def batch_focal(logits, labels):
    """Focal weights normalised over the set: a point's weight depends on the others."""
    losses = F.cross_entropy(logits, labels, reduction="none")
    weights = (1 - (-losses).exp()).square()
    return (weights * losses).sum() / weights.sum()


def ranking(logits, labels):
    """A smooth one-against-rest AUC: every pair of a positive and a negative point."""
    own = F.one_hot(labels, logits.shape[1]).bool()
    positives, negatives = logits[own], logits[~own]
    return torch.sigmoid(negatives[None, :] - positives[:, None]).mean()


def weighted(logits, labels):
    """Class weights: torch divides by the sum of the weights, not by the number of points."""
    weights = torch.arange(1.0, logits.shape[1] + 1, dtype=logits.dtype)
    return F.cross_entropy(logits, labels, weight=weights)


@pytest.mark.parametrize("objective", [soft_maximum, batch_focal, ranking, weighted])
@settings(deadline=None, max_examples=15)
@given(**pools, L=st.integers(1, 5))
def test_any_objective_is_scored_from_its_two_gradients(objective, seed, N, L, C, D, bias):
    inputs, labels = drawn(seed, N + L, C, D, torch.float64)
    torch.manual_seed(seed % 2**31)
    head = nn.Linear(D, C, bias=bias).double()
    both = Embedding(head(inputs.features).detach(), inputs.features)
    expected, scale = naive.autograd_df_scores(
        head, both.features[N:], labels[N:], both.features[:N], objective
    )
    rule = Grad(loss=objective, bias=bias)
    picks = askance.select(
        None, (both[N:], labels[N:]), both[:N], N, strategy=rule, keep_scores=True
    )
    assert (np.abs(picks.pool_scores - expected.numpy()) <= 1e-9 * scale.numpy() + 1e-15).all()


def test_a_mean_loss_given_as_an_objective_scores_the_same():
    both, labels = drawn(4, 12, 3, 2, torch.float64)
    labeled = both[7:], labels[7:]
    rules = Grad(), Grad(loss=F.cross_entropy)
    named, called = (
        askance.select(None, labeled, both[:7], 7, strategy=rule, keep_scores=True)
        for rule in rules
    )
    np.testing.assert_allclose(called.pool_scores, named.pool_scores, rtol=1e-9)


def test_an_objective_of_several_labels_a_point():
    def objective(logits, labels):
        return naive.summed_bce(logits, labels).exp()

    both, _ = drawn(4, 12, 3, 2, torch.float64)
    labels = torch.from_numpy(np.random.default_rng(0).integers(2, size=(5, 3)))
    head = nn.Linear(2, 3).double()
    both = Embedding(head(both.features).detach(), both.features)
    expected, _ = naive.autograd_df_scores(
        head, both.features[7:], labels, both.features[:7], objective
    )
    rule = Grad(loss=objective)
    picks = askance.select(None, (both[7:], labels), both[:7], 7, strategy=rule, keep_scores=True)
    np.testing.assert_allclose(picks.pool_scores, expected, rtol=1e-9)


# --- a sampled reference --------------------------------------------------------------------------


def select_with(rule, both, labels, L, **options):
    pool, labeled = both[:-L], (both[-L:], labels[-L:])
    return askance.select(
        None, labeled, pool, len(pool), strategy=rule, keep_scores=True, **options
    )


@quick
@given(**shapes, m=st.integers(1, 8))
def test_a_sampled_reference_is_the_mean_of_m_points_for_a_set_of_n(
    seed, N, L, C, D, bias, dtype, m
):
    """Some m-subset gives the scores, with the factor n/(n+1) of the whole labelled set."""
    both, labels = drawn(seed, N + L, C, D, dtype)
    picks = select_with(Grad(reference_size=m, bias=bias), both, labels, L, seed=seed)
    pool, labeled = both[:N], both[N:]
    best = np.inf
    for rows in combinations(range(L), min(m, L)):
        some = last_layer_reference(labeled[list(rows)], labels[N:][list(rows)], bias=bias)
        parts = df_parts(pool.logits.double(), pool.features.double(), some)
        expected = parts.sq_dists.sqrt() * L / (L + 1)
        best = min(best, float((torch.from_numpy(picks.pool_scores) - expected).abs().max()))
    assert best < TOLERANCE[dtype]


def test_the_same_seed_samples_the_same_reference_another_seed_another():
    both, labels = drawn(0, 60, 3, 4, torch.float64)
    rule = Grad(reference_size=5)
    first, again, other = (
        select_with(rule, both, labels, 50, seed=s).pool_scores for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


@pytest.mark.parametrize("m", [7, 8, 1000])
def test_a_reference_size_of_the_labelled_set_or_more_is_the_full_pass(m):
    both, labels = drawn(0, 12, 3, 4, torch.float64)
    full, sampled = (
        select_with(rule, both, labels, 7).pool_scores for rule in (Grad(), Grad(reference_size=m))
    )
    np.testing.assert_array_equal(full, sampled)


def test_every_labelled_point_is_as_likely_to_be_sampled():
    counts = np.zeros(10)
    for seed in range(400):
        rows = Grad(reference_size=3).reference_points(10, Draws(seed))
        assert len(set(rows.tolist())) == 3
        counts[rows] += 1
    assert chisquare(counts).pvalue > 0.01


# --- what is refused ------------------------------------------------------------------------------


def test_df_scores_says_what_is_wrong():
    both, labels = drawn(0, 8, 3, 2, torch.float32)
    pool, labeled, labels = both[:5], both[5:], labels[5:]
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


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cancelling", [0.0, 0.9, 0.995, 1.0])
def test_the_reference_of_a_large_float32_set_keeps_the_score_exact(bias, cancelling):
    """A large set's sum is made in float32 unless its terms cancel too far; either way s(x) holds."""
    generator = torch.Generator().manual_seed(0)
    L, C, D = 4000, 20, 300
    features = torch.randn(L // 2, D, generator=generator).relu().repeat(2, 1)
    # The second half answers two classes the other way round: slopes that cancel where logits agree.
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
