"""What a study is: a question, two sets of options, and four functions of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from askance.paper.studies.lab import Lab

O = TypeVar("O")  # noqa: E741
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class StudyTable:
    """Rows of text under named columns; all columns but the first `names` hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1

    @classmethod
    def of(
        cls, items: Iterable[T], *columns: tuple[str, Callable[[T], str]], names: int = 1
    ) -> StudyTable:
        """One row for each item; a column is its name and a function from an item to its text."""
        rows = (tuple(text(item) for _, text in columns) for item in items)
        return cls(tuple(name for name, _ in columns), tuple(rows), names)

    def markdown(self) -> str:
        """The table as GitHub reads it."""
        marks = ("---" if i < self.names else "---:" for i in range(len(self.columns)))
        lines = [self.columns, tuple(marks), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rows_where(rows: Iterable[T], **fields: object) -> list[T]:
    """The rows whose fields have these values."""
    return [row for row in rows if all(getattr(row, key) == fields[key] for key in fields)]


def column(rows: Iterable[Any], field: str, **fields: object) -> NDArray[np.float64]:
    """One field of the rows whose other fields have these values, in their order.

    Example:
        >>> from types import SimpleNamespace as Row
        >>> column([Row(rule="grad", loss=0.5), Row(rule="badge", loss=0.1)], "loss", rule="grad")
        array([0.5])
    """
    return np.array(list(map(attrgetter(field), rows_where(rows, **fields))), dtype=np.float64)


def listed(finding: str, *points: str) -> str:
    """The finding in bold, and a list of what it rests on."""
    return "\n\n".join([f"**{finding}**", "\n".join(f"- {point}" for point in points if point)])


def from_to(values: Sequence[float], form: str) -> str:
    """ "0.1 to 0.3", or "0.1" where both ends read alike."""
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class Study(Generic[O, R]):
    """One study.

    Args:
        name: as the command line calls it.
        about: its question, in a line.
        full, quick: the options of its two forms, a frozen dataclass with a `seed`.
        result: the type of what it measures, a frozen dataclass of plain data with its `options`.
        run: measures.
        draw: a figure of the result.
        findings: the finding in a sentence or two, then a list of what it rests on (`listed`).
        table: the numbers of the list, and those that it leaves out.
    """

    name: str
    about: str
    full: O
    quick: O
    result: type[R]
    run: Callable[[O, Lab], R]
    draw: Callable[[R], Figure]
    findings: Callable[[R], str]
    table: Callable[[R], StudyTable]


AnyStudy = Study[Any, Any]
