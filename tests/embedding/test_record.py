"""`Embedding`: two matrices with one row for each point."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import askance
from askance import Embedding
from askance.errors import InputError


def an_embedding(rows: int = 5) -> Embedding:
    return Embedding(
        logits=torch.arange(rows * 3.0).reshape(rows, 3),
        features=torch.arange(rows * 2.0).reshape(rows, 2),
    )


def test_it_knows_its_size():
    assert (len(an_embedding()), an_embedding().classes) == (5, 3)
    assert Embedding(features=torch.zeros(4, 2)).classes is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    assert Embedding(logits=torch.zeros(2, 3, dtype=dtype)).logits.dtype == dtype


def test_arrays_are_taken_read_only_ones_too():
    array = np.ones((2, 3))
    array.setflags(write=False)
    assert Embedding(logits=array).logits.dtype == torch.float64
    assert Embedding(logits=[[1.0, 2.0]]).logits.shape == (1, 2)


@pytest.mark.parametrize("order", ["<f4", ">f4", ">f8"])
def test_arrays_of_any_byte_order_are_taken(order):
    assert Embedding(logits=np.array([[1.5, -2.0]], order)).logits.tolist() == [[1.5, -2.0]]


def test_it_is_cut_off_from_the_graph_it_came_from():
    logits = torch.zeros(2, 3, requires_grad=True) * 2
    assert not Embedding(logits=logits).logits.requires_grad


@pytest.mark.parametrize(
    "rows",
    [slice(1, 4), np.array([3, 0]), torch.tensor([3, 0]), np.array([True, False] * 2 + [True])],
)
def test_rows_of_both_matrices_go_together(rows):
    whole = an_embedding()
    part = whole[rows]
    assert torch.equal(part.logits, whole.logits[rows])
    assert torch.equal(part.features, whole.features[rows])


@settings(deadline=None, max_examples=30)
@given(rows=st.integers(1, 12), block=st.integers(1, 15))
def test_blocks_are_the_whole_in_order(rows, block):
    whole = an_embedding(rows)
    blocks = list(whole.blocks(block))
    assert [i for b in blocks for i in b.positions] == list(range(rows))
    assert torch.equal(torch.cat([b.logits for b in blocks]), whole.logits)
    assert torch.equal(torch.cat([b.features for b in blocks]), whole.features)
    assert all(len(b) <= block for b in blocks)


def test_to_a_device():
    assert an_embedding().to("meta").device == torch.device("meta")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "needs logits .* or both; got neither"),
        ({"logits": torch.zeros(3)}, r"logits must be a matrix .* got shape \(3,\)"),
        ({"features": torch.zeros(3, 2, 2)}, r"features must be a matrix .* got shape \(3, 2, 2\)"),
        ({"logits": torch.zeros(3, 2, dtype=torch.int64)}, "logits must be floating point"),
        ({"logits": torch.zeros(3, 0)}, "logits must have at least one column"),
        ({"features": [["a", object()]]}, "features must be an array of numbers, got list"),
        ({"features": [["a", "b"]]}, "features must be an array of numbers, got list"),
        (
            {"logits": torch.zeros(3, 2), "features": torch.zeros(4, 2)},
            "3 rows of logits and 4 of features",
        ),
        (
            {"logits": torch.zeros(3, 2), "features": torch.zeros(3, 2, device="meta")},
            "must be on one device; got cpu and meta",
        ),
    ],
)
def test_what_it_refuses(parts, message):
    with pytest.raises(InputError, match=message):
        Embedding(**parts)


def test_it_is_public():
    assert askance.Embedding is Embedding
