"""The numbers on the page: right, and as sure as they say."""

import numpy as np
import pytest

from askance.label.estimate import advise, per_minute, recent_gain, spaced
from askance.stopping import Checkpoint, wilson


def history(*models, sample=None):
    """(answers, right on each held-out item) of every model; all predict `sample`."""
    sample = np.zeros(0, np.int64) if sample is None else sample
    return [Checkpoint(n, predictions=sample, correct=np.asarray(right)) for n, right in models]


def test_the_gain_is_over_the_model_about_a_hundred_answers_ago():
    rng = np.random.default_rng(2)
    right = rng.random((5, 40)) < 0.5
    trained_on = [20, 90, 130, 190, 220]
    gain, answers = recent_gain(history(*zip(trained_on, right, strict=True)))
    assert answers == 90  # 130 is nearer to 120 than 90 is
    assert gain.gain == pytest.approx(right[4].mean() - right[2].mean())
    assert recent_gain([]) is None
    assert recent_gain(history((20, right[0]))) is None
    assert recent_gain(history((20, right[0]), (60, right[1]))) is None  # too near each other
    assert recent_gain(history((20, right[0][:9]), (120, right[1][:9]))) is None  # too few items


@pytest.mark.parametrize("between", [50, 80, 100, 300, 2000])
@pytest.mark.parametrize("n", [20, 25, 200])
def test_the_band_of_a_gain_is_never_beyond_the_possible(between, n):
    """Not even where all were wrong before and all are right now."""
    wrong, right = np.zeros(n, bool), np.ones(n, bool)
    for before, after in [(wrong, right), (right, wrong), (right, right)]:
        gain, answers = recent_gain(history((20, before), (20 + between, after)))
        assert -1 <= gain.low <= gain.gain <= gain.high <= 1
        assert answers == min(between, 100)
    gain, _ = recent_gain(history((20, wrong), (20 + between, right)))
    assert gain.gain == pytest.approx(min(1, 100 / between))


def test_models_that_are_compared_lie_a_batch_apart():
    kept = spaced([Checkpoint(n) for n in (20, 40, 41, 60, 79, 80, 81)], 20)
    assert [one.labels for one in kept] == [20, 40, 60, 81]
    assert spaced([], 20) == []


def test_advice():
    early = advise(history((20, [True] * 5), (40, [True] * 5)), 20)
    assert not early.stop
    assert "too early" in early.text
    assert "5 of the 20" in early.text
    flat = advise(history((100, np.ones(2000, bool)), (200, np.ones(2000, bool))), 20)
    assert flat.stop
    assert flat.gain.high < 0.01
    rising = advise(history((100, np.zeros(200, bool)), (200, np.ones(200, bool))), 20)
    assert "still learns" in rising.text
    assert not rising.stop
    unsure = advise(history((100, np.arange(30) % 2 == 0), (200, np.arange(30) % 3 > 0)), 20)
    assert "is not clear" in unsure.text
    assert not unsure.stop


def test_advice_to_stop_where_models_predict_alike():
    right, sample = np.arange(30) % 2 == 0, np.arange(120) % 3
    said = [(n, right) for n in (20, 40, 60, 80)]
    stable = advise(history(*said, sample=sample), 20)
    assert stable.stop
    assert "say the same of nearly all of 120 items" in stable.text
    assert not advise(history(*said[:3], sample=sample), 20).stop
    assert not advise(history(*said, sample=sample[:60]), 20).stop  # too few items to say so
    # A training after every answer is no reason to stop.
    often = [(n, right) for n in range(60, 80)]
    assert not advise(history(*often, sample=sample), 20).stop


def test_answers_a_minute_leave_pauses_out():
    assert per_minute([0.0, 2.0]) is None
    assert per_minute([0.0, 2.0, 4.0, 6.0]) == pytest.approx(30)
    assert per_minute([0.0, 2.0, 1000.0, 1002.0]) == pytest.approx(30)
    assert per_minute([5.0, 5.0, 5.0]) is None


def test_what_the_rule_asks_would_mislead_and_the_held_out_share_does_not():
    """A rule asks for what the model gets wrong: its questions say 0, the random ones the truth."""
    rng = np.random.default_rng(3)
    covered = biased = 0
    for _ in range(400):
        right = rng.random(1000) < 0.8  # what the model would get right
        held = rng.random(1000) < 0.1  # held out first, by chance alone
        asked = np.flatnonzero(held)[:60]
        by_rule = np.flatnonzero(~held & ~right)[:60]
        interval = wilson(int(right[asked].sum()), len(asked))
        covered += interval.low <= 0.8 <= interval.high
        wrong = wilson(int(right[by_rule].sum()), len(by_rule))
        biased += wrong.low <= 0.8 <= wrong.high
    assert covered / 400 > 0.92
    assert biased == 0
