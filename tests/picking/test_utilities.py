"""What every row was worth at each pick, against dense distances."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.embedding import Embedding
from askance.gradients.last_layer import pseudo_residuals
from askance.seeding import Draws
from askance.strategies import Badge, GradSpread, KCenter, Labeled


def task(seed, rows, classes=3, columns=4):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    features = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    return Embedding(logits, features)


def dense_gradients(block, bias):
    ones = torch.ones(len(block), 1, dtype=torch.float64)
    h = torch.cat([block.features, ones], dim=1) if bias else block.features
    return torch.einsum("nc,nd->ncd", pseudo_residuals(block.logits), h).flatten(1).numpy()


def naive_utilities(points, picks, start, dist):
    utilities = []
    for place in range(len(picks)):
        row = [
            np.nan
            if i in picks[:place]
            else min([start[i], *(dist(p, points[c]) for c in picks[:place])])
            for i, p in enumerate(points)
        ]
        utilities.append(row)
    return np.array(utilities)


def sq_dist(x, y):
    return float(np.sum((x - y) ** 2))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 20), bias=st.booleans(), data=st.data())
def test_badge(seed, rows, bias, data):
    n = data.draw(st.integers(1, rows))
    pool, rule = task(seed, rows), Badge(bias=bias)
    picks = rule.pick(pool, n, None, Draws(seed))
    g = dense_gradients(pool, bias)
    expected = naive_utilities(g, picks.rows.tolist(), [np.inf] * rows, sq_dist)
    expected[0] = np.sum(g**2, axis=1)
    utilities = rule.utilities(pool, picks.rows, None)
    assert np.allclose(utilities, expected, rtol=1e-9, atol=1e-12, equal_nan=True)
    assert np.allclose(utilities[np.arange(n), picks.rows], picks.scores, rtol=1e-9, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 20), data=st.data())
def test_kcenter(seed, rows, data):
    n = data.draw(st.integers(1, rows))
    pool, seen = task(seed, rows), task(seed + 1, 5).features
    picks = KCenter().pick(pool, n, seen, Draws())
    points = pool.features.numpy()
    start = [min(sq_dist(p, c) for c in seen.numpy()) for p in points]
    expected = np.sqrt(naive_utilities(points, picks.rows.tolist(), start, sq_dist))
    utilities = KCenter().utilities(pool, picks.rows, seen)
    assert np.allclose(utilities, expected, rtol=1e-9, atol=1e-12, equal_nan=True)
    assert np.allclose(utilities[np.arange(n), picks.rows], picks.scores)
    assert np.array_equal(np.nanargmax(utilities, axis=1), picks.rows)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(4, 20), data=st.data())
def test_grad_spread(seed, rows, data):
    n = data.draw(st.integers(1, rows // 2))
    pool, rule, known = task(seed, rows), GradSpread(shortlist=2), task(seed + 1, 6)
    reference = rule.prepare(Labeled(known, torch.arange(6) % 3, 6), None)
    picks = rule.pick(pool, n, reference, Draws())
    utilities = rule.utilities(pool, picks.rows, reference)
    scores = rule.grad.score(pool, reference, Draws()).numpy()
    assert np.array_equal(utilities[0], scores)
    g = dense_gradients(pool, True)
    unit = g / np.linalg.norm(g, axis=1, keepdims=True)
    far = [2.0] * rows
    expected = naive_utilities(unit, picks.rows.tolist(), far, lambda x, y: 1 - float(x @ y))
    outside = np.argsort(-scores, kind="stable")[2 * n :]
    expected[:, outside] = np.nan
    assert np.allclose(utilities[1:], expected[1:], rtol=1e-7, atol=1e-12, equal_nan=True)
    assert np.allclose(
        utilities[np.arange(1, n), picks.rows[1:]], picks.scores[1:], rtol=1e-7, atol=1e-12
    )
