"""`LogitsCheck`: probabilities are refused, however few or rounded, and logits are let through."""

from __future__ import annotations

import pytest
import torch

from askance.embedding import LogitsCheck, check_logits
from askance.errors import InputError

REFUSED = r"the logits of the pool look like probabilities: .* pass their logarithms, e\.g\. log"
ROUNDED = {
    "float64": lambda p: p,
    "float32": lambda p: p.float(),
    "float16": lambda p: p.half(),
    "bfloat16": lambda p: p.bfloat16(),
}
MORE_ROUNDED = {
    "bfloat16 once": lambda p: p.bfloat16().float(),
    "float16 once": lambda p: p.half().double(),
    "four decimals": lambda p: (p * 1e4).round() / 1e4,
}


def logits(rows, classes=3, seed=0):
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(rows, classes, generator=draws, dtype=torch.float64)


def probabilities(rows, classes=3, seed=0, scale=3.0):
    return (scale * logits(rows, classes, seed)).softmax(dim=1)


def see(blocks, of="the pool"):
    check = LogitsCheck(of)
    for block in blocks:
        check.see(block)
    check.end()


@pytest.mark.parametrize("classes", [2, 10, 1000])
@pytest.mark.parametrize("rows", [1, 2, 7, 8, 300])
@pytest.mark.parametrize("rounded", ROUNDED.values(), ids=ROUNDED)
def test_probabilities_are_refused(rounded, rows, classes):
    for seed in range(5):
        with pytest.raises(InputError, match=REFUSED):
            check_logits(rounded(probabilities(rows, classes, seed)), "the pool")


@pytest.mark.parametrize("classes", [2, 10, 100])
@pytest.mark.parametrize("rounded", MORE_ROUNDED.values(), ids=MORE_ROUNDED)
def test_probabilities_that_were_rounded_before_are_refused_where_they_are_many(rounded, classes):
    for seed in range(5):
        with pytest.raises(InputError, match=REFUSED):
            check_logits(rounded(probabilities(8, classes, seed)), "the pool")


def test_certain_and_undecided_probabilities_are_refused():
    for rows in (torch.eye(4), torch.full((3, 4), 0.25), torch.eye(4)[:1]):
        with pytest.raises(InputError, match=REFUSED):
            check_logits(rows, "the pool")


@pytest.mark.parametrize("sizes", [[1] * 8, [3, 3, 3], [1, 20], [20, 1], [2], [1, 1]])
def test_small_blocks_are_judged_together(sizes):
    blocks = probabilities(sum(sizes)).split(sizes)
    with pytest.raises(InputError, match=REFUSED):
        see(blocks)
    see([block.log() for block in blocks])


def test_a_refusal_waits_for_no_more_than_eight_rows():
    check = LogitsCheck("the pool")
    for block in probabilities(7).split(1):
        check.see(block)
    with pytest.raises(InputError, match=REFUSED):
        check.see(probabilities(1))


def test_a_later_block_is_refused_as_well():
    with pytest.raises(InputError, match="the logits of part-3 look like probabilities"):
        see([logits(100), probabilities(100)], "part-3")


@pytest.mark.parametrize("row", [0, 4, 9])
def test_one_row_that_is_none_makes_them_logits(row):
    likely = probabilities(10)
    likely[row] += 1
    check_logits(likely, "the pool")
    likely[row] = torch.nan
    check_logits(likely, "the pool")  # which is for another check


@pytest.mark.parametrize("row", [0, 4, 7])
def test_so_does_one_of_eight_blocks_of_a_row(row):
    likely = probabilities(8)
    likely[row] += 1
    see(likely.split(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_logits_of_two_classes_are_let_through_however_they_are_cut(size, dtype):
    """One row in 400 has a sum within 0.01 of 1, so that in 20,000 there are some."""
    drawn = logits(20_000, classes=2).to(dtype)
    near = ((drawn >= 0).all(dim=1) & ((drawn.float().sum(dim=1) - 1).abs() < 0.01)).sum()
    assert 20 < near < 90
    see(drawn.split(size))


def test_a_last_row_that_looks_like_it_is_no_evidence_against_the_others():
    see([logits(20), torch.tensor([[0.25, 0.75]], dtype=torch.float64)])


def test_a_lone_row_is_refused_by_the_rounding_of_its_dtype():
    near = torch.tensor([[0.3, 0.7001]])
    check_logits(near, "the pool")
    with pytest.raises(InputError, match="take 1 off each of them: their softmax stays the same"):
        check_logits(torch.tensor([[0.3, 0.7]]), "the pool")
    check_logits(torch.tensor([[0.3, 0.7]]) - 1, "the pool")


def test_a_column_of_ones_and_no_rows_are_no_probabilities():
    check_logits(torch.ones(20, 1), "the pool")
    check_logits(torch.empty(0, 3), "the pool")
    see([None, None])
