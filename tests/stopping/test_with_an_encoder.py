"""A loop that asks by an encoder: its rule looks at the regression that the pick is made with."""

import numpy as np
import pandas as pd
import pytest

import askance
from askance.encoders import FunctionEncoder, linear
from askance.encoders.linear import Standardiser, fit_linear
from askance.errors import LabelError
from askance.oracles import Truth
from askance.stopping import Budget, Plateau, StablePredictions, TargetAccuracy
from tests.encoders.toys import Counting

WORDS = ["cat", "dog", "rate", "bank", "tree", "leaf"]
RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, size=6)) + f" {row}" for row in range(120)]
Y = np.array([text.count("cat") + text.count("dog") > 2 for text in TEXTS]).astype(np.int64)
NAMES = np.array(["money", "animals"])
POOL, Y_POOL = TEXTS[:90], Y[:90]
HELD_OUT = TEXTS[90:], Y[90:]


def counts(texts):
    return [[text.count(word) for word in WORDS] for text in texts]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path))


def encoder(function=counts):
    return FunctionEncoder(function, "text", "1")


def loop(stop, pool=POOL, **more):
    options = {"batch": 10, "rounds": 6, "start": 0, "strategy": "margin"} | more
    return askance.loop(pool, Truth(Y_POOL), stop=stop, **options)


def classes(rows, labels, texts):
    """What the regression of these rows says of some texts, written out."""
    standardise = Standardiser.of(np.array(counts(POOL), dtype=np.float32))
    seen = standardise(np.array(counts([POOL[row] for row in rows])))
    fit = fit_linear(seen, labels, max(2, max(labels) + 1))
    return fit.logits(standardise(np.array(counts(texts)))).argmax(axis=1)


def test_it_sees_the_regression_on_the_sample_and_on_held_out_items():
    expected = []
    for run in loop(StablePredictions(kappa=1.0) & TargetAccuracy(1.0), held_out=HELD_OUT):
        if 0 < len(run.rows) < 60:
            known = run.rows, run.labels.tolist()
            expected.append((len(run.rows), classes(*known, POOL), classes(*known, HELD_OUT[0])))
        run.ask(encoder())
    # The sample is all of a small pool. Before the first label there is no model to look at.
    assert [one.labels for one in run.checkpoints] == [count for count, _, _ in expected]
    assert [one.labels for one in run.checkpoints] == [10, 20, 30, 40, 50]
    for one, (_, on_pool, on_held_out) in zip(run.checkpoints, expected, strict=True):
        np.testing.assert_array_equal(one.predictions, on_pool)
        np.testing.assert_array_equal(one.correct, on_held_out == HELD_OUT[1])


@pytest.mark.parametrize(
    "stop", [StablePredictions(kappa=0.8) | Budget(60), TargetAccuracy(0.5), Plateau(over=10)]
)
def test_it_stops(stop):
    for run in loop(stop, held_out=HELD_OUT):
        picks = run.ask("tests.stopping.test_with_an_encoder:encoder")
    assert run.stopped
    assert (len(picks), len(run.rows) < 60) == (0, True)


@pytest.mark.parametrize("strategy", ["margin", "uherding", "random", None])
@pytest.mark.parametrize("frame", [False, True])
def test_looking_changes_no_pick(strategy, frame):
    pool = pd.DataFrame({"text": POOL}) if frame else POOL

    def rows(stop):
        for run in loop(stop, pool, strategy=strategy):
            run.ask(encoder())
        return run.rows.tolist()

    assert rows(None) == rows(StablePredictions() & Budget(999))


def test_nothing_is_encoded_or_fitted_twice(monkeypatch):
    fits, function = [], Counting(counts)
    once = linear.fit_linear
    monkeypatch.setattr(
        "askance.selection.encoded.fit_linear",
        lambda *args, **more: fits.append(len(args[1])) or once(*args, **more),
    )
    for run in loop(StablePredictions() & Budget(999), held_out=HELD_OUT):
        run.ask(encoder(function))
    assert fits == [10, 20, 30, 40, 50]
    encoded = [text for text in function.items if text != "text"]  # on which an encoder is tried
    assert sorted(encoded) == sorted(TEXTS)


@pytest.mark.parametrize("order_known", [False, True])
def test_names_of_classes(order_known):
    """Names are compared as names: a class that turns up late does not renumber the others."""
    classes = ["zebra", "money", "animals"] if order_known else None
    held_out = HELD_OUT[0], NAMES[HELD_OUT[1]]
    run = askance.loop(
        POOL, batch=10, start=0, strategy="margin", classes=classes,
        stop=StablePredictions(kappa=1.0) & TargetAccuracy(1.0), held_out=held_out,
    )  # fmt: skip
    for _ in range(4):
        run.ask(encoder())
        run.tell(run.waiting, NAMES[Y_POOL[run.waiting]])
    run.ask(encoder())
    last = run.checkpoints[-1]
    said = {"money", "animals"} if not order_known else {1, 2}
    assert set(last.predictions.tolist()) <= said
    assert last.accuracy > 0.8


def test_held_out_names_and_numbers_are_not_compared():
    held_out = HELD_OUT[0], NAMES[HELD_OUT[1]]
    run = loop(TargetAccuracy(0.9), held_out=held_out, start=10)
    with pytest.raises(LabelError, match="give both as names or both as numbers"):
        run.ask(encoder())
