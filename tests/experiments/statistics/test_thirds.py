"""Gains by thirds of the budget, against the loops of `tests/naive`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.experiments.statistics.thirds import NAMES, gains, mean_gains, thirds
from tests.experiments.statistics.worlds import experiment, noise
from tests.naive import statistics as naive


@pytest.mark.parametrize(
    ("last", "sizes"), [(2, (1, 1, 0)), (3, (1, 1, 1)), (4, (2, 1, 1)), (19, (7, 6, 6))]
)
def test_every_round_but_the_first_is_in_one_third(last, sizes):
    parts = thirds(range(last + 1))
    assert tuple(map(len, parts)) == sizes
    assert [place for part in parts for place in part] == list(range(1, last + 1))


@settings(max_examples=40, deadline=None)
@given(
    seeds=st.integers(1, 6),
    rounds=st.integers(4, 12),
    holes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 11)), max_size=12),
    draw=st.integers(0, 10**6),
)
def test_like_the_loops(seeds, rounds, holes, draw):
    tables = noise(("random", "badge"), seeds, rounds, draw, {"badge": 0.05})
    for seed, round in holes:
        if seed < seeds and 0 < round < rounds:
            tables["badge"][seed, round] = np.nan
    one = experiment(tables)
    by_round = {
        rule: {
            seed: {t: value for t, value in enumerate(run) if np.isfinite(value)}
            for seed, run in enumerate(table)
        }
        for rule, table in tables.items()
    }
    wanted = naive.gains_by_third(by_round, "badge", "random", one.rounds)
    found = gains(one, "badge")
    assert len(found) == len(wanted) == len(NAMES)
    for ours, (mean, low, high) in zip(found, wanted, strict=True):
        if mean is None:
            assert ours is None
            continue
        assert ours.value == pytest.approx(mean, abs=1e-12)
        if low is None:
            assert np.isnan(ours.low)
            continue
        assert (ours.low, ours.high) == (pytest.approx(low), pytest.approx(high))


def test_a_round_in_which_a_network_did_not_train_does_not_count():
    lifted = {"random": [[0.5] * 7] * 3, "badge": [[0.5] + [0.6] * 5 + [0.9]] * 3}
    one = experiment(lifted)
    flagged = np.zeros_like(one.accuracy_MST)
    flagged[0, :, 6] = 1  # the network of random, in the last round
    there = [gain.value for gain in gains(one, "badge")]
    left = [
        gain.value for gain in gains(type(one)(**{**vars(one), "flagged_MST": flagged}), "badge")
    ]
    assert there == pytest.approx([0.15, 0.1, 0.1, 0.25])
    assert left == pytest.approx([0.1] * 4)


def test_over_experiments_the_datasets_are_the_units():
    def made(lift, dataset, draw):
        tables = noise(("random", "badge"), 5, 7, draw, {"badge": lift})
        return experiment(tables, name=f"{dataset}-{draw}", dataset=dataset)

    many = [made(0.02, "a", 0), made(0.04, "a", 1), made(0.06, "b", 2)]
    means = [[gain.value for gain in gains(one, "badge")] for one in many]
    for stage, found in enumerate(mean_gains(many, "badge")):
        assert found.value == pytest.approx(np.mean([each[stage] for each in means]))
        assert found.n == 2
    short = experiment({"random": [[0.5] * 7], "badge": [[0.5] + [np.nan] * 5 + [0.9]]})
    assert mean_gains([*many, short], "badge")[:2] == [None, None]
