"""`bait` against its naive twin."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import askance
from askance import Embedding
from askance.errors import InputError
from askance.picking import fisher
from askance.picking.fisher import WeightedRows, lower_trace
from askance.strategies import Bait
from askance.strategies.bait import weighted_rows
from tests.naive import fisher as naive

SEEDS = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=60)


def task(N, L, C, D, seed, scale=1.0, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    z, h = 2 * rng.normal(size=(N + L, C)), scale * rng.normal(size=(N + L, D))
    pool, known = Embedding(z[:N], h[:N]), Embedding(z[N:], h[N:])
    return pool.mapped(lambda m: m.to(dtype)), (
        known.mapped(lambda m: m.to(dtype)),
        np.arange(L) % C,
    )


def vectors(embedding):
    return naive.vectors(embedding.logits.double().numpy(), embedding.features.double().numpy())


@quick
@given(
    st.integers(1, 40), st.integers(1, 10), st.integers(2, 5), st.integers(1, 5), SEEDS,
    st.sampled_from([0.1, 1.0, 30.0]), st.sampled_from([0.01, 1.0, 100.0]), st.data(),
)  # fmt: skip
def test_each_pick_lowers_the_trace_most(N, L, C, D, seed, scale, ridge, data):
    n = data.draw(st.integers(1, N))
    pool, known = task(N, L, C, D, seed, scale)
    picks = askance.select(None, known, pool, n, strategy=Bait(ridge=ridge))
    both = naive.lowered(vectors(pool), vectors(known[0]), ridge, picks.indices.tolist())
    own, most = np.array(both).T
    # The twin subtracts traces, which leaves it as many digits fewer as they are larger.
    digits = 1e-11 * np.trace(vectors(pool).T @ vectors(pool)) / N / ridge
    np.testing.assert_allclose(own, most, rtol=1e-7, atol=digits)
    np.testing.assert_allclose(picks.scores, own, rtol=1e-7, atol=digits)


def test_float32_makes_the_picks_of_float64():
    """Of 2,000 rows, where 300 passes in float32 would have drifted."""
    pool, known = task(2_000, 50, 6, 24, 2, scale=30.0, dtype=torch.float32)
    picks = askance.select(None, known, pool, 300, strategy="bait")
    double = [e.mapped(lambda m: m.double()) for e in (pool, known[0])]
    exact = askance.select(None, (double[1], known[1]), double[0], 300, strategy="bait")
    assert picks.indices.tolist() == exact.indices.tolist()
    np.testing.assert_allclose(picks.scores, exact.scores, rtol=1e-9)


def test_without_the_rows_ahead_float32_drifts(monkeypatch):
    """The test above sees what it is for."""
    monkeypatch.setattr(fisher, "_AHEAD", 1)
    monkeypatch.setattr(fisher, "_DRIFT", np.inf)
    with pytest.raises(AssertionError):
        test_float32_makes_the_picks_of_float64()


@pytest.mark.parametrize("together", [1, 5, 40])
def test_picks_do_not_depend_on_the_front_they_are_made_from(monkeypatch, together):
    pool, known = task(900, 30, 5, 12, 3)
    expected = askance.select(None, known, pool, 60, strategy="bait")
    monkeypatch.setattr(fisher, "_TOGETHER", together)
    monkeypatch.setattr(fisher, "_FRONT", 35)
    monkeypatch.setattr(fisher, "_BLOCK", 250)
    settled = []
    settle = fisher._LowerTrace._settle

    def noted(self, front, picks):
        settled.append((len(picks), settle(self, front, picks)))
        return settled[-1][1]

    monkeypatch.setattr(fisher._LowerTrace, "_settle", noted)
    picks = askance.select(None, known, pool, 60, strategy="bait")
    np.testing.assert_array_equal(picks.indices, expected.indices)
    np.testing.assert_allclose(picks.scores, expected.scores, rtol=1e-9)
    # A front so small is left soon, and picks are made again.
    assert any(valid < made for made, valid in settled) == (together > 1)


def test_the_sums_do_not_depend_on_the_portions(monkeypatch):
    pool, _ = task(50, 3, 4, 5, 2)
    rows = weighted_rows(pool)
    whole = rows.sum_of_squares(), rows.sq_lengths(torch.eye(6).double())
    monkeypatch.setattr(fisher, "_ENTRIES", 40)
    np.testing.assert_allclose(rows.sum_of_squares(), whole[0], rtol=1e-12)
    np.testing.assert_allclose(rows.sq_lengths(torch.eye(6).double()), whole[1], rtol=1e-12)


def test_a_direction_that_is_labelled_is_asked_about_last():
    """Two groups in directions at right angles; one of them has many labels."""
    rng = np.random.default_rng(0)
    h = np.zeros((60, 4))
    h[:30, 0], h[30:, 1] = rng.uniform(5, 6, 30), rng.uniform(5, 6, 30)
    pool = Embedding(torch.zeros(60, 2), torch.from_numpy(h))
    known = Embedding(torch.zeros(20, 2), torch.from_numpy(h[:20])), np.arange(20) % 2
    assert askance.select(None, known, pool, 1, strategy="bait").indices[0] >= 30


def test_points_that_are_certain_teach_nothing():
    pool, known = task(12, 4, 3, 4, 3)
    logits = pool.logits.clone()
    logits[:6] = torch.tensor([1e4, 0.0, 0.0])
    picks = askance.select(None, known, Embedding(logits, pool.features), 12, strategy="bait")
    assert sorted(picks.indices[6:].tolist()) == list(range(6))
    assert not picks.scores[6:].any()


@pytest.mark.parametrize("ridge", [0.0, -1.0, np.inf, "1"])
def test_a_ridge_that_is_none_is_refused(ridge):
    with pytest.raises(InputError, match="ridge must be a finite number above 0"):
        Bait(ridge=ridge)


@pytest.mark.parametrize("value", [1e8, 3e38])
@pytest.mark.parametrize("where", ["pool", "labeled"])
def test_features_beside_which_the_ridge_is_nothing_are_refused(value, where):
    pool, (known, labels) = task(12, 4, 3, 4, 3)
    (pool if where == "pool" else known).features[1] = value
    with pytest.raises(InputError, match=r"Standardise the features.*or raise λ with ridge="):
        askance.select(None, (known, labels), pool, 3, strategy="bait")


def test_rows_are_never_stored_with_their_weights():
    rows = WeightedRows(torch.ones(4, 2), torch.tensor([1.0, 4.0, 9.0, 0.0]))
    assert rows.exact(np.array([1, 3])).tolist() == [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]
    assert lower_trace(rows, torch.zeros(3, 3).double(), 1.0, 2).rows.tolist()[0] == 2
