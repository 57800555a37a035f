"""maxherding, uherding and grad-cover: evaluation rows, widths and weights, against the equations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import askance
from askance.errors import InputError
from askance.seeding import Draws
from askance.strategies import GradCover, MaxHerding, UHerding
from askance.strategies.base import sampled_rows
from tests.naive import picking as naive

C, D = 3, 4


def task(N, L, seed):
    """(pool, (labelled, y)) in float64."""
    rng = np.random.default_rng(seed)
    rows = [torch.from_numpy(rng.normal(size=size)) for size in ((N, C), (N, D), (L, C), (L, D))]
    pool, seen = askance.Embedding(*rows[:2]), askance.Embedding(*rows[2:])
    return pool, (seen, torch.from_numpy(rng.integers(C, size=L)))


def probabilities(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def weights_of(kind, pool, labeled):
    p = probabilities(pool.logits.numpy())
    top = np.sort(p, axis=1)
    if kind == "equal":
        return np.ones(len(p))
    if kind == "margin":
        return 1 - (top[:, -1] - top[:, -2])
    H = np.column_stack([pool.features.numpy(), np.ones(len(p))])
    G = np.array(
        [np.outer(a, h).ravel() for a, h in zip(p - np.eye(C)[p.argmax(1)], H, strict=True)]
    )
    if kind == "gradnorm":
        return np.linalg.norm(G, axis=1)
    seen, y = labeled
    q, S = probabilities(seen.logits.numpy()), seen.features.numpy()
    S = np.column_stack([S, np.ones(len(S))])
    mean = np.mean([np.outer(a, h).ravel() for a, h in zip(q - np.eye(C)[y], S, strict=True)], 0)
    return len(y) / (len(y) + 1) * np.linalg.norm(G - mean, axis=1)


def expected(pool, labeled, n, kind, bandwidth):
    """The twin's picks, with all of the pool for evaluation rows."""
    X = naive.unit(pool.features.numpy())
    if labeled is None:
        seen = np.empty((0, D))
        pairs = ((X[:, None] - X) ** 2).sum(2)
        median = np.median(pairs[np.triu_indices(len(X), 1)])
    else:
        seen = labeled[0].features.numpy()
        median = np.median(((X[:, None] - naive.unit(seen)) ** 2).sum(2).min(1))
    sq_width = float(f"{bandwidth * median:.4g}")
    return naive.covering(X, X, weights_of(kind, pool, labeled), sq_width, seen, n)


RULES = [
    (MaxHerding(), "equal", 1.0),
    (MaxHerding(bandwidth=0.3), "equal", 0.3),
    (UHerding(), "margin", 1.0),
    (GradCover(), "discrepancy", 3.0),
    (GradCover(weights="gradnorm", bandwidth=1.0), "gradnorm", 1.0),
    (GradCover(weights="margin"), "margin", 3.0),
    (GradCover(weights="equal"), "equal", 3.0),
]


@pytest.mark.parametrize(("rule", "kind", "bandwidth"), RULES)
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), L=st.integers(1, 12))
def test_picks_are_those_of_the_equation(rule, kind, bandwidth, seed, L):
    pool, labeled = task(50, L, seed)
    picks = askance.select(None, labeled, pool, 12, strategy=rule)
    rows, scores = expected(pool, labeled, 12, kind, bandwidth)
    np.testing.assert_array_equal(picks.indices, rows)
    np.testing.assert_allclose(picks.scores, scores, rtol=1e-8)


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_first_batch_is_that_of_the_equation(seed):
    pool, _ = task(50, 1, seed)
    picks = askance.select(None, None, pool, 12)
    assert picks.strategy == MaxHerding()
    rows, scores = expected(pool, None, 12, "equal", 1.0)
    np.testing.assert_array_equal(picks.indices, rows)
    np.testing.assert_allclose(picks.scores, scores, rtol=1e-5)  # σ² is of float32 distances


@pytest.mark.parametrize("rule", [MaxHerding(), UHerding(), GradCover()])
def test_utilities_are_the_gains_before_each_pick(rule):
    pool, labeled = task(40, 6, 0)
    picks = askance.select(None, labeled, pool, 10, strategy=rule)
    reference = rule.prepare(askance.strategies.Labeled(*labeled, 6), None)
    utilities = rule.utilities(pool, picks.indices, reference)
    assert np.nanargmax(utilities, axis=1).tolist() == picks.indices.tolist()
    np.testing.assert_allclose(np.nanmax(utilities, axis=1), picks.scores, rtol=1e-9)
    assert np.isnan(utilities).sum() == sum(range(10))
    few = type(rule)(sample=20)
    with pytest.raises(InputError, match="raise sample to 40"):
        few.utilities(pool, picks.indices, reference)


def test_evaluation_rows_are_a_uniform_sample():
    pool = askance.Embedding(positions=range(30))
    counts = np.zeros(30)
    for seed in range(2_000):
        rows = sampled_rows(pool, 12, Draws(seed))
        assert len(set(rows.tolist())) == 12
        counts[rows] += 1
    assert stats.chisquare(counts).pvalue > 1e-4


def test_evaluation_rows_depend_on_positions_and_not_on_what_else_there_is():
    every = sampled_rows(askance.Embedding(positions=range(100)), 10, Draws(3))
    some = np.union1d(every, np.arange(0, 100, 3))
    of_some = sampled_rows(askance.Embedding(positions=some), 10, Draws(3))
    assert some[of_some].tolist() == every.tolist()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"bandwidth": 0}, "bandwidth must be a finite number > 0"),
        ({"bandwidth": float("inf")}, "bandwidth must be a finite number > 0"),
        ({"sample": 0}, "sample must be"),
    ],
)
@pytest.mark.parametrize("name", ["maxherding", "uherding", "grad-cover"])
def test_options_that_cannot_be(name, options, told):
    with pytest.raises(InputError, match=told):
        askance.strategies.get(name, **options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"weights": "size"}, "weights must be one of 'discrepancy'"),
        ({"grad": askance.strategies.Grad(parameters="all")}, "gradients of the last layer"),
        ({"grad": askance.strategies.Grad(reference_size=5)}, "leave reference_size=None"),
        (
            {"weights": "margin", "grad": askance.strategies.Grad(loss="multilabel")},
            "for one class a point",
        ),
    ],
)
def test_options_of_grad_cover_that_cannot_be(options, told):
    with pytest.raises(InputError, match=told):
        GradCover(**options)


def test_explanations_of_grad_cover_are_of_its_gradients():
    pool, labeled = task(40, 6, 0)
    why = askance.select(None, labeled, pool, 3, strategy="grad-cover").explain()
    assert all(one.reference_norm is not None for one in why)
    assert why[0].gradient_share + why[0].reference_share + why[0].alignment_share == pytest.approx(
        1
    )
