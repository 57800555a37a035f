"""The splits: disjoint, stratified, the same every time, and deaf to any seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from askance import data
from askance.data.splits import Imbalance, rare_classes, split_indices, stratified, thinned
from askance.errors import AskanceError, DataError

COUNTS = st.lists(st.integers(1, 40), min_size=1, max_size=8)


def shuffled(counts, seed=0):
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(labels)


@given(counts=COUNTS, share=st.floats(0, 0.5), seed=st.integers(0, 99))
def test_a_stratified_share_is_within_one_of_each_class_s_quota(counts, share, seed):
    labels = shuffled(counts, seed)
    size = int(share * len(labels))
    rows = stratified(labels, size, np.random.default_rng(seed))
    taken = np.bincount(labels[rows], minlength=len(counts))
    quota = size * np.asarray(counts) / len(labels)
    assert len(np.unique(rows)) == len(rows)
    assert (np.abs(taken - quota) <= 1).all()
    assert (taken < counts).all(), "a class gave all its rows away"
    if min(counts) > 1:
        assert len(rows) == size


@given(counts=st.lists(st.integers(3, 30), min_size=2, max_size=8), seed=st.integers(0, 99))
def test_at_least_one_of_each_class_where_asked(counts, seed):
    labels = shuffled(counts, seed)
    cut = split_indices("mine", labels, cut_test=True, pool=None, at_least=1)
    for rows in (cut.train, cut.val, cut.test):
        assert set(labels[rows]) == set(range(len(counts)))


@given(counts=st.lists(st.integers(20, 60), min_size=1, max_size=6), pool=st.integers(5, 50))
def test_no_row_is_in_two_splits(counts, pool):
    labels = shuffled(counts)
    cut = split_indices("mine", labels, cut_test=True, pool=pool)
    together = np.concatenate([cut.train, cut.val, cut.test])
    assert len(np.unique(together)) == len(together)
    assert len(cut.train) == min(pool, len(labels) - len(cut.val) - len(cut.test))


def test_the_protocol_s_sizes():
    official = split_indices("cifar10", np.arange(50_000) % 10, cut_test=False, pool=25_000)
    assert (len(official.train), len(official.val), official.test) == (25_000, 2_500, None)
    smaller = split_indices("cifar10", np.arange(27_500) % 10, cut_test=False, pool=25_000)
    assert (len(smaller.train), len(smaller.val)) == (25_000, 2_500)
    pooled = split_indices("isolet", np.arange(7_797) % 26, cut_test=True, pool=None)
    assert (len(pooled.test), len(pooled.val), len(pooled.train)) == (1_559, 623, 5_615)


def test_the_pool_is_sampled_uniformly():
    """Uniformly, not by class: the chance of every row is the same (chi-square over ten blocks)."""
    labels = np.arange(20_000) % 10
    counts = sum(
        np.histogram(
            split_indices(f"d{i}", labels, cut_test=False, pool=5_000).train, 10, (0, 20_000)
        )[0]
        for i in range(20)
    )
    expected = counts.mean()
    # 9 degrees of freedom: 27.9 is passed once in a thousand. Without replacement it is smaller still.
    assert ((counts - expected) ** 2 / expected).sum() < 27.9


def test_the_splits_of_two_datasets_are_not_the_same_draw():
    labels = np.arange(1_000) % 10
    one, two = (
        split_indices(name, labels, cut_test=False, pool=None) for name in ("svhn", "cifar10")
    )
    assert set(one.val) != set(two.val)


def test_loading_twice_gives_the_same_and_no_global_seed_moves_it():
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    one = data.load("digits")
    torch.manual_seed(2)
    np.random.seed(2)  # noqa: NPY002
    two = data.load("digits")
    for split in ("train", "val", "test"):
        a, b = getattr(one, split), getattr(two, split)
        np.testing.assert_array_equal(a.index, b.index)
        assert torch.equal(a.inputs, b.inputs)
        assert torch.equal(a.labels, b.labels)


def test_loading_moves_no_global_generator():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    data.load("digits")
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()  # noqa: NPY002


def test_too_few_rows_for_a_validation_split():
    with pytest.raises(DataError, match="3 rows are too few"):
        split_indices("mine", np.zeros(3, dtype=np.int64), cut_test=False, pool=None)


# --- rare classes -----------------------------------------------------------------------------------


@given(counts=COUNTS, keep=st.floats(0.01, 0.99), seed=st.integers(0, 99))
def test_rare_classes_keep_their_share_and_the_others_all(counts, keep, seed):
    labels = shuffled(counts, seed)
    rows = np.random.default_rng(seed).permutation(len(labels))[: max(len(labels) // 2, 1)]
    rare = np.arange(0, len(counts), 2)
    left = thinned("mine", rows, labels, rare, keep)
    assert [row for row in rows if row in set(left)] == left.tolist()
    for label in range(len(counts)):
        before, after = (int((labels[some] == label).sum()) for some in (rows, left))
        expected = before if label % 2 else min(before, max(int(np.floor(keep * before + 0.5)), 1))
        assert after == expected


def test_every_row_of_a_rare_class_is_as_likely_to_be_kept():
    labels = np.zeros(20, dtype=np.int64)
    kept = np.zeros(20)
    for name in range(2_000):
        kept[thinned(f"data{name}", np.arange(20), labels, np.array([0]), 0.25)] += 1
    assert stats.chisquare(kept).pvalue > 0.001


def test_every_class_is_as_likely_to_be_rare():
    drawn = np.zeros(6)
    for name in range(2_000):
        rare = rare_classes(f"data{name}", 6, Imbalance(2))
        assert len(set(rare.tolist())) == 2
        drawn[rare] += 1
    assert stats.chisquare(drawn).pvalue > 0.001


def test_an_imbalance_is_of_the_pool_and_validation_and_leaves_the_test_as_it_is():
    plain, thin = data.load("digits"), data.load("digits", imbalance=Imbalance(4, 0.2))
    assert torch.equal(thin.test.inputs, plain.test.inputs)
    assert torch.equal(thin.test.labels, plain.test.labels)
    rare = rare_classes("digits", 10, Imbalance(4, 0.2)).tolist()
    for split in ("train", "val"):
        before, after = (getattr(one, split).labels.bincount() for one in (plain, thin))
        for label in range(10):
            share = 0.2 if label in rare else 1.0
            assert int(after[label]) == int(share * int(before[label]) + 0.5)
        assert set(getattr(thin, split).index) <= set(getattr(plain, split).index)
    np.testing.assert_array_equal(thin.raw[3].ravel() / 16, thin.train.inputs[3])
    assert "4 of the 10 classes were made rare on purpose" in thin.subset
    assert "keep 20% of their items, the test all" in thin.subset
    again = data.load("digits", imbalance=Imbalance(4, 0.2))
    assert again.fingerprint == thin.fingerprint != plain.fingerprint


def test_your_own_data_can_be_made_imbalanced(tmp_path):
    lines = [f"{i},{'abc'[i % 3]}" for i in range(300)]
    (tmp_path / "mine.csv").write_text("x,label\n" + "\n".join(lines))
    plain, thin = (
        data.load(tmp_path / "mine.csv", imbalance=each) for each in (None, Imbalance(1))
    )
    assert len(thin.test) == len(plain.test)
    assert sorted(thin.train.labels.bincount().tolist()) == [7, 72, 72]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Imbalance(0), "rare must be a whole number ≥ 1"),
        (lambda: Imbalance(2, 1.0), "keep must be a share between 0 and 1"),
        (
            lambda: data.load("digits", imbalance=Imbalance(10)),
            "10 classes cannot be rare among 10",
        ),
    ],
)
def test_an_imbalance_that_cannot_be(make, message):
    with pytest.raises(AskanceError, match=message):
        make()
