"""The rules on real learning curves: how much they save, and what it costs."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import askance
from askance.experiments.store import ResultStore
from askance.oracles import Truth
from askance.stopping import Checkpoint, Plateau, StablePredictions, TargetAccuracy
from tests.fences import ROOT

BATCH, ROUNDS = 20, 24


def digits_curve(seed, strategy="margin"):
    """Every model of a loop on digits, with predictions on the pool and held-out answers."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    pool, held_out = order[:1200], order[1200:]
    history = []
    loop = askance.loop(
        X[pool] / 16, Truth(y[pool]), strategy=strategy, batch=BATCH, rounds=ROUNDS, seed=seed
    )
    for run in loop:
        inputs, labels = run.labeled
        model = LogisticRegression(max_iter=300).fit(inputs, labels)
        right = model.predict(X[held_out] / 16) == y[held_out]
        predictions = model.predict(X[pool] / 16)
        history.append(Checkpoint(len(labels), predictions=predictions, correct=right))
        run.ask(model)
    return history


def stops_at(rule, history):
    """The checkpoint after which the rule stops; None where it never does."""
    return next((history[i] for i in range(len(history)) if rule(history[: i + 1])), None)


@pytest.mark.parametrize("seed", range(5))
def test_on_digits_the_rules_stop_early_and_lose_little(seed):
    history = digits_curve(seed)
    last = history[-1]
    for rule, most in [
        (StablePredictions(), 0.02),
        (Plateau(), 0.01),
        (Plateau(level=0.95), 0.01),
    ]:
        stopped = stops_at(rule, history)
        assert stopped is not None, rule
        assert 100 < stopped.labels < last.labels, rule
        assert last.accuracy - stopped.accuracy < most, rule
    looser = stops_at(StablePredictions(kappa=0.97), history)
    assert looser.labels <= stops_at(StablePredictions(), history).labels
    reached = stops_at(TargetAccuracy(0.9), history)
    assert reached.accuracy > 0.9  # its lower end is at 0.9
    assert stops_at(TargetAccuracy(0.999), history) is None


@pytest.mark.parametrize(
    ("name", "share", "lost"),
    [("banking77-minilm", 0.75, 0.03), ("pets-efficientnet", 0.95, 0.02)],
)
def test_on_stored_curves_a_plateau_saves_labels_and_loses_little(name, share, lost):
    """All runs of the experiments that ask for more than 200 labels."""
    store = ResultStore.read(ROOT / "results" / "pretrained" / name)
    runs = [store.history(*run) for run in store.runs]
    store.close()
    labels, losses = [], []
    for rounds in runs:
        history = [Checkpoint(one.labels, accuracy=one.accuracy) for one in rounds]
        stopped = stops_at(Plateau(), history) or history[-1]
        labels.append(stopped.labels / history[-1].labels)
        losses.append(history[-1].accuracy - stopped.accuracy)
        strict = stops_at(Plateau(gain=0.005), history) or history[-1]
        assert strict.labels >= stopped.labels  # who asks for less gain stops later
    assert len(runs) >= 70
    assert np.mean(labels) < share
    assert 0 < np.mean(losses) < lost


@pytest.mark.parametrize("name", ["cifar10-efficientnet", "stl10-efficientnet", "trec-minilm"])
def test_on_curves_that_still_rise_a_plateau_is_not_found(name):
    """In these, 200 labels are all there are, and each hundred of them brings more than a point."""
    store = ResultStore.read(ROOT / "results" / "pretrained" / name)
    runs = [store.history(*run) for run in store.runs]
    store.close()
    found = [
        stops_at(Plateau(), [Checkpoint(one.labels, accuracy=one.accuracy) for one in rounds])
        for rounds in runs
    ]
    assert not any(found)
