"""Reading a table of a spec key by key, with errors that say where, what was expected and what came."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from askance.bench.lines import Place
from askance.errors import SpecError


@dataclass(frozen=True)
class Source:
    """Where a spec came from, for error messages."""

    name: str
    lines: Mapping[Place, int] = field(default_factory=dict)

    def error(self, place: Place, message: str) -> SpecError:
        """An error at the key `place`, or at the nearest table around it that has a line."""
        while place and place not in self.lines:
            place = place[:-1]
        line = f", line {self.lines[place]}" if place else ""
        return SpecError(f"{self.name}{line}: {message}")


@dataclass(frozen=True)
class Reader:
    """One table of a spec."""

    source: Source
    place: Place
    data: Mapping[str, Any]

    def error(self, key: str, message: str) -> SpecError:
        return self.source.error((*self.place, key), message)

    def name_of(self, key: str) -> str:
        return ".".join(map(str, (*self.place, key)))

    def only(self, known: Sequence[str], homes: Mapping[str, Sequence[str]]) -> None:
        """Refuse a key that is not known here; `homes` are the keys of the other tables."""
        for key in self.data:
            if key in known:
                continue
            elsewhere = [table for table, keys in homes.items() if key in keys]
            close = get_close_matches(key, known, n=1, cutoff=0.5)
            if elsewhere:
                hint = f"it belongs in {' or '.join(elsewhere)}"
            elif close:
                hint = f"did you mean {close[0]!r}?"
            else:
                hint = f"known: {', '.join(known)}"
            raise self.error(key, f"unknown key {self.name_of(key)!r}; {hint}")

    def take(
        self, key: str, expected: str, accepts: Callable[[Any], bool], default: Any = ...
    ) -> Any:
        """The value of `key`, which must be as `expected` says; required where there is no default."""
        if key not in self.data:
            if default is not ...:
                return default
            raise self.error(key, f"{self.name_of(key)!r} is missing; expected {expected}")
        value = self.data[key]
        if not accepts(value):
            raise self.error(key, f"{self.name_of(key)} must be {expected}, got {shown(value)}")
        return value

    def integer(self, key: str, least: int, default: Any = ...) -> int:
        return self.take(
            key, f"a whole number ≥ {least}", lambda v: is_integer(v) and v >= least, default
        )

    def text(self, key: str, expected: str, default: Any = ...) -> Any:
        return self.take(key, expected, lambda v: isinstance(v, str) and v != "", default)

    def table(self, key: str, default: Any = ...) -> Reader:
        data = self.take(key, f"a table [{key}]", lambda v: isinstance(v, Mapping), default)
        return Reader(self.source, (*self.place, key), data)


def is_integer(value: object) -> bool:
    """A whole number of 64 bits, which is what TOML promises and SQLite keeps."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def is_number(value: object) -> bool:
    """A finite number."""
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def is_plain(value: object) -> bool:
    """A value that JSON can hold and give back: text, truth, finite number, or a list of them."""
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return isinstance(value, (str, bool)) or is_number(value)


def shown(value: object) -> str:
    """A value as an error shows it: short, and with its type where that is the point."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
