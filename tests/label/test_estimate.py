"""The numbers on the page: right, and as sure as they say."""

import numpy as np
import pytest
from scipy import stats

from askance.label import estimate
from askance.label.estimate import advise, gain_per_100, paired_gain, per_minute, wilson


@pytest.mark.parametrize(("right", "n"), [(0, 1), (5, 5), (7, 20), (950, 1000)])
def test_wilson_is_scipys(right, n):
    interval = wilson(right, n)
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert interval.accuracy == right / n


@pytest.mark.parametrize("p", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("n", [10, 40, 200])
def test_wilson_covers(p, n):
    """Exactly, by summing over all outcomes: Wilson's coverage swings around 95%."""
    outcomes = np.arange(n + 1)
    holds = [wilson(int(k), n).low <= p <= wilson(int(k), n).high for k in outcomes]
    coverage = stats.binom.pmf(outcomes, n, p)[holds].sum()
    assert 0.90 < coverage <= 1


@pytest.mark.parametrize(("b", "c"), [(0.1, 0.1), (0.15, 0.05), (0.05, 0.0), (0.02, 0.01)])
@pytest.mark.parametrize("n", [30, 100])
def test_the_paired_interval_covers(b, c, n):
    rng = np.random.default_rng(0)
    hits, trials = 0, 3000
    for counts in rng.multinomial(n, [b, c, 1 - b - c], size=trials):
        before = np.zeros(n, bool)
        after = np.zeros(n, bool)
        after[: counts[0]] = True
        before[counts[0] : counts[0] + counts[1]] = True
        gain = paired_gain(before, after)
        assert gain.low <= gain.high
        hits += gain.low <= b - c <= gain.high
    # 3,000 trials of 95%: a standard error of 0.4 points; the interval may be wider, not narrower.
    assert hits / trials > 0.935


def test_the_gain_is_the_plain_difference():
    rng = np.random.default_rng(1)
    before, after = rng.random((2, 50)) < 0.6
    assert paired_gain(before, after).gain == pytest.approx(after.mean() - before.mean())


def test_the_gain_is_over_the_model_about_a_hundred_answers_ago():
    rng = np.random.default_rng(2)
    right = rng.random((5, 40)) < 0.5
    trained_on = [20, 90, 130, 190, 220]
    gain, between = gain_per_100(trained_on, right)
    assert between == 90  # 130 is nearer to 120 than 90 is
    expected = (right[4].mean() - right[2].mean()) * 100 / 90
    assert gain.gain == pytest.approx(expected)
    assert gain_per_100([20], right[:1]) is None
    assert gain_per_100([20, 20], right[:2]) is None


def test_advice():
    early = advise([20, 40], np.ones((2, 5), bool))
    assert not early.stop
    assert "too early" in early.text
    flat = advise([100, 200], np.ones((2, 2000), bool))
    assert flat.stop
    assert flat.per_100.high < 0.01
    before, after = np.zeros(200, bool), np.ones(200, bool)
    rising = advise([100, 200], np.stack([before, after]))
    assert "still learns" in rising.text
    unsure = advise([100, 200], np.stack([np.arange(30) % 2 == 0, np.arange(30) % 3 > 0]))
    assert "cannot be told" in unsure.text


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


def test_the_intervals_level_is_said():
    assert pytest.approx(stats.norm.ppf(0.975)) == estimate.Z
