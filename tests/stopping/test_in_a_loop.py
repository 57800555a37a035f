"""A loop ends when its rule says so, and not before."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import askance
from askance.errors import InputError, KindError
from askance.loop import Run
from askance.oracles import Truth
from askance.stopping import Budget, Plateau, StablePredictions, TargetAccuracy
from askance.tracking import Round

N = 200


def task(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4)).astype(np.float32)
    return X, (X[:, 0] > 0).astype(np.int64)


def loop(stop, X=None, **more):
    inputs, y = task()
    pool = inputs if X is None else X
    options = {"strategy": "margin", "batch": 10, "rounds": 15} | more
    return askance.loop(pool, Truth(y), stop=stop, **options)


def fitted(run):
    inputs, labels = run.labeled
    return LogisticRegression().fit(np.asarray(inputs), labels.numpy())


def test_a_budget_ends_the_loop():
    seen = []
    for run in loop(Budget(50)):
        seen.append(len(run.rows))
        picks = run.ask(fitted(run))
    assert seen == [10, 20, 30, 40, 50]
    assert (len(run.rows), run.finished, len(picks)) == (50, True, 0)
    assert run.stopped == "the budget is spent: 50 of 50 labels"
    assert [one.labels for one in run.checkpoints] == seen
    with pytest.raises(InputError, match="the run was stopped: the budget is spent"):
        run.tell(np.arange(10))


def test_a_rule_that_never_stops_changes_nothing():
    def rows(stop):
        for run in loop(stop):
            run.ask(fitted(run))
        return run.rows.tolist(), run.stopped

    assert rows(None) == rows(StablePredictions() & Budget(10_000))


def test_stable_predictions_look_at_the_pool_alone():
    for run in loop(StablePredictions(kappa=0.9)):
        run.ask(fitted(run))
    assert "the predictions are stable" in run.stopped
    assert len(run.rows) < 160
    assert all(len(one.predictions) == N for one in run.checkpoints)


def test_accuracy_is_of_the_held_out_items():
    X, y = task(1)
    for run in loop(TargetAccuracy(0.9), held_out=(X, y)):
        model = fitted(run)
        expected = (model.predict(X) == y).mean()
        run.ask(model)
        if len(run.rows) < 160:
            assert run.checkpoints[-1].accuracy == pytest.approx(expected)
    assert "the target is reached" in run.stopped


def test_a_logged_accuracy_will_do_where_no_item_is_looked_at():
    for run in loop(Plateau(over=20)):
        run.log(accuracy=0.5)
        run.ask(fitted(run))
    assert "plateau" in run.stopped
    assert len(run.rows) == 40


@pytest.mark.parametrize("kind", ["module", "embedding", "batched"])
def test_any_model_that_can_be_asked_with_can_be_looked_at(kind):
    X, _ = task()
    pool, network = torch.from_numpy(X), nn.Linear(4, 2)
    whole = askance.embed(network, pool)
    for run in loop(StablePredictions(window=1), X=pool):
        if kind == "embedding":
            run.ask(whole)
        else:
            run.ask(network, **({"batch_size": 7} if kind == "batched" else {}))
    assert len(run.rows) == 20  # the same network twice
    expected = whole.logits.argmax(dim=1).numpy()
    assert np.array_equal(run.checkpoints[0].predictions, expected)


def test_classes_are_the_models_own():
    """A classifier that has seen classes 3 and 7 alone answers 3 or 7, not 0 or 1."""
    X, y = task()
    held_out = (X, np.where(y == 1, 7, 3))
    run = Run(
        X, Truth(held_out[1]), "margin", batch=40, rounds=2, stop=Budget(999), held_out=held_out
    )
    run.ask(fitted(run))
    assert run.checkpoints[0].accuracy > 0.8


def test_the_sample_is_the_seeds(monkeypatch):
    monkeypatch.setattr("askance.stopping.check.SAMPLE", 20)

    def sample(seed):
        run = next(iter(loop(StablePredictions(), seed=seed)))
        return run._check._rows.tolist()

    assert sample(0) == sample(0) != sample(1)
    assert len(set(sample(0))) == 20


def test_the_tracker_hears_that_it_is_over():
    class Kept:
        def __init__(self):
            self.rounds = []

        def began(self, facts):
            pass

        def round(self, done: Round):
            self.rounds.append((done.round, done.last))

    track = Kept()
    for run in loop(Budget(30), track=track):
        run.ask(fitted(run))
    assert track.rounds == [(0, False), (1, False), (2, True)]


def test_what_cannot_work_is_said_at_the_start():
    X, y = task()
    with pytest.raises(InputError, match=r"give the loop held_out=\(X, y\)"):
        next(loop(Plateau(level=0.95)))
    with pytest.raises(InputError, match="held_out is for a stopping rule"):
        next(loop(None, held_out=(X, y)))
    with pytest.raises(InputError, match=r"held_out must be \(X, y\)"):
        next(loop(Budget(9), held_out=X))
    with pytest.raises(InputError, match="one item or more"):
        next(loop(Budget(9), held_out=(X[:0], y[:0])))
    with pytest.raises(InputError, match="one class an item"):
        next(loop(Budget(9), held_out=(X, np.stack([y, y], axis=1))))
    with pytest.raises(KindError, match="stop must be a rule"):
        next(loop("plateau"))
    run = next(loop(TargetAccuracy(0.9)))
    with pytest.raises(InputError, match=r"or call run.log\(accuracy=…\) before run.ask"):
        run.ask(fitted(run))
    with pytest.raises(InputError, match="the model itself or with an encoder, got a int"):
        next(loop(StablePredictions())).ask(3)
