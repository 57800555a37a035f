"""The line of every key, in every way TOML lets it be written."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.bench.lines import key_lines

TEXT = '''\
# name = "not here"
name = "a # b"            # [schedule]
"quoted key" = 1
'lit.eral' = 2
text = """
batch = 7
[recipe]
"""
raw = \'\'\'
x = 1 \'\'\'
dotted.inner.batch = 3
"dot\\u0074ed".other = 4
when = 1979-05-27 07:32:00
items = [
    "one",                # "two"
    {name = "p", "beta" = 1.0},
    [1,
     2],
]

[schedule]
batch = 1
inline = {batch = 2, deep = {batch = 3}}
[ recipe . "more" ]
batch = 4

[[many]]
batch = 5
[many.sub]
batch = 6
[[many]]
batch = 7
[many.sub]
batch = 8
'''

EXPECTED = {
    ("name",): 2,
    ("quoted key",): 3,
    ("lit.eral",): 4,
    ("text",): 5,
    ("raw",): 9,
    ("dotted",): 11,
    ("dotted", "inner", "batch"): 11,
    ("dotted", "other"): 12,
    ("when",): 13,
    ("items",): 14,
    ("items", 0): 15,
    ("items", 1, "name"): 16,
    ("items", 1, "beta"): 16,
    ("items", 2): 17,
    ("items", 2, 1): 18,
    ("schedule",): 21,
    ("schedule", "batch"): 22,
    ("schedule", "inline", "batch"): 23,
    ("schedule", "inline", "deep", "batch"): 23,
    ("recipe",): 24,
    ("recipe", "more"): 24,
    ("recipe", "more", "batch"): 25,
    ("many",): 27,
    ("many", 0, "batch"): 28,
    ("many", 0, "sub", "batch"): 30,
    ("many", 1): 31,
    ("many", 1, "batch"): 32,
    ("many", 1, "sub", "batch"): 34,
}


def places(value, place=()):
    """Every place of parsed TOML that a line is wanted for."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*place, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*place, key))


@pytest.mark.parametrize(("place", "line"), EXPECTED.items(), ids=str)
def test_line_of_key(place, line):
    assert key_lines(TEXT)[place] == line


def test_every_place_has_a_line_and_no_line_is_of_no_place():
    assert set(key_lines(TEXT)) == set(places(tomllib.loads(TEXT)))


KEYS = st.text("ab.#\"'[]{}=, \\\n", min_size=0, max_size=4)
VALUES = st.recursive(
    st.integers(-9, 9) | st.booleans() | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def toml(value):
    """One line of TOML: basic strings escape as JSON does."""
    import json

    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_keys_and_values(data):
    text = "".join(f"{toml({key: value})[1:-1]}\n" for key, value in data.items())
    assert tomllib.loads(text) == data
    lines = key_lines(text)
    assert set(lines) == set(places(data))
    assert [lines[(key,)] for key in data] == list(range(1, len(data) + 1))
