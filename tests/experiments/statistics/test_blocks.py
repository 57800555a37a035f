"""Penalty matrices of five seeds each, and rounds in which a network did not train."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.experiments.statistics.blocks import block_penalty, block_shares, blocks, shares
from askance.experiments.statistics.penalty import penalty
from askance.experiments.statistics.stages import is_enough, positions
from askance.experiments.statistics.table import experiments
from askance.experiments.statistics.untrained import flags, is_recorded, leave_out, left_out, shared
from tests.experiments.statistics.worlds import experiment, noise, rows
from tests.naive.statistics import block_matrix


def recorded(accuracies, flagged=(), unknown=(), **options):
    """An experiment; {(rule, seed, round)} are flagged, those of `unknown` were not recorded."""

    def flag(row):
        key = (row.strategy, row.seed, row.round)
        return None if key in unknown else key in flagged

    made = rows(accuracies, **options)
    (one,) = experiments([replace(row, flagged=flag(row)) for row in made])
    return one


RULES = ("random", "entropy", "grad")


def test_seeds_are_cut_into_fives_in_rising_order():
    one = experiment(noise(RULES, seeds=23))
    assert [part.seeds for part in blocks(one)] == [
        tuple(range(start, start + 5)) for start in (0, 5, 10, 15)
    ]
    # The sixth lacks a round of one rule, and is in no block.
    tables = noise(RULES, seeds=11)
    tables["grad"][5, 2] = np.nan
    assert [part.seeds for part in blocks(experiment(tables))] == [
        (0, 1, 2, 3, 4),
        (6, 7, 8, 9, 10),
    ]
    assert blocks(experiment(noise(RULES, seeds=4))) == []


def test_a_single_block_is_the_papers_matrix():
    one = experiment(noise(RULES, rounds=9, lifts={"grad": 0.05}))
    for stage in ("all", "early", "late"):
        plain = penalty([one], stage)
        np.testing.assert_allclose(block_shares(one, stage)[0], plain.matrix_MM)
        np.testing.assert_allclose(block_penalty([one, one], stage).matrix_MM, 2 * plain.matrix_MM)
        np.testing.assert_array_equal(
            block_penalty([one], stage).experiments_MM, plain.experiments_MM
        )


@given(
    st.integers(5, 17), st.integers(2, 9), st.lists(st.tuples(st.integers(0, 16), st.integers(0, 8)),
    max_size=12), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_blocks_are_those_of_loops(seeds, rounds, out, seed):
    accuracies = noise(RULES, seeds, rounds, seed, {"grad": 0.03})
    flagged = {("entropy", s, r) for s, r in out}
    tables = {
        rule: {s: dict(enumerate(run)) for s, run in enumerate(table)}
        for rule, table in accuracies.items()
    }
    expected = block_matrix(tables, range(1, rounds), set(out))
    share, _ = block_shares(recorded(accuracies, flagged))
    if expected is None:
        assert share is None
    else:
        np.testing.assert_allclose(share, expected)


def test_twenty_seeds_at_once_see_more_than_five():
    one = experiment(noise(RULES, seeds=20, rounds=9, lifts={"grad": 0.02}))
    at_once = block_shares(one, size=20)[0]
    assert at_once[2, 0] > block_shares(one)[0][2, 0]
    np.testing.assert_allclose(at_once, penalty([one]).matrix_MM)


def test_round_0_is_counted_only_where_it_is_said():
    one = experiment({"random": np.zeros((5, 3)) + 0.5, "grad": [[0.5, 0.7, 0.7]] * 5})
    assert shares(one)[1, 0] == 1
    assert shares(one, first=0)[1, 0] == pytest.approx(2 / 3)  # nobody wins round 0


def test_a_rule_that_did_not_train_takes_its_round_from_all():
    accuracies = noise(RULES, rounds=6, lifts={"grad": 0.05})
    one = recorded(accuracies, {("entropy", 2, 3)})
    assert flags(one).sum() == 1
    gone = leave_out(one)
    assert np.isnan(gone.accuracy_MST[:, 2, 3]).all()
    assert np.isfinite(gone.accuracy_MST).sum() == gone.accuracy_MST.size - len(RULES)
    # Those that are left out with entropy are left out without it too.
    assert not flags(one.only(("random", "grad"))).any()
    np.testing.assert_array_equal(flags(shared(one).only(("random", "grad"))), flags(one))
    assert not left_out(one, keep=True).any()
    # No block of five seeds has that round, which leaves four of five rounds.
    kept = one.part(rounds=[1, 2, 4, 5])
    np.testing.assert_allclose(shares(one), shares(kept))
    np.testing.assert_allclose(shares(one, flagged=True), penalty([one]).matrix_MM)


def test_with_less_than_half_of_its_rounds_a_block_does_not_count():
    accuracies = noise(RULES, rounds=6)
    half = recorded(accuracies, {("grad", 0, r) for r in (1, 2)})
    assert shares(half) is not None
    assert shares(half, "early") is None  # one of three is left
    less = recorded(accuracies, {("grad", 0, r) for r in (1, 2, 3)})
    assert block_shares(less) == (None, 0)
    told = block_penalty([less])
    assert told.left_out == ("made: no five seeds with half of the rounds",)
    assert not told.matrix_MM.any()


def test_what_was_not_recorded_is_not_flagged_and_is_known():
    accuracies = noise(RULES)
    plain = experiment(accuracies)
    assert plain.flagged_MST is None
    assert not flags(plain).any()
    assert not is_recorded(plain)
    assert shared(plain) is plain
    assert is_recorded(recorded(accuracies))
    some = recorded(accuracies, unknown={("grad", 1, 2)})
    assert not is_recorded(some)
    assert not flags(some).any()


def test_a_part_keeps_its_flags():
    one = recorded(noise(RULES, seeds=6), {("grad", 4, 1)})
    assert flags(one.of_seeds([4, 5, 9])).tolist() == [[False, True, False, False], [False] * 4]
    assert one.of_seeds([4, 5, 9]).seeds == (4, 5)
    assert flags(one.part(rounds=[1], seeds=[0, 4])).tolist() == [[False], [True]]


@pytest.mark.parametrize(
    ("stage", "first", "numbers"),
    [
        ("all", 1, [1, 2, 3, 4, 5, 6, 7, 8]),
        ("all", 0, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("early", 1, [1, 2, 3]),
        ("early", 0, [0, 1, 2]),
        ("mid", 1, [3, 4, 5]),
        ("late", 1, [6, 7, 8]),
    ],
)
def test_stages(stage, first, numbers):
    assert positions(range(9), stage, first) == numbers


@pytest.mark.parametrize(
    ("kept", "of", "enough"),
    [(0, 0, False), (0, 3, False), (1, 3, False), (2, 3, True), (4, 8, True)],
)
def test_half_is_enough(kept, of, enough):
    assert is_enough(kept, of) == enough
