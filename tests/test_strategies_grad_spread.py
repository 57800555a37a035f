"""`grad-spread` where a point comes many times."""

import numpy as np
import pytest
import torch

import askance
from askance import Embedding
from askance.strategies import Grad, GradSpread
from tests.naive import picking as naive

N, COPIES = 120, 400


def pool_with_copies(noise=0.0):
    """120 points, and 400 copies of the one of largest s(x), which alone fill a shortlist of 5n."""
    generator = torch.Generator().manual_seed(3)
    draw = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=generator)  # noqa: E731
    known = Embedding(draw(10, 4), draw(10, 6)), np.arange(10) % 4
    logits, features = draw(N, 4), draw(N, 6)
    best = askance.select(None, known, Embedding(logits, features), 1, strategy="grad").indices[0]
    rows = torch.cat([torch.arange(N), torch.full((COPIES,), int(best))])
    pool = Embedding(logits[rows], features[rows] + noise * draw(N + COPIES, 6))
    return pool, known, int(best)


@pytest.mark.parametrize("noise", [0.0, 1e-7])
def test_copies_that_fill_the_shortlist_are_not_what_is_picked(noise):
    pool, known, best = pool_with_copies(noise)
    picks = askance.select(None, known, pool, 20, strategy="grad-spread")
    copies = (picks.indices == best) | (picks.indices >= N)
    assert copies.sum() == 1
    assert picks.scores.min() > 1e-3


def test_the_picks_among_copies_are_those_of_the_materialised_gradients():
    """The shortlist of 100 holds copies alone, so do those of 200 and 400; 520 is the pool."""
    pool, known, _ = pool_with_copies()
    gradients = naive.pseudo_gradients(pool.logits, pool.features, bias=True)
    scores = askance.select(None, known, pool, len(pool), strategy="grad", keep_scores=True)
    order = np.argsort(-scores.pool_scores, kind="stable")
    rows, expected = naive.widest_angle(gradients[order], 20)
    picks = askance.select(None, known, pool, 20, strategy="grad-spread")
    assert picks.indices.tolist() == order[rows].tolist()
    np.testing.assert_allclose(picks.scores, expected, rtol=1e-9)


def test_without_copies_the_shortlist_is_all_that_is_looked_at():
    pool, known, _ = pool_with_copies()
    pool = pool[:N]
    short = askance.select(None, known, pool, 30, strategy="grad").indices
    rule = GradSpread(shortlist=3, grad=Grad())
    assert set(askance.select(None, known, pool, 10, strategy=rule).indices) <= set(short)


def test_a_pool_of_copies_alone_is_picked_from_all_the_same():
    pool, known, _ = pool_with_copies()
    picks = askance.select(None, known, pool[np.arange(N, N + 50)], 20, strategy="grad-spread")
    assert len(set(picks.indices.tolist())) == 20
    assert not picks.scores[1:].any()
