"""What a study is: a question, two sets of options, and four functions of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from askance.paper.studies.lab import Lab

if TYPE_CHECKING:
    from matplotlib.figure import Figure

O = TypeVar("O")  # noqa: E741
R = TypeVar("R")


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns; all columns but the first `names` hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1

    def markdown(self) -> str:
        marks = ("---" if i < self.names else "---:" for i in range(len(self.columns)))
        lines = [self.columns, tuple(marks), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def from_to(values: Sequence[float], form: str) -> str:
    """ "0.1 to 0.3", or "0.1" where both ends read alike."""
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class Study(Generic[O, R]):
    """One study.

    Args:
        name: as the command line calls it.
        about: what it asks, in a line.
        full, quick: its options, a frozen dataclass with a `seed`; all the two forms differ in.
        result: the type of what it measures, a frozen dataclass of plain data with its `options`.
        run: measures.
        draw: a figure of the result.
        findings: a paragraph of what was measured, and what it says of the paper's claim.
        table: the numbers of the paragraph, and those it leaves out.
    """

    name: str
    about: str
    full: O
    quick: O
    result: type[R]
    run: Callable[[O, Lab], R]
    draw: Callable[[R], Figure]
    findings: Callable[[R], str]
    table: Callable[[R], Table]


AnyStudy = Study[Any, Any]
