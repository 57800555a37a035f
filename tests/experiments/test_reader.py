"""What a hint accepts; and the line of every key, in every way TOML lets it be written."""

import tomllib
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import InputError, SpecError
from askance.experiments.reader import Expected, Node, Pairs, line_of, read

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
    assert line_of(TEXT, place) == line


def test_every_place_has_a_line_and_no_line_is_of_no_place():
    there = set(places(tomllib.loads(TEXT)))
    nowhere = {(*place, key) for place in there for key in ("none", 9)} | {("none",), (0,)}
    assert {place for place in there | nowhere if line_of(TEXT, place)} == there


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
    line = {key: number for number, key in enumerate(data, 1)}
    for place in places(data):
        assert line_of(text, place) == line[place[0]]


ITEMS = st.recursive(
    st.integers(-9, 9).map(str) | st.sampled_from(['"]"', "[]", '"""\n[a]\n"""', "{b = 1}", "'#'"]),
    lambda inner: st.lists(inner, min_size=1, max_size=3),
    max_leaves=6,
)
FILLING = st.sampled_from(["", " # ]", "# [", "   "])


@given(st.lists(ITEMS, min_size=1, max_size=4), st.data())
def test_an_item_a_line(items, draw):
    lines, expected = [], {}

    def lay(item, place):
        lines.append(draw.draw(FILLING))
        expected[place] = len(lines) + 1
        if isinstance(item, list):
            lines.append("[")
            for index, inner in enumerate(item):
                lay(inner, (*place, index))
            lines.append("],")
        else:
            lines.extend(f"{item},".split("\n"))

    lines.append("x = [")
    for index, item in enumerate(items):
        lay(item, ("x", index))
    lines.append("]")
    text = "\n".join(lines)
    tomllib.loads(text)
    assert {place: line_of(text, place) for place in expected} == expected


@dataclass(frozen=True)
class Inner:
    depth: Annotated[int, Expected("a whole number ≥ 3", lambda depth: depth >= 3)] = 3
    words: tuple[Literal["a", "b"], ...] = ()


def refused(value, node):
    if value == "bad":
        raise InputError("not this one")
    return value.upper()


@dataclass(frozen=True)
class Outer:
    real: float
    inner: Inner = Inner()
    truth: bool = False
    any: Any = None
    either: int | str = 0
    perhaps: str | None = None
    table: Pairs = ()
    made: Annotated[str, Expected("text", bool), refused] = "X"
    unkeyed: int = field(default=0, compare=False)


def outer(**data):
    return read(Outer, Node("here", data, root=Outer))


def test_a_hint_decides_what_is_kept():
    assert outer(real=1) == Outer(1.0)
    assert isinstance(outer(real=1).real, float)
    assert outer(real=0.5, inner={"depth": 4, "words": ["b", "a"]}).inner == Inner(4, ("b", "a"))
    assert outer(real=0.5, table={"b": [1, [2]], "a": "x"}).table == (("a", "x"), ("b", (1, (2,))))
    assert outer(real=0.5, truth=True, any=[1], either="x", perhaps="y", made="good") == Outer(
        0.5, truth=True, any=(1,), either="x", perhaps="y", made="GOOD"
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "here: 'real' is missing; expected a number"),
        ({"real": True}, "here: real must be a number, got True"),
        ({"real": float("nan")}, "real must be a number, got nan"),
        ({"real": 1, "truth": 1}, "truth must be true or false, got 1"),
        ({"real": 1, "any": [{}]}, "any must be text, a number, true, false or a list of them"),
        ({"real": 1, "either": 0.5}, "either must be a whole number or text, got 0.5"),
        ({"real": 1, "perhaps": 3}, "perhaps must be text, got 3"),
        ({"real": 1, "table": 3}, r"table must be a table \[table\], got 3"),
        ({"real": 1, "table": {"a": {}}}, "table.a must be text, a number"),
        ({"real": 1, "made": ""}, "made must be text, got ''"),
        ({"real": 1, "made": "bad"}, "here: not this one"),
        ({"real": 1, "inner": {"depth": 2}}, "inner.depth must be a whole number ≥ 3, got 2"),
        ({"real": 1, "inner": {"depth": "2"}}, "inner.depth must be a whole number ≥ 3, got '2'"),
        ({"real": 1, "inner": {"words": "a"}}, "inner.words must be a list, got 'a'"),
        ({"real": 1, "inner": {"words": ["a", "c"]}}, "inner.words.1 must be one of a, b, got 'c'"),
        ({"real": 1, "unkeyed": 1}, "unknown key 'unkeyed'"),
        ({"real": 1, "depth": 3}, r"unknown key 'depth'; it belongs in \[inner\]"),
        ({"real": 1, "inner": {"real": 3}}, "'inner.real'; it belongs at the top of the file"),
        ({"real": 1, "zzz": 3}, "unknown key 'zzz'; known: real, inner, truth"),
        ({"real": "x" * 99}, r"got 'x{56}\.\.\.$"),
    ],
)
def test_what_a_hint_does_not_accept_is_named(data, words):
    with pytest.raises(SpecError, match=words):
        outer(**data)
