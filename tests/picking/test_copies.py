"""Copies: all of them, nothing else, and no distance found for them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.picking.copies import Copies
from askance.picking.kcenter import kcenter
from askance.picking.kmeanspp import kmeanspp
from askance.picking.points import Points, feature_points, gradient_points
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
    repeats = set(copies.repeats.tolist())
    for row in range(N):
        copy_rows = set(copies.of(np.array([row])).tolist()) | {row}
        equal = set(np.flatnonzero((numbers == numbers[row]).all(axis=1)).tolist())
        # Different logits may have residuals that are the same, digit for digit.
        assert equal <= copy_rows
        assert points.equal(np.array([row]), np.array(sorted(copy_rows))).all()
        assert (row in repeats) == (row > min(copy_rows))


def test_copies_are_found_in_one_look_where_all_norms_are_alike(monkeypatch):
    # Each of 200 unit vectors three times, in turns.
    points = feature_points(torch.eye(200).repeat(3, 1))
    compared, equal = [], Points.equal
    monkeypatch.setattr(
        Points, "equal", lambda *pair: compared.append(len(pair[1])) or equal(*pair)
    )
    copies = Copies(points)
    assert sum(compared) < 600
    assert sorted(copies.repeats.tolist()) == list(range(200, 600))
    assert copies.of(np.array([7, 211])).tolist() == [7, 207, 407, 11, 211, 411]


@pytest.mark.parametrize("in_turns", [True, False])
def test_copies_are_covered_as_the_row_they_repeat(in_turns, monkeypatch):
    # The labelled set has copies in the pool as well: at distance zero from the first.
    base = make("relu", 300, 2, 8, seed=1).features
    order = np.tile(np.arange(300), 20) if in_turns else np.repeat(np.arange(300), 20)
    firsts = np.unique(order, return_index=True)[1]
    labeled = base[:40]
    asked, settle = [], Points.min_sq_dists
    monkeypatch.setattr(
        Points,
        "min_sq_dists",
        lambda points, rows, *rest: asked.append(len(rows)) or settle(points, rows, *rest),
    )
    alone = kcenter(feature_points(base), labeled, 300)
    once = sum(asked)
    picks = kcenter(feature_points(base[order]), labeled, 6000)
    assert sum(asked) - once <= 2 * once
    assert picks.rows[:260].tolist() == firsts[alone.rows[:260]].tolist()
    np.testing.assert_allclose(picks.scores[:260], alone.scores[:260], rtol=1e-9)
    assert picks.rows[260:].tolist() == np.setdiff1d(np.arange(6000), picks.rows[:260]).tolist()
    assert not picks.scores[260:].any()


def test_copies_that_were_put_aside_are_left_in_the_order_of_their_clocks():
    # Each of 12 rows 25 times, and more picks than there are rows to tell apart.
    base = make("random", 12, 4, 6, seed=3)
    logits, features = base.logits.repeat(25, 1), base.features.repeat(25, 1)
    clocks = np.random.default_rng(5).exponential(size=300)
    picks = kmeanspp(gradient_points(logits, features), 300, clocks)
    G = naive.pseudo_gradients(logits, features)
    assert_same_d2_picks(picks, naive.clocks(G, 300, clocks), G)
    assert not picks.scores[12:].any()
