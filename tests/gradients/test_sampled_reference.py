"""s(x) against a sample of the labelled set."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import askance
from askance.gradients.discrepancy import df_parts, last_layer_reference
from askance.seeding import Draws
from askance.strategies import Grad
from tests.gradients.exactly import TOLERANCE, drawn, quick, shapes


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
