"""`bald` and `powerbald` against two entropies with many digits."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import askance
from askance import Embedding
from askance.seeding import Draws
from askance.strategies import Bald, PowerBald
from tests.naive import committees as naive
from tests.naive.picking import gumbel_keys


def members(M, N, C, seed, scale=1.0):
    return torch.from_numpy(scale * np.random.default_rng(seed).normal(size=(M, N, C)))


def scores_of(rule, stacked, seed=0):
    pool = Embedding(logits=stacked)
    picks = askance.select(None, None, pool, len(pool), strategy=rule, seed=seed, keep_scores=True)
    return picks.pool_scores


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 6), st.integers(1, 5), st.integers(2, 5), st.integers(0, 2**32 - 1),
    st.sampled_from([1e-6, 1e-4, 1e-2, 0.1, 3.0, 40.0]),
)  # fmt: skip
def test_bald_is_the_entropy_of_the_mean_less_the_mean_entropy(M, N, C, seed, scale):
    stacked = members(M, N, C, seed, scale)
    expected = [naive.bald(point) for point in stacked.transpose(0, 1).tolist()]
    # Of logits that differ by 1e-6, log p keeps nine digits of the difference.
    rtol = max(1e-9, 1e-14 / scale)
    np.testing.assert_allclose(scores_of("bald", stacked), expected, rtol=rtol, atol=1e-20)


def test_members_that_agree_tell_nothing_however_uncertain_they_are():
    agree = torch.zeros(5, 1, 3).double()
    differ = torch.eye(3).double()[torch.tensor([0, 1, 2, 0, 1])][:, None] * 1e4
    scores = scores_of("bald", torch.cat([agree, differ], dim=1))
    assert scores[0] == 0.0
    assert scores[1] == pytest.approx(-(0.4 * np.log(0.4) * 2 + 0.2 * np.log(0.2)))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0, 3.0]))
def test_powerbald_is_its_power_plus_noise(N, seed, beta):
    stacked = members(4, N, 3, seed)
    weights = [naive.bald(point) for point in stacked.transpose(0, 1).tolist()]
    noise = Draws(3).gumbel("powerbald", range(N)).tolist()
    scores = scores_of(PowerBald(beta=beta), stacked, seed=3)
    np.testing.assert_allclose(scores, gumbel_keys(weights, beta, noise), rtol=1e-9, atol=1e-9)


def test_powerbald_draws_in_proportion_to_bald():
    pool = Embedding(logits=members(4, 5, 3, 1))
    law = Bald().score(pool, None, Draws(0)).numpy()
    rule, counts = PowerBald(), np.zeros(5)
    for seed in range(3_000):
        counts[rule.score(pool, None, Draws(seed)).argmax()] += 1
    assert chisquare(counts, 3_000 * law / law.sum()).pvalue > 1e-3
    assert chisquare(counts, 3_000 * law**2 / (law**2).sum()).pvalue < 1e-6
