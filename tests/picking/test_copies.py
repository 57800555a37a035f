"""Copies of picks: all of them, nothing else, and no search without end."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.picking import feature_points, gradient_points, kmeanspp
from askance.picking.copies import Copies
from tests.naive import picking as naive
from tests.picking.pools import KINDS, assert_same_d2_picks, make


@settings(deadline=None)
@given(st.sampled_from(KINDS), st.integers(1, 60), st.integers(0, 2**32 - 1), st.booleans())
def test_copies_are_the_rows_with_the_same_numbers(kind, N, seed, gradients):
    pool = make(kind, N, 3, 4, seed)
    z, h = pool.logits.numpy(), pool.features.numpy()
    if gradients:
        points, numbers = gradient_points(pool.logits, pool.features), np.hstack([z, h])
    else:
        points, numbers = feature_points(pool.features), h
    copies = Copies(points)
    for row in range(N):
        found = set(copies.of(np.array([row])).tolist()) | {row}
        equal = set(np.flatnonzero((numbers == numbers[row]).all(axis=1)).tolist())
        # Different logits may have residuals that are the same, digit for digit; and a pool of
        # nothing but equal norms may be given up.
        assert equal <= found or copies.given_up
        assert all(points.equal(row, np.array([other]))[0] for other in found)


def test_the_search_ends_where_norms_are_alike_and_rows_are_not():
    N = 400
    h = torch.zeros(N, N)
    h[torch.arange(N), torch.arange(N)] = 1.0
    points = feature_points(h)
    copies, asked = Copies(points), []
    equal = points.equal
    points.equal = lambda row, others: asked.append(len(others)) or equal(row, others)
    for row in range(N):
        assert copies.of(np.array([row])).tolist() in ([row], [])
    assert copies.given_up
    assert sum(asked) <= 3 * N


def test_copies_that_were_put_aside_are_left_in_the_order_of_their_clocks():
    # Each of 12 rows 25 times, and more picks than there are rows to tell apart.
    base = make("random", 12, 4, 6, seed=3)
    logits, features = base.logits.repeat(25, 1), base.features.repeat(25, 1)
    clocks = np.random.default_rng(5).exponential(size=300)
    picks = kmeanspp(gradient_points(logits, features), 300, clocks)
    G = naive.pseudo_gradients(logits, features)
    assert_same_d2_picks(picks, naive.clocks(G, 300, clocks), G)
    assert not picks.scores[12:].any()
