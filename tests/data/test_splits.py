"""The splits: disjoint, stratified, the same every time, and deaf to any seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from askance import data
from askance.data.splits import split_indices, stratified
from askance.errors import DataError

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
