"""Draws: named by (seed, round, purpose) and by row, never by the order of asking."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from askance.errors import AskanceError, InputError
from askance.seeding import Draws

KINDS = ("uniform", "exponential", "gumbel")
quick = settings(deadline=None, max_examples=50)


@quick
@given(
    seed=st.integers(0, 2**70),
    count=st.integers(1, 60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    kind=st.sampled_from(KINDS),
)
def test_draws_are_the_same_in_whatever_blocks(seed, count, cuts, kind):
    draw = getattr(Draws(seed), kind)
    edges = sorted({0, count, *(cut for cut in cuts if cut < count)})
    parts = [draw("p", range(a, b)) for a, b in pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate(parts), draw("p", range(count)))


@quick
@given(positions=st.lists(st.integers(0, 200), max_size=20), kind=st.sampled_from(KINDS))
def test_draws_of_scattered_rows_are_those_rows_draws(positions, kind):
    draw = getattr(Draws(5), kind)
    rows = np.array(positions, dtype=np.int64)
    np.testing.assert_array_equal(draw("p", rows), draw("p", range(201))[rows])


def test_a_stepped_range_names_its_own_rows():
    whole = Draws(1).uniform("p", range(20))
    np.testing.assert_array_equal(Draws(1).uniform("p", range(3, 20, 4)), whole[3:20:4])


def test_no_rows_no_draws():
    assert Draws().uniform("p", range(7, 7)).shape == (0,)
    assert Draws().uniform("p", np.empty(0, dtype=np.int64)).shape == (0,)


def test_a_row_far_into_a_large_pool_is_drawn_without_drawing_the_rest():
    far = 10**12
    draws = Draws(0).uniform("p", range(far, far + 5))
    np.testing.assert_array_equal(draws[2:], Draws(0).uniform("p", range(far + 2, far + 5)))


def test_uniforms_are_strictly_between_zero_and_one():
    draws = Draws(0).uniform("p", range(200_000))
    assert draws.min() > 0
    assert draws.max() < 1
    assert np.isfinite(Draws(0).gumbel("p", range(200_000))).all()


@pytest.mark.parametrize(
    ("kind", "law"),
    [("uniform", stats.uniform), ("exponential", stats.expon), ("gumbel", stats.gumbel_r)],
)
def test_draws_follow_their_law(kind, law):
    draws = getattr(Draws(seed=3, round=2), kind)("law", range(20_000))
    assert stats.kstest(draws, law.cdf).pvalue > 0.01


def test_other_seeds_rounds_and_purposes_give_other_independent_draws():
    rows = range(5_000)
    streams = [
        Draws(0, 0).uniform("a", rows),
        Draws(1, 0).uniform("a", rows),
        Draws(0, 1).uniform("a", rows),
        Draws(0, 0).uniform("b", rows),
        # Names that would collide if the parts were glued without a separator.
        Draws(11, 1).uniform("a", rows),
        Draws(1, 11).uniform("a", rows),
    ]
    for i, first in enumerate(streams):
        for second in streams[:i]:
            assert not np.intersect1d(first, second).size
            assert stats.pearsonr(first, second).pvalue > 1e-3


def test_neighbouring_rows_are_independent():
    draws = Draws(0).uniform("p", range(20_000))
    assert stats.pearsonr(draws[:-1], draws[1:]).pvalue > 0.01


def test_the_same_name_gives_the_same_generator():
    first, second = (Draws(4, 2).generator("reference").integers(0, 1000, 50) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != Draws(4, 3).generator("reference").integers(0, 1000, 50)).any()


def test_the_numbers_are_pinned():
    """Picks made by one release are the picks of the next, on any machine."""
    np.testing.assert_array_equal(
        Draws(seed=7, round=1).uniform("pin", range(3)),
        [0.2287938977817464, 0.3087954233393443, 0.2657012521097656],
    )


def test_no_global_generator_is_read_or_advanced():
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    Draws(0).uniform("p", range(10))
    Draws(0).generator("p").random(3)
    assert random.getstate() == before[0]
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])


@pytest.mark.parametrize("name", ["seed", "round"])
@pytest.mark.parametrize("value", [-1, 1.0, "0", None, True])
def test_seed_and_round_must_be_whole_numbers(name, value):
    with pytest.raises(InputError, match=f"{name} must be a whole number ≥ 0, got"):
        Draws(**{name: value})
    assert issubclass(InputError, AskanceError)


def test_a_numpy_integer_seed_is_the_same_seed():
    assert Draws(np.int64(3)) == Draws(3)
    np.testing.assert_array_equal(
        Draws(np.uint8(3)).uniform("p", range(4)), Draws(3).uniform("p", range(4))
    )


def test_rows_far_apart_draw_what_they_draw_in_a_run():
    far = np.array([3_000_001, 5, 1 << 20, (1 << 20) - 1, 5])
    draws = Draws(seed=1)
    alone = [draws.uniform("x", range(row, row + 1))[0] for row in far.tolist()]
    assert draws.uniform("x", far).tolist() == alone
