"""Print results on standard output and everything else on standard error.

All of it is plain text: a path or a name may look like markup, but is not treated as markup.
"""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

output = Console(highlight=False, soft_wrap=False)
errors = Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """Print a line on standard error."""
    errors.print(Text(text), soft_wrap=True)


def problem(text: str) -> None:
    """Print an error on standard error."""
    errors.print(Text.assemble(("error:", "bold red"), " ", text), soft_wrap=True)


def line(text: str) -> None:
    """Print a line of the result."""
    output.print(Text(text), soft_wrap=True)


def as_json(value: Any) -> None:
    """Print the result as JSON, with escapes where the terminal has no Unicode."""
    wide = output.encoding.startswith("utf")
    output.out(json.dumps(value, ensure_ascii=not wide), highlight=False)


def table(title: str | None, columns: list[str], rows: list[list[str]], right: set[str]) -> None:
    """A table; the columns named in `right` hold numbers."""
    shown = Table(title=title, title_justify="left", header_style="bold")
    for name in columns:
        shown.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*map(Text, row))
    output.print(shown)
