"""Where words go: results to standard output, everything else to standard error.

All of it is plain text: a path or a name may look like markup and is none.
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
    errors.print(Text(text), soft_wrap=True)


def problem(text: str) -> None:
    errors.print(Text.assemble(("error:", "bold red"), " ", text), soft_wrap=True)


def line(text: str) -> None:
    output.print(Text(text), soft_wrap=True)


def as_json(value: Any) -> None:
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
