"""Where each key of a TOML text stands.

`tomllib` gives values without lines, and an error about a value is worth little without one. The text
has been parsed by `tomllib` before it comes here, so it is valid and the walk need not check anything.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable

# A key's place in the parsed data: ("schedule", "batch"), or ("strategies", 2, "beta") in an array.
Place = tuple[str | int, ...]

_TOKEN = re.compile(
    r'(?P<string>"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
    r"|(?P<comment>\#[^\n]*)|(?P<newline>\n)|(?P<mark>[][{}=,.])|(?P<bare>[^][{}=,.\"'\#\s]+)",
    re.DOTALL,
)


def key_lines(text: str) -> dict[Place, int]:
    """The line, from 1, of every key, table and array item of a valid TOML text.

    Example:
        >>> key_lines('name = "digits"\\n[schedule]\\nbatch = 20\\n')[("schedule", "batch")]
        3
    """
    return _Walk(text).lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.lines: dict[Place, int] = {}
        self._tokens: list[tuple[str, str, int]] = []
        line = 1
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or ""
            if kind != "comment":
                self._tokens.append((kind, match.group(), line))
            line += match.group().count("\n")
        self._tokens.append(("newline", "\n", line))
        self._at = 0
        self._document()

    def _document(self) -> None:
        table: Place = ()
        counts: dict[Place, int] = {}  # items of each [[array of tables]] so far
        while self._at < len(self._tokens):
            if self._peek() == "\n":
                self._at += 1
            elif self._peek() == "[":
                table = self._header(counts)
            else:
                self._pair(table)

    def _header(self, counts: dict[Place, int]) -> Place:
        line = self._tokens[self._at][2]
        # "[[" is an array of tables; the two brackets may not be apart, so two marks are enough.
        array = self._tokens[self._at + 1][1] == "["
        self._at += 2 if array else 1
        *parents, last = self._key()
        self._at += 2 if array else 1
        table: Place = ()
        for part in parents:
            table = self._within(table, part, counts)
            self.lines.setdefault(table, line)
        if array:
            name = (*table, last)
            counts[name] = counts.get(name, 0) + 1
            self.lines.setdefault(name, line)
        table = self._within(table, last, counts)
        self.lines.setdefault(table, line)
        return table

    @staticmethod
    def _within(table: Place, part: str, counts: dict[Place, int]) -> Place:
        """A header's part; of an array of tables it means the latest item."""
        name = (*table, part)
        return (*name, counts[name] - 1) if name in counts else name

    def _pair(self, table: Place) -> None:
        line = self._tokens[self._at][2]
        place = table
        for part in self._key():
            place = (*place, part)
            self.lines.setdefault(place, line)
        self._at += 1  # "="
        self._value(place)

    def _key(self) -> list[str]:
        parts = [self._simple_key()]
        while self._peek() == ".":
            self._at += 1
            parts.append(self._simple_key())
        return parts

    def _simple_key(self) -> str:
        kind, text, _ = self._tokens[self._at]
        self._at += 1
        return next(iter(tomllib.loads(f"{text} = 0"))) if kind == "string" else text

    def _value(self, place: Place) -> None:
        mark = self._peek()
        if mark == "{":
            self._items("}", lambda index: self._pair(place))
        elif mark == "[":
            self._items("]", lambda index: self._item((*place, index)))
        else:  # a scalar; numbers and dates may be several tokens
            while self._peek() not in ("\n", ",", "]", "}"):
                self._at += 1

    def _item(self, place: Place) -> None:
        self.lines[place] = self._tokens[self._at][2]
        self._value(place)

    def _items(self, end: str, item: Callable[[int], None]) -> None:
        self._at += 1
        index = 0
        while self._peek() != end:
            if self._peek() in ("\n", ","):
                self._at += 1
                continue
            item(index)
            index += 1
        self._at += 1

    def _peek(self) -> str:
        kind, text, _ = self._tokens[self._at]
        return "" if kind == "string" else text
