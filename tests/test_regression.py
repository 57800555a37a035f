"""Rules that look at no class pick for a regression too."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from torch import nn

import askance
from askance.errors import InputError, LabelError, NonFiniteError
from askance.strategies import Badge, Grad, KCenter, MaxHerding, TypiClust
from askance.testing import check_strategy

inputs, targets = load_diabetes(return_X_y=True)
X = torch.from_numpy(inputs * 20).float()
Y = targets / 100
RULES = [
    KCenter(),
    MaxHerding(),
    TypiClust(),
    Badge(loss="squared"),
    Badge(bias=True, loss="squared"),
]


@pytest.fixture
def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("form", [np.array, torch.tensor, list, lambda y: np.array(y)[:, None]])
def test_any_targets_give_the_picks_of_features_alone(model, rule, form):
    seen = askance.embed(model, X[:30])
    pool = askance.embed(model, X[30:])
    expected = askance.select(None, (seen, np.zeros(30, int)), pool, 8, strategy=rule)
    picks = askance.select(model, (X[:30], form(Y[:30])), X[30:], 8, strategy=rule)
    assert picks.indices.tolist() == expected.indices.tolist()
    why = picks.explain()[0]
    assert (why.pseudo_label, why.confidence) == (None, None)
    assert "The model says" not in why.reason


@pytest.mark.parametrize("bias", [False, True])
def test_badge_scores_are_the_squared_distances_of_gradients_of_one_unit(model, bias):
    pool = askance.embed(model, X)
    picks = askance.select(None, None, pool, 12, strategy=Badge(bias=bias, loss="squared"), seed=4)
    gradients = [[*row, 1.0] if bias else row for row in pool.features.double().tolist()]
    chosen = picks.indices.tolist()

    def sq_dist(one, other):
        return sum((a - b) ** 2 for a, b in zip(gradients[one], gradients[other], strict=True))

    lengths = [sum(a * a for a in row) for row in gradients]
    assert chosen[0] == max(range(len(lengths)), key=lengths.__getitem__)
    assert picks.scores[0] == pytest.approx(lengths[chosen[0]])
    for place in range(1, 12):
        nearest = min(sq_dist(chosen[place], before) for before in chosen[:place])
        assert picks.scores[place] == pytest.approx(nearest)
    assert picks.explain()[0].grad_norm == pytest.approx(lengths[chosen[0]] ** 0.5)


def test_badge_draws_in_proportion_to_the_squared_distance(model):
    features = torch.tensor([[3.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    pool = askance.Embedding(logits=torch.zeros(4, 1), features=features)
    weights = np.array([10.0, 4.0, 9.0])  # of rows 1, 2, 3 after row 0
    counts = np.zeros(3)
    for seed in range(3000):
        picks = askance.select(None, None, pool, 2, strategy=Badge(loss="squared"), seed=seed)
        assert picks.indices[0] == 0
        counts[picks.indices[1] - 1] += 1
    expected = 3000 * weights / weights.sum()
    assert ((counts - expected) ** 2 / expected).sum() < 13.8  # chi-square, 2 degrees, p = 0.001


def test_the_contract_holds_with_the_squared_loss():
    check_strategy(Badge(loss="squared"))


@pytest.mark.parametrize("rule", ["grad", "margin", "egl", "bait"])
def test_rules_for_classes_say_which_are_not(model, rule):
    with pytest.raises((InputError, LabelError), match=r"'kcenter', 'maxherding', .*'squared'"):
        askance.select(model, (X[:30], Y[:30]), X[30:], 3, strategy=rule)


def test_what_is_no_regression_is_refused(model):
    with pytest.raises(InputError, match="one of 'cross-entropy', 'multilabel'"):
        Grad(loss="squared")
    with pytest.raises(NonFiniteError, match="finite numbers, 1 are not"):
        askance.select(model, (X[:3], [0.5, np.inf, 1]), X, 2, strategy="kcenter")
    with pytest.raises(LabelError, match=r"labelled row 1 has no label \(nan\)"):
        askance.select(model, (X[:3], [0.5, np.nan, 1]), X, 2, strategy="kcenter")
