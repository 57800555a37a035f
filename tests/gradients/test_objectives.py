"""s(x) of several labels a point, and of objectives that are no mean over points."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import askance
from askance import Embedding
from askance.gradients.discrepancy import last_layer_reference
from askance.strategies import Grad
from tests.gradients.exactly import check, drawn, pools, quick, shapes
from tests.naive import gradients as naive

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
