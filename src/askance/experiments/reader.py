"""Read a TOML document into dataclasses by their type hints; an error says where and what was expected.

A hint says what a key must be: `str`, `bool`, `int`, `float`, a `Literal`, `Any` (text, a number, true,
false or a list of them), `tuple[X, ...]` (a list), `Pairs` (a table of any keys), `X | Y`, a dataclass
(a table; a field that is not compared is no key), or a class with a `read` of its own.
`Annotated[X, Expected(…), function]` adds a condition, and a function from the value and its node to
the value that is kept.
"""

from __future__ import annotations

import math
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from itertools import product
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from askance.errors import AskanceError, SpecError

# A key's place in the parsed data: ("schedule", "batch"), or ("strategies", 2, "beta") in an array.
Place = tuple[str | int, ...]
Pairs = tuple[tuple[str, Any], ...]  # a table, in alphabetical order, that can be hashed


@dataclass(frozen=True)
class Expected:
    """What a value must be besides its type, in words and as a condition."""

    words: str
    holds: Callable[[Any], bool] = lambda value: True


@dataclass(frozen=True)
class Node:
    """A value of a document, and where it is; `text` is empty where there is no file."""

    document: str
    data: Any
    text: str = ""
    root: Any = None  # the dataclass of the whole document
    place: Place = ()

    @property
    def key(self) -> str:
        """The dotted key, such as `schedule.batch`."""
        return ".".join(map(str, self.place))

    def __getitem__(self, key: str | int) -> Node:
        """A value inside this one; its `data` is MISSING where a table has none."""
        there = isinstance(key, int) or key in self.data
        return replace(self, data=self.data[key] if there else MISSING, place=(*self.place, key))

    def table(self) -> dict[str, Node]:
        """The values of a table by key; an error for anything else."""
        if not isinstance(self.data, Mapping):
            raise self.wrong(f"a table [{self.place[-1]}]")
        return {key: self[key] for key in self.data}

    def wrong(self, expected: str) -> SpecError:
        """An error that says what was expected here and what came."""
        if self.data is MISSING:
            return self.error(f"{self.key!r} is missing; expected {expected}")
        came = repr(self.data)
        came = came if len(came) <= 60 else f"{came[:57]}..."
        return self.error(f"{self.key} must be {expected}, got {came}")

    def error(self, message: str) -> SpecError:
        """An error at this value, or at the nearest one around it that has a line."""
        around = (self.place[:depth] for depth in range(len(self.place), 0, -1))
        line = next(filter(None, (line_of(self.text, place) for place in around)), None)
        return SpecError(f"{self.document}{f', line {line}' if line else ''}: {message}")


def read(hint: Any, node: Node, expected: str = "") -> Any:
    """The value of `node` as `hint` has it; an error says `expected`, or else the type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _read_annotated(node, *arguments)
    if origin in (Union, UnionType):
        *others, last = kinds = [kind for kind in arguments if kind is not NoneType]
        words = expected or " or ".join(_SCALARS[kind][0] for kind in kinds if kind in _SCALARS)
        for kind in others:
            with suppress(SpecError):
                return read(kind, node, words)
        return read(last, node, words)
    if hint == Pairs:
        return tuple((key, read(Any, value)) for key, value in sorted(node.table().items()))
    if origin is tuple:
        if not isinstance(node.data, (list, tuple)):
            raise node.wrong(expected or "a list")
        return tuple(read(arguments[0], node[index]) for index in range(len(node.data)))
    if hasattr(hint, "read"):
        return hint.read(node)
    if is_dataclass(hint):
        return _read_dataclass(hint, node)
    words, accepts, convert = (
        (f"one of {', '.join(arguments)}", arguments.__contains__, str)
        if origin is Literal
        else _SCALARS[hint]
    )
    if not accepts(node.data):
        raise node.wrong(expected or words)
    return convert(node.data)


def _read_annotated(node: Node, hint: Any, expected: Expected, function: Any = None) -> Any:
    value = read(hint, node, expected.words)
    if not expected.holds(value):
        raise node.wrong(expected.words)
    try:
        return function(value, node) if function else value
    except SpecError:
        raise
    except AskanceError as error:
        raise node.error(str(error)) from None


def _read_dataclass(cls: Any, node: Node) -> Any:
    table, hints = node.table(), _hints(cls)
    for key, value in table.items():
        if key not in hints:
            raise value.error(f"unknown key {value.key!r}; {_meant(key, cls, node.root)}")
    optional = {field.name for field in fields(cls) if field.default is not MISSING}
    wanted = (key for key in hints if key in table or key not in optional)
    return cls(**{key: read(hints[key], node[key]) for key in wanted})


def _hints(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in fields(cls) if field.compare}


def _meant(key: str, cls: Any, root: Any) -> str:
    """What an unknown key may have meant: a key of another table, or the closest one."""
    inner = {f"in [{name}]": hint for name, hint in _hints(root).items() if is_dataclass(hint)}
    tables = {"at the top of the file": root, **inner}
    homes = {name: where for where, table in tables.items() for name in _hints(table)}
    if key in homes:
        return f"it belongs {homes[key]}"
    if close := get_close_matches(key, _hints(cls), n=1, cutoff=0.5):
        return f"did you mean {close[0]!r}?"
    if close := get_close_matches(key, homes, n=1, cutoff=0.5):
        return f"did you mean {close[0]!r}, {homes[close[0]]}?"
    return f"known: {', '.join(_hints(cls))}"


def _is_integer(value: object) -> bool:
    """A whole number of 64 bits, which is what TOML promises and SQLite keeps."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_number(value: object) -> bool:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def _is_plain(value: object) -> bool:
    """A value that JSON can hold and give back."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (str, bool)) or _is_number(value)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


_SCALARS: dict[Any, tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = {
    str: ("text", lambda value: isinstance(value, str), str),
    bool: ("true or false", lambda value: isinstance(value, bool), bool),
    int: ("a whole number", _is_integer, int),
    float: ("a number", _is_number, float),
    Any: ("text, a number, true, false or a list of them", _is_plain, _frozen),
}

_CLOSINGS = ["".join(marks) for depth in range(5) for marks in product("]}", repeat=depth)]


def line_of(text: str, place: Place) -> int | None:
    """The line, from 1, where a key, table or array item of a valid TOML text begins; None for none.

    `tomllib` gives values without lines. But the first lines of a text are TOML too once their brackets
    are closed, so what is in the first n lines and not in the first n − 1 begins on line n.

    Example:
        >>> line_of('name = "digits"\\n[schedule]\\nbatch = 20\\n', ("schedule", "batch"))
        3
    """
    lines = text.split("\n")

    def parsed(most: int) -> tuple[int, Any]:
        """The first `most` lines, or fewer: those before a text that goes on over several."""
        for count, closing in product(range(most, 0, -1), _CLOSINGS):
            with suppress(tomllib.TOMLDecodeError):
                return count, tomllib.loads("\n".join([*lines[:count], closing]))
        return 0, {}

    def holds(most: int) -> bool:
        data: Any = parsed(most)[1]
        for key in place:
            if isinstance(data, list):
                data = dict(enumerate(data))
            if not isinstance(data, dict) or key not in data:
                return False
            data = data[key]
        return True

    count = bisect_left(range(len(lines) + 1), True, key=holds)
    if count > len(lines):
        return None
    before, _ = parsed(count - 1)
    candidates = enumerate(lines[before:count], before + 1)
    return next(number for number, line in candidates if line.strip() and line.lstrip()[0] != "#")
