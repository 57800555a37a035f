"""Each rule stops where its definition says, and says why."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance import stopping
from askance.errors import InputError, KindError, UnknownError
from askance.stopping import (
    Budget,
    Checkpoint,
    Plateau,
    StablePredictions,
    TargetAccuracy,
    wilson,
)
from tests.naive import stopping as naive


def of_predictions(*rows):
    return [Checkpoint(20 * (i + 1), predictions=np.asarray(row)) for i, row in enumerate(rows)]


def of_accuracies(*accuracies, batch=20, n=None):
    return [Checkpoint(batch * (i + 1), accuracy=a, n=n) for i, a in enumerate(accuracies)]


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), min_size=1, max_size=6),
    st.sampled_from([0.3, 0.7, 1.0]),
    st.integers(1, 3),
)
def test_stable_predictions_is_its_definition(rows, least, window):
    rule = StablePredictions(kappa=least, window=window)
    assert bool(rule(of_predictions(*rows))) == naive.is_stable(rows, least, window)


def test_stable_predictions_needs_a_window_of_pairs():
    same = [0, 1, 0, 1]
    rule = StablePredictions()
    assert rule(of_predictions(same, same, same)) is None
    assert "kappa 1.000, at least 0.99" in rule(of_predictions(same, same, same, same))
    assert rule(of_predictions(same, same, [1, 0, 1, 0], same)) is None


def test_models_that_know_one_class_alone_are_not_stable():
    """Their kappa is 0/0: a model that has seen one class agrees with the next by chance alone."""
    assert StablePredictions(window=1)(of_predictions([0, 0, 0], [0, 0, 0])) is None


def test_stable_predictions_wants_one_sample():
    with pytest.raises(InputError, match="the sample must stay the same"):
        StablePredictions()(of_predictions([0, 1], [0, 1, 1]))
    with pytest.raises(InputError, match="needs the predictions of each model"):
        StablePredictions()([Checkpoint(20, accuracy=0.5)])


@given(
    st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1)), min_size=1, max_size=12),
    st.sampled_from([0.01, 0.05]),
    st.sampled_from([20, 100]),
)
def test_plateau_is_its_definition(steps, gain, over):
    labels = np.cumsum([step for step, _ in steps]).tolist()
    accuracies = [accuracy for _, accuracy in steps]
    history = [Checkpoint(n, accuracy=a) for n, a in zip(labels, accuracies, strict=True)]
    rule = Plateau(gain=gain, over=over)
    assert bool(rule(history)) == naive.is_plateau(labels, accuracies, gain, over)


def test_plateau_compares_as_many_models_as_the_labels_hold():
    rising = of_accuracies(*np.linspace(0.1, 0.9, 20))
    assert Plateau()(rising) is None
    flat = of_accuracies(*np.linspace(0.1, 0.9, 10), *[0.9] * 10)
    assert Plateau()(flat[:14]) is None  # the models before were still rising
    assert "+0.00 points in 100 labels" in Plateau()(flat)
    assert Plateau()(of_accuracies(0.5, 0.5, 0.5)) is None  # 60 labels
    # Batches beyond the window: one model against the one before.
    assert Plateau(gain=0.01)(of_accuracies(0.5, 0.54, batch=500)) is not None
    assert Plateau(gain=0.01)(of_accuracies(0.5, 0.56, batch=500)) is None


def test_a_plateau_of_one_number_of_labels_says_nothing():
    assert Plateau()([Checkpoint(20, accuracy=0.5), Checkpoint(20, accuracy=0.5)]) is None


@pytest.mark.parametrize(("items", "stops"), [(100, False), (1000, True)])
def test_a_sure_plateau_waits_for_enough_held_out_items(items, stops):
    right = np.arange(items) % 10 > 0
    history = [Checkpoint(labels, correct=right) for labels in (100, 200)]
    assert bool(Plateau(level=0.95)(history)) == stops


def test_a_sure_plateau_is_of_the_model_of_so_many_labels_ago():
    right, wrong = np.ones(2000, bool), np.zeros(2000, bool)
    history = [
        Checkpoint(labels, correct=correct)
        for labels, correct in [(20, wrong), (110, right), (190, wrong), (200, right)]
    ]
    assert "surely less than 1" in Plateau(level=0.95)(history)
    assert Plateau(level=0.95)(history[2:]) is None  # ten labels are no hundred
    with pytest.raises(InputError, match="held-out items must stay the same"):
        Plateau(level=0.95)([Checkpoint(20, correct=right[:9]), Checkpoint(120, correct=right)])
    with pytest.raises(InputError, match="plateau needs the correct of each model"):
        Plateau(level=0.95)(of_accuracies(0.5))


def test_budget():
    assert Budget(60)(of_accuracies(0.1, 0.2)) is None
    assert "60 of 60 labels" in Budget(60)(of_accuracies(0.1, 0.2, 0.3))
    assert Budget(60)([]) is None


@given(st.integers(1, 400), st.data())
def test_target_is_the_lower_end_of_the_interval(n, data):
    right = data.draw(st.integers(0, n))
    correct = np.arange(n) < right
    said = TargetAccuracy(0.9)([Checkpoint(20, correct=correct)])
    assert bool(said) == (wilson(right, n).low >= 0.9)


def test_twenty_right_of_twenty_are_no_95_percent():
    assert TargetAccuracy(0.95)(of_accuracies(1.0, n=20)) is None
    assert "at least 96.3%" in TargetAccuracy(0.95)(of_accuracies(1.0, n=100))
    with pytest.raises(InputError, match="an accuracy alone has no interval"):
        TargetAccuracy(0.95)(of_accuracies(1.0))


@pytest.mark.parametrize("target", [0.8, 0.9, 0.95])
def test_watching_for_the_target_stops_too_early_as_often_as_is_written(target):
    """Runs whose model is just as good as the target, looked at after every tenth of 300 answers."""
    looks = np.arange(10, 301, 10)
    rule = TargetAccuracy(target)
    least = [
        next(k for k in range(n + 2) if k > n or rule([Checkpoint(1, accuracy=k / n, n=n)]))
        for n in looks.tolist()
    ]
    right = (np.random.default_rng(0).random((20_000, 300)) < target).cumsum(axis=1)[:, looks - 1]
    passed = right >= np.asarray(least)
    assert passed[:, -1].mean() < 0.03
    assert 0.055 < passed.any(axis=1).mean() < 0.115


def test_rules_combine_with_or_and_and():
    early, late = Budget(20), Budget(60)
    history = of_accuracies(0.1, 0.2)
    assert (early | late)(history) == early(history)
    assert (early & late)(history) is None
    assert "20 labels; the budget" in (early & late)(of_accuracies(0.1, 0.2, 0.3))
    both = StablePredictions() | Plateau(level=0.9) | late
    assert both.needs == {"predictions", "correct"}


def test_a_plain_function_is_a_rule():
    def enough(history):
        return history[-1].accuracy > 0.15

    assert (Budget(500) | enough)(of_accuracies(0.1)) is None
    assert (Budget(500) | enough)(of_accuracies(0.1, 0.2)) == "enough says so"
    assert stopping.of(lambda history: "I have had enough")([]) == "I have had enough"
    assert stopping.of(lambda history: "")([]) is None
    for wrong in ("budget", Budget, None):
        with pytest.raises(KindError, match="stop must be a rule"):
            stopping.of(wrong)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: StablePredictions(kappa=1.2), "kappa must be a number above 0 and at most 1"),
        (lambda: StablePredictions(window=0), "window must be a whole number ≥ 1"),
        (lambda: Plateau(gain=0), "gain must be a number above 0"),
        (lambda: Plateau(gain="a lot"), "gain must be a number above 0"),
        (lambda: Plateau(over=0), "over must be a whole number ≥ 1"),
        (lambda: Plateau(level=95), "level must be between 0 and 1"),
        (lambda: Budget(0.5), "labels must be a whole number ≥ 1"),
        (lambda: TargetAccuracy(95), "accuracy must be a number above 0 and at most 1"),
        (lambda: TargetAccuracy(0.9, level=1), "level must be between 0 and 1"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_rules_are_found_by_name():
    assert stopping.get("plateau", gain=0.02) == Plateau(gain=0.02)
    assert stopping.names() == ["budget", "plateau", "stable-predictions", "target-accuracy"]
    with pytest.raises(UnknownError, match="did you mean 'plateau'"):
        stopping.get("plateu")
    with pytest.raises(UnknownError, match="known: gain, level, over"):
        stopping.get("plateau", window=3)
    with pytest.raises(InputError, match="its options are labels"):
        stopping.get("budget")
