"""Poker hands are OpenML 155: sorted, none twice, classes by the rules of poker, and all of them."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance import data
from askance.data import catalog
from askance.data.official import pokerhand
from askance.data.official.pokerhand import COUNTS, ranking, unscaled
from askance.data.splits import split_indices
from askance.errors import DataError
from tests.data.builders import poker, poker_hands

COLUMNS = [f"{kind}{card}" for card in range(1, 6) for kind in "SC"]
CARDS = st.tuples(st.integers(1, 4), st.integers(1, 13))


@pytest.fixture
def compact(tmp_path, monkeypatch):
    """`compact(change)`: a small compact copy, its table changed, in a folder of its own."""

    def build(change=lambda hands, labels: (hands, labels), **more):
        hands, labels = poker_hands()
        monkeypatch.setattr(pokerhand, "COUNTS", tuple(np.bincount(labels, minlength=10).tolist()))
        hands, labels = change(hands.copy(), labels.copy())
        table = {name: pa.array(hands[:, i], pa.uint8()) for i, name in enumerate(COLUMNS)}
        table |= {"class": pa.array(labels, pa.uint8())} | more
        pq.write_table(pa.table(table), tmp_path / "pokerhand.parquet")
        return tmp_path

    return build


# --- the rules of the game ------------------------------------------------------------------------


@given(hand=st.lists(CARDS, min_size=5, max_size=5, unique=True))
def test_the_class_is_the_one_the_rules_give_in_any_order(hand):
    assert ranking(np.asarray(hand).reshape(1, 10)).tolist() == [poker(hand)]


def test_all_hands_there_are():
    """The number of hands of each class is known: 2,598,960 in all, of which 4 are royal flushes."""
    deck = np.asarray([(suit, rank) for rank in range(1, 14) for suit in range(1, 5)])
    taken = np.fromiter(itertools.chain(*itertools.combinations(range(52), 5)), np.int8)
    counts = np.zeros(10, dtype=np.int64)
    for some in np.array_split(deck[taken.reshape(-1, 5)].reshape(-1, 10), 20):
        counts += np.bincount(ranking(some), minlength=10)
    assert counts.tolist() == [
        1_302_540, 1_098_240, 123_552, 54_912, 10_200, 5_108, 3_744, 624, 36, 4
    ]  # fmt: skip


# --- the official file ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scale",
    [
        lambda hands: hands,
        lambda hands: np.round((hands - hands.min(axis=0)) / np.ptp(hands, axis=0), 6),
        lambda hands: np.round((hands - 1) / np.tile([3, 12], 5), 3),
        lambda hands: np.round((hands - hands.mean(axis=0)) / hands.std(axis=0), 6),
    ],
)
def test_scaled_columns_are_whole_numbers_again(scale):
    hands, _ = poker_hands()
    np.testing.assert_array_equal(unscaled(scale(hands.astype(np.float64)), "here"), hands)


def test_a_column_of_one_value_has_no_scale():
    hands, _ = poker_hands()
    hands[:, 4] = 2
    with pytest.raises(DataError, match="column S3 holds a single value"):
        unscaled(hands.astype(np.float64), "here")


# --- compact copies -------------------------------------------------------------------------------


def test_a_compact_copy_is_read(compact):
    hands, labels = poker_hands()
    dataset = data.load("pokerhand", data_dir=compact(), download=False)
    np.testing.assert_array_equal(dataset.raw[3], hands[dataset.train.index[3]])
    assert dataset.train.inputs.shape == (144, 10)
    np.testing.assert_array_equal(dataset.train.labels, labels[dataset.train.index])
    assert (len(dataset.val), len(dataset.test)) == (16, 40)


def swapped(hands, labels):
    """The first two cards of a hand in the other order, as they may have been dealt."""
    hands[5, [0, 1, 2, 3]] = hands[5, [2, 3, 0, 1]]
    return hands, labels


def twice(hands, labels):
    """A hand in the place of another of its class."""
    one, other = np.flatnonzero(labels == 0)[:2]
    hands[other] = hands[one]
    return hands, labels


def told_wrongly(hands, labels):
    """Two hands with each other's class: as many of each as there were."""
    labels[[0, 6]] = labels[[6, 0]]
    return hands, labels


def of_suit_five(hands, labels):
    hands[9, 8] = 5
    return hands, labels


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swapped, r"in ascending order of rank, then suit \(UCI's own .*the first is row 5 \(S1 1, C1"),
        (twice, "no hand may be there twice; 1 rows are not so"),
        (told_wrongly, "the rules of poker give; 2 rows are not so, the first is row 0"),
        (of_suit_five, "suits must be 1 to 4 and ranks 1 to 13; 1 rows are not so, the first is row 9"),
        (lambda h, c: (h[1:], c[1:]), r"expected 200 hands, of the classes .*, got 199, of \("),
        (lambda h, c: (h, np.where(c == 9, 10, c)), "must be of 10 classes"),
    ],
)  # fmt: skip
def test_other_hands_are_refused(change, message, compact):
    with pytest.raises(DataError, match=rf"pokerhand.parquet: .*{message}"):
        data.load("pokerhand", data_dir=compact(change), download=False)


def test_uci_s_hands_are_refused_and_the_error_says_what_to_do(compact):
    """The copy of before: UCI's rows as dealt, and a column `split`."""

    def dealt(hands, labels):
        rng = np.random.default_rng(0)
        cards = rng.permuted(100 * hands[:, 0::2] + hands[:, 1::2], axis=1)
        return np.stack([cards // 100, cards % 100], axis=2).reshape(-1, 10), labels

    folder = compact(dealt, split=pa.array(["train"] * 150 + ["test"] * 50))
    with pytest.raises(DataError, match="Delete this file and run `askance data fetch pokerhand`"):
        data.load("pokerhand", data_dir=folder, download=False)


def test_other_columns_are_refused(tmp_path):
    pq.write_table(pa.table({"x": [[1.0] * 10], "label": [0]}), tmp_path / "pokerhand.parquet")
    with pytest.raises(DataError, match=r"pokerhand.parquet: no column 'S1'; it has x, label"):
        data.load("pokerhand", data_dir=tmp_path, download=False)


# --- the whole of it ------------------------------------------------------------------------------


def test_the_catalogue_counts_the_hands_that_are_checked():
    assert catalog.entry("pokerhand").official == (sum(COUNTS), 0)
    assert len(catalog.entry("pokerhand").classes) == len(COUNTS)


def test_the_split_of_classes_of_eleven_and_of_two():
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), COUNTS))
    cut, again = (split_indices("pokerhand", labels, cut_test=True, pool=None) for _ in range(2))
    assert [len(rows) for rows in (cut.train, cut.val, cut.test)] == [660_861, 2_500, 165_840]
    for one, other in ((cut.train, again.train), (cut.val, again.val), (cut.test, again.test)):
        np.testing.assert_array_equal(one, other)
    assert len(np.unique(np.concatenate([cut.train, cut.val, cut.test]))) == sum(COUNTS)
    train, val, test = (
        np.bincount(labels[r], minlength=10) for r in (cut.train, cut.val, cut.test)
    )
    assert (np.abs(test - np.asarray(COUNTS) / 5) < 1).all()
    assert (np.abs(val - 2_500 * (train + val) / 663_361) < 1).all()
    assert (train[8] > 0, train[9] > 0, test[8] > 0) == (True, True, True)
