"""The ranked table against loops straight from its words."""

import statistics
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.experiments.formats import ResultRow
from askance.experiments.summary import ranking


@st.composite
def tables(draw):
    """Rows of one experiment: every rule with the same seeds, some runs cut short."""
    rules = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3))
    rules += ["random"] if draw(st.booleans()) or not rules else []
    seeds, rounds = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    rows = []
    for rule in rules:
        for seed in range(seeds):
            for number in range(draw(st.integers(1, rounds))):
                accuracy = draw(st.sampled_from([0.0, 0.25, 0.5, 0.625, 0.75, 1.0]))
                labels = 10 * (number + 1)
                rows.append(ResultRow("e", "d", "m", rule, seed, number, labels, accuracy))
    return draw(st.permutations(rows))


def naive(rows):
    rules = sorted({row.strategy for row in rows})
    at = {(row.strategy, row.seed, row.round): row for row in rows}

    def seeds_of(rule):
        return sorted({row.seed for row in rows if row.strategy == rule})

    def rounds_of(rule):
        return [t for t in range(99) if all((rule, seed, t) in at for seed in seeds_of(rule))]

    def mean_at(rule, t):
        return statistics.fmean(at[rule, seed, t].accuracy for seed in seeds_of(rule))

    def area(rule, seed):
        """Trapezes under the curve, over the labels they span."""
        curve = [at[rule, seed, t] for t in rounds_of(rule)]
        if len(curve) == 1:
            return curve[0].accuracy
        spans = [(b.labels - a.labels) * (a.accuracy + b.accuracy) / 2 for a, b in pairwise(curve)]
        return sum(spans) / (curve[-1].labels - curve[0].labels)

    goal = mean_at("random", rounds_of("random")[-1]) if "random" in rules else None
    ranks = {}
    for rule in rules:
        means = [area(rule, seed) for seed in seeds_of(rule)]
        labels = None
        for t in reversed(rounds_of(rule)):
            if goal is not None and mean_at(rule, t) >= goal - 1e-12:
                labels, now = at[rule, 0, t].labels, mean_at(rule, t)
                if t:  # between rounds by a straight line
                    was, before = at[rule, 0, t - 1].labels, mean_at(rule, t - 1)
                    share = (goal - before) / (now - before) if now > before else 1
                    labels = was + share * (labels - was)
        ranks[rule] = (
            len(means),
            statistics.fmean(means),
            statistics.stdev(means) if len(means) > 1 else None,
            mean_at(rule, rounds_of(rule)[-1]),
            labels,
        )
    return ranks


@settings(deadline=None)
@given(tables())
def test_ranking_is_what_its_words_say(rows):
    ranks = ranking(rows)
    expected = naive(rows)
    assert {rank.strategy for rank in ranks} == set(expected)
    for rank in ranks:
        seeds, mean, spread, final, labels = expected[rank.strategy]
        assert rank.seeds == seeds
        assert rank.mean_accuracy == pytest.approx(mean)
        assert rank.spread == (None if spread is None else pytest.approx(spread, abs=1e-12))
        assert rank.final_accuracy == pytest.approx(final)
        assert rank.labels_to_match == (None if labels is None else pytest.approx(labels))
    means = [rank.mean_accuracy for rank in ranks]
    assert means == sorted(means, reverse=True)


def test_random_reaches_its_own_end_and_a_better_rule_sooner():
    curves = {"random": [0.1, 0.2, 0.5, 0.4], "grad": [0.1, 0.4, 0.3, 0.9], "bad": [0.1] * 4}
    rows = [
        ResultRow("e", "d", "m", rule, seed, t, 20 * (t + 1), accuracy)
        for rule, curve in curves.items()
        for seed in range(3)
        for t, accuracy in enumerate(curve)
    ]
    labels = {rank.strategy: rank.labels_to_match for rank in ranking(rows)}
    assert labels == {"grad": 40, "random": pytest.approx(160 / 3), "bad": None}
    assert [rank.strategy for rank in ranking(rows)] == ["grad", "random", "bad"]


def test_without_random_there_is_nothing_to_match():
    (rank,) = ranking([ResultRow("e", "d", "m", "grad", 0, 0, 20, 0.5)])
    assert (rank.labels_to_match, rank.spread, rank.seeds) == (None, None, 1)
