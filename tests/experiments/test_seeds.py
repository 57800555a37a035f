"""Seeds as they are written on the command line."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import InputError
from askance.experiments.seeds import (
    as_written,
    from_option,
    parse_seeds,
    seed_ranges,
    seeds_of,
    to_option,
)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("5-24", tuple(range(5, 25))),
        ("0-4", (0, 1, 2, 3, 4)),
        ("0,3,5-9", (0, 3, 5, 6, 7, 8, 9)),
        ("7", (7,)),
        ("5-5", (5,)),
        (" 8 , 2 - 4 ", (2, 3, 4, 8)),
        ("007", (7,)),
    ],
)
def test_a_text_is_these_seeds(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is no seed and no range; write seeds such as 5-24"),
        ("5-", "'5-' is no seed"),
        ("-5", "'-5' is no seed"),
        ("5,,6", "'' is no seed"),
        ("5–24", "'5–24' is no seed"),
        ("1.5", "'1.5' is no seed"),
        ("1-2-3", "'1-2-3' is no seed"),
        ("٣", "'٣' is no seed"),
        ("24-5", "'24-5' falls; write 5-24"),
        ("0-4,3", "seed 3 is named twice"),
        ("0-10000", "more than 10,000"),
        ("0-5999,7000-11000", "more than 10,000"),
        ("9" * 5000, "no seed"),
    ],
)
def test_another_text_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_seeds(text)


@given(st.sets(st.integers(0, 60), min_size=1))
def test_a_text_made_of_seeds_is_read_as_them(seeds):
    text = seed_ranges(seeds)
    assert parse_seeds(text) == tuple(sorted(seeds))
    # The shortest: no two parts are neighbours.
    parts = [[int(n) for n in part.split("-")] for part in text.split(",")]
    assert all(one[-1] + 1 < two[0] for one, two in pairwise(parts))


def test_no_seeds_are_no_text():
    assert seed_ranges([]) == ""


@given(st.sets(st.integers(0, 40), min_size=1))
def test_a_spec_and_an_option_hold_any_seeds(seeds):
    written = as_written(seeds)
    assert seeds_of(written) == tuple(sorted(seeds))
    assert isinstance(written, int) == (seeds == set(range(len(seeds))))
    assert seeds_of(from_option(to_option(written))) == tuple(sorted(seeds))


def test_a_number_alone_is_how_many():
    assert seeds_of(from_option("3")) == (0, 1, 2)
    assert seeds_of(from_option("5-7")) == (5, 6, 7)
    assert to_option("7") == "7-7"
