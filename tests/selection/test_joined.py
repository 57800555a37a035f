"""A GPU is given a pool's blocks in larger ones: the same rows in the same places."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from askance.embedding import Embedding
from askance.selection import inputs, select_many
from askance.selection.inputs import joined_for

CUDA = torch.device("cuda")  # only its name is looked at


def blocks(sizes, columns=4):
    matrix = torch.arange(sum(sizes) * columns, dtype=torch.float32).view(-1, columns)
    start = 0
    for size in sizes:
        yield Embedding(features=matrix[start : start + size], positions=range(start, start + size))
        start += size


@pytest.mark.parametrize("rows", [1, 3, 5, 100])
def test_rows_and_places_are_the_same_in_fewer_blocks(rows, monkeypatch):
    monkeypatch.setattr(inputs, "_JOINED_BYTES", rows * 16)
    sizes = [1, 4, 2, 2, 1, 5]
    joined = list(joined_for(CUDA, blocks(sizes)))
    assert all(len(block) == len(block.features) for block in joined)
    assert [p for block in joined for p in block.positions] == list(range(15))
    assert torch.cat([b.features for b in joined]).equal(next(blocks([15])).features)
    assert all(len(block) >= rows for block in joined[:-1])
    assert len(joined) == {1: 6, 3: 3, 5: 3, 100: 1}[rows]


def test_places_need_not_follow_each_other():
    first, second = blocks([2, 2])
    apart = [
        Embedding(features=first.features, positions=np.array([3, 9])),
        Embedding(features=second.features, positions=np.array([11, 40])),
    ]
    (joined,) = joined_for(CUDA, iter(apart))
    assert joined.positions.tolist() == [3, 9, 11, 40]


def test_blocks_with_inputs_or_without_numbers_stay_as_they_are():
    kept = [
        Embedding(positions=range(2), features=torch.ones(2, 3), inputs=torch.ones(2, 7)),
        Embedding(positions=range(2, 4)),
    ]
    assert list(joined_for(CUDA, iter(kept))) == kept


def test_a_cpu_is_given_them_as_they_come():
    kept = list(blocks([3, 3]))
    assert list(joined_for(torch.device("cpu"), iter(kept))) == kept
    assert list(joined_for(None, iter(kept))) == kept


def test_selections_of_several_pools_say_how_much_was_read():
    generator = torch.Generator().manual_seed(0)
    pools = [
        Embedding(torch.randn(30, 3, generator=generator), torch.randn(30, 4, generator=generator))
        for _ in range(2)
    ]
    labeled = [(pool[:5], torch.zeros(5, dtype=torch.int64)) for pool in pools]
    both = select_many(labeled, pools, 4, strategy="badge", seeds=[0, 1], exclude=[range(3), None])
    assert [(one.read.rows, one.read.excluded) for one in both] == [(30, 3), (30, 0)]
    assert all(one.seconds > 0 for one in both)
