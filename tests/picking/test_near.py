"""Pairs of rows that are near: none may be missed, whatever the precision of the product."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.picking.near import (
    NearRows,
    formed_sq_dists,
    in_order,
    low_unit_rows,
    product_dtype,
)

DTYPES = [torch.float32, torch.bfloat16]
SEEDS = st.integers(0, 2**32 - 1)


def rows(kind, count, D, rng):
    X = rng.normal(size=(count, D))
    if kind == "tight":
        X = rng.normal(size=D) + 1e-3 * X
    elif kind == "zeros":
        X[rng.random(count) < 0.4] = 0.0
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1.0)


def every_sq_dist(X, E):
    return ((X[:, None] - E) ** 2).sum(axis=2)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(deadline=None, max_examples=40)
@given(
    kind=st.sampled_from(["random", "tight", "zeros"]),
    N=st.integers(1, 40),
    M=st.integers(1, 40),
    D=st.integers(1, 40),
    seed=SEEDS,
)
def test_no_near_pair_is_missed(dtype, kind, N, M, D, seed):
    rng = np.random.default_rng(seed)
    X, E = rows(kind, N, D, rng), rows(kind, M, D, rng)
    sq = every_sq_dist(X, E)
    # Limits just above the distance of some row: that pair is near by its last digit.
    limits = sq[rng.integers(N, size=M), np.arange(M)] * (1 + 1e-12)
    near = NearRows(torch.from_numpy(E), torch.from_numpy(limits), dtype)
    found = np.zeros((N, M), dtype=bool)
    found[near.pairs(torch.from_numpy(X).float())] = True
    assert found[sq < limits].all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(deadline=None, max_examples=40)
@given(
    kind=st.sampled_from(["random", "tight", "zeros"]),
    N=st.integers(1, 40),
    M=st.integers(1, 40),
    D=st.integers(1, 40),
    seed=SEEDS,
)
def test_the_nearest_row_is_among_those_given(dtype, kind, N, M, D, seed):
    rng = np.random.default_rng(seed)
    X, E = rows(kind, N, D, rng), rows(kind, M, D, rng)
    near = NearRows(torch.from_numpy(E), torch.zeros(M, dtype=torch.float64), dtype)
    found = np.full((N, M), np.inf)
    i, j = near.nearest(torch.from_numpy(X).float())
    assert (np.diff(i) >= 0).all()
    found[i, j] = formed_sq_dists(X, i, E, j)
    np.testing.assert_allclose(found.min(axis=1), every_sq_dist(X, E).min(axis=1), atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_few_pairs_are_given_that_are_not_near(dtype):
    rng = np.random.default_rng(0)
    X, E = rows("random", 300, 64, rng), rows("random", 400, 64, rng)
    sq = every_sq_dist(X, E)
    near = NearRows(torch.from_numpy(E), torch.full((400,), 1.5).double(), dtype)
    i, _ = near.pairs(torch.from_numpy(X).float())
    assert (sq < 1.5).sum() <= len(i) < 1.5 * (sq < 1.5).sum()
    nearest = NearRows(torch.from_numpy(E), torch.zeros(400).double(), dtype)
    assert len(nearest.nearest(torch.from_numpy(X).float())[0]) < 3 * 300


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_are_in_the_order_of_the_numbers(dtype):
    values = torch.tensor([-torch.inf, -3.0, -2.5, -1e-30, 0.0, 1e-30, 0.5, 7.0, torch.inf]).to(
        dtype
    )
    bits = values.view(torch.int16 if dtype == torch.bfloat16 else torch.int32).numpy()
    assert (np.diff(in_order(bits).astype(np.int64)) > 0).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_low_rows_have_unit_length_whatever_theirs(scale):
    X = np.random.default_rng(0).normal(size=(9, 5))
    X[4] = 0.0
    low = low_unit_rows(torch.from_numpy(X * scale))
    np.testing.assert_allclose(
        low, X / np.maximum(1e-9, np.linalg.norm(X, axis=1))[:, None], atol=1e-6
    )


def test_the_fastest_product_is_measured_once():
    assert product_dtype() in DTYPES
    assert product_dtype.cache_info().currsize == 1
