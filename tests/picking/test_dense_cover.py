"""Coverage as a GPU picks it, against the way of a CPU and the naive twin.

Without a GPU Triton's interpreter runs the kernels, program by program, on the CPU.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance import picking
from askance.capture import triton_kernels
from askance.picking.audience import Audience, sq_dists_to_nearest, unit_rows
from askance.picking.coverage import cover
from askance.picking.dense_cover import dense_cover
from tests.interpreter import DEVICE, compiled_or_interpreted
from tests.naive import picking as naive

kernels = compiled_or_interpreted("askance.picking.cover_kernels")
SEEDS = st.integers(0, 2**32 - 1)


def audience_of(E, weights, labeled, sq_width):
    unit = unit_rows(torch.from_numpy(E).to(DEVICE))
    covered = unit.new_zeros(len(E))
    if len(labeled):
        nearest = sq_dists_to_nearest(unit, torch.from_numpy(labeled).to(DEVICE))
        covered = torch.exp(-nearest / sq_width)
    return Audience(unit, torch.from_numpy(weights).to(DEVICE), covered, sq_width)


@settings(deadline=None, max_examples=12)
@given(
    N=st.integers(1, 200),
    M=st.integers(1, 40),
    L=st.integers(0, 6),
    sq_width=st.sampled_from([0.01, 0.3, 2.0]),
    data=st.data(),
    seed=SEEDS,
)
def test_picks_are_those_of_the_twin(N, M, L, sq_width, data, seed):
    rng = np.random.default_rng(seed)
    X, labeled = rng.normal(size=(N, 6)), rng.normal(size=(L, 6))
    E, weights = X[rng.integers(N, size=M)], 0.1 + rng.random(M)
    n = data.draw(st.integers(1, min(N, 12)))
    dense = dense_cover(
        torch.from_numpy(X).to(DEVICE), audience_of(E, weights, labeled, sq_width), n
    )
    if dense is None:  # digits are lost where nothing is left to cover
        return
    rows, scores = naive.covering(X, E, weights, sq_width, labeled, n)
    np.testing.assert_allclose(dense.scores, scores, rtol=1e-6)
    np.testing.assert_array_equal(dense.rows, rows)


def test_a_pick_that_covers_many_columns_and_one_that_covers_few():
    rng = np.random.default_rng(3)
    X = np.maximum(rng.normal(size=(400, 8)), 0.0).astype(np.float32)
    audience = audience_of(X[::3], np.ones(134), X[:0], 0.4)
    dense = dense_cover(torch.from_numpy(X).to(DEVICE), audience, 25)
    lazy = cover(torch.from_numpy(X), audience, 25)
    assert dense is not None
    np.testing.assert_array_equal(dense.rows, lazy.rows)
    np.testing.assert_allclose(dense.scores, lazy.scores, rtol=1e-9)


def test_level_gains_go_to_the_lowest_row():
    X = torch.eye(4, dtype=torch.float64, device=DEVICE)[[2, 0, 3, 1]].repeat(50, 1)
    audience = Audience(X[:4], X.new_ones(4), X.new_zeros(4), 0.5)
    dense = dense_cover(X, audience, 4)
    assert dense is not None
    assert dense.rows.tolist() == [0, 1, 2, 3]


def test_what_loses_digits_or_has_no_room_is_left_to_the_lazy_way(monkeypatch):
    X = torch.eye(3, dtype=torch.float64, device=DEVICE).repeat(4, 1)
    audience = Audience(X[:3], X.new_ones(3), X.new_zeros(3), 0.5)
    assert dense_cover(X, audience, 3) is not None
    assert dense_cover(X, audience, 4) is None  # the fourth would cover nothing
    assert dense_cover(X, Audience(X[:3], X.new_ones(3), X.new_zeros(3), 1e-4), 3) is None
    assert dense_cover(X, Audience(X[:3], X.new_zeros(3), X.new_zeros(3), 0.5), 3) is None
    monkeypatch.setattr(kernels, "MOST", 2)
    assert dense_cover(X, audience, 3) is None
    monkeypatch.undo()
    monkeypatch.delattr(picking, "cover_kernels")
    monkeypatch.setitem(sys.modules, "askance.picking.cover_kernels", None)
    triton_kernels.cache_clear()
    try:
        assert dense_cover(X, audience, 3) is None
    finally:
        triton_kernels.cache_clear()
