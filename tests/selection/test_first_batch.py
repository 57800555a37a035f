"""A first batch, before there is a label."""

import numpy as np
import pytest
import torch
from torch import nn

import askance
from askance.errors import InputError, LabelError
from askance.loop import first_batch, loop
from askance.oracles import Truth
from askance.strategies import MaxHerding
from tests.selection.test_encoded import POOL, counts, encoder  # noqa: F401

X = torch.randn(60, 5, generator=torch.Generator().manual_seed(0))
NET = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))


def expected(features, n=6):
    pool = askance.Embedding(features=features)
    return askance.select(None, None, pool, n, strategy=MaxHerding()).indices.tolist()


@pytest.mark.parametrize("features", [X, X.numpy(), X.double(), (X * 10).long()])
def test_from_features_as_an_array(features):
    picks = askance.select(None, None, features, 6)
    assert picks.strategy.name == "maxherding"
    real = torch.as_tensor(features)
    assert picks.indices.tolist() == expected(real if real.is_floating_point() else real.double())


def test_from_a_network():
    picks = askance.select(NET, None, X, 6)
    assert picks.strategy.name == "maxherding"
    assert picks.indices.tolist() == expected(torch.relu(X @ NET[0].weight.T + NET[0].bias))


def test_from_an_encoder(encoder, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path))
    picks = askance.select(encoder, None, POOL, 6)
    assert picks.strategy.name == "maxherding"
    z = np.array(counts(POOL), dtype=np.float64)
    z = ((z - z.mean(0)) / z.std(0)).astype(np.float32)
    assert picks.indices.tolist() == expected(torch.from_numpy(z))


def test_excluded_rows_are_not_picked():
    picks = askance.select(None, None, X, 50, exclude=range(10))
    assert sorted(picks.indices) == list(range(10, 60))


def test_an_empty_labelled_set_is_none():
    none = askance.Embedding(features=X[:0]), torch.empty(0, dtype=torch.int64)
    pool = askance.Embedding(features=X)
    picks = askance.select(None, none, pool, 6, strategy="maxherding")
    assert picks.indices.tolist() == expected(X)


@pytest.mark.parametrize("rule", ["grad", "uherding", "grad-cover", "kcenter"])
def test_rules_that_need_labels_say_so(rule):
    with pytest.raises(LabelError, match=r"labeled is None; .*'maxherding' for a first batch"):
        askance.select(NET, None, X, 3, strategy=rule)


def test_a_loop_begins_with_it():
    runs = [*loop(X, Truth(torch.arange(60) % 3), batch=6, rounds=0, first="maxherding")]
    assert runs[0].rows.tolist() == expected(X)
    images = X.reshape(60, 1, 5, 1)
    assert first_batch(images, 60, 6, "maxherding", 0).tolist() == expected(X)
    again = [*loop(X, Truth(torch.arange(60) % 3), batch=6, rounds=0, first=np.arange(6))]
    assert again[0].rows.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("pool", "first", "told"),
    [
        (X, "badge", "badge has not what it needs .features, logits."),
        ({"x": X}, "maxherding", "a dict has no such rows; give the rows"),
        (X, [1, 1, 2, 3, 4, 5], "asks for 6 different rows"),
        (X, range(55, 61), "rows must be between 0 and 59"),
    ],
)
def test_first_batches_that_cannot_be(pool, first, told):
    with pytest.raises(InputError, match=told):
        loop(pool, Truth(torch.zeros(60).long()), batch=6, rounds=0, first=first).__next__()
