"""The picks of a GPU, made here on a CPU: those of the lazy way, or none where digits are lost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.gradients.last_layer import pseudo_residuals
from askance.picking.dense import dense_kcenter, dense_kmeanspp
from askance.picking.kcenter import kcenter
from askance.picking.kmeanspp import kmeanspp
from askance.picking.points import feature_points, gradient_points
from tests.picking.pools import KINDS, make, pools
from tests.picking.test_kcenter import labeled_of

SEEDS = st.integers(0, 2**32 - 1)
# Pools that have no two points too near to tell apart by an expanded square.
CLEAR = ("random", "relu", "lumps")


def both_ways(several, n, bias=False):
    dense = dense_kmeanspp(
        torch.stack([pool.features for pool in several]),
        torch.stack([pseudo_residuals(pool.logits.double()) for pool in several]),
        [pool.residuals for pool in several],
        n,
        bias=bias,
    )
    lazy = [
        kmeanspp(gradient_points(p.logits, p.features, bias=bias), n, p.residuals) for p in several
    ]
    return dense, lazy


@settings(deadline=None, max_examples=60)
@given(pools(*KINDS, dtypes=(torch.float32, torch.float64)))
def test_one_pool_gives_the_lazy_picks_or_none(pool):
    (dense,), (lazy,) = both_ways([pool], pool.n, pool.bias)
    if dense is not None:
        np.testing.assert_array_equal(dense.rows, lazy.rows)
        np.testing.assert_allclose(dense.scores, lazy.scores, rtol=1e-5, atol=1e-270)


@pytest.mark.parametrize("kind", CLEAR)
def test_several_pools_at_once_give_the_picks_of_each(kind):
    several = [make(kind, 400, 5, 8, seed) for seed in range(3)]
    dense, lazy = both_ways(several, 60)
    for a, b in zip(dense, lazy, strict=True):
        assert a is not None
        np.testing.assert_array_equal(a.rows, b.rows)
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-6)


def test_a_pool_with_copies_is_left_to_the_lazy_way_and_the_others_are_not():
    several = [make("random", 100, 4, 6, 0), make("repeated", 100, 4, 6, 1)]
    dense, lazy = both_ways(several, 40)
    np.testing.assert_array_equal(dense[0].rows, lazy[0].rows)
    assert dense[1] is None


@settings(deadline=None, max_examples=60)
@given(pools(*KINDS, dtypes=(torch.float32, torch.float64)), st.integers(1, 40), SEEDS)
def test_kcenter_gives_the_lazy_picks_or_none(pool, L, seed):
    labeled = labeled_of(pool, L, seed)
    (dense,) = dense_kcenter(pool.features[None], [labeled], pool.n)
    lazy = kcenter(feature_points(pool.features), labeled, pool.n)
    if dense is not None:
        np.testing.assert_array_equal(dense.rows, lazy.rows)
        np.testing.assert_allclose(dense.scores, lazy.scores, rtol=1e-5, atol=1e-270)


@pytest.mark.parametrize("kind", CLEAR)
def test_kcenter_in_several_pools_with_labelled_sets_of_their_own(kind):
    several = [make(kind, 300, 3, 8, seed) for seed in range(3)]
    labeled = [labeled_of(pool, 5 + 3 * i, i) for i, pool in enumerate(several)]
    dense = dense_kcenter(torch.stack([pool.features for pool in several]), labeled, 50)
    for picks, pool, seen in zip(dense, several, labeled, strict=True):
        assert picks is not None
        lazy = kcenter(feature_points(pool.features), seen, 50)
        np.testing.assert_array_equal(picks.rows, lazy.rows)


def test_a_copy_of_a_labelled_point_is_left_to_the_lazy_way():
    pool = make("random", 50, 3, 6, 0)
    (picks,) = dense_kcenter(pool.features[None], [pool.features[7:9]], 5)
    assert picks is None


def test_equal_keys_go_to_the_lowest_row():
    square = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
    (picks,) = dense_kcenter(square[None] * 3, [torch.zeros(1, 2)], 4)
    assert picks.rows.tolist() == [0, 1, 2, 3]
