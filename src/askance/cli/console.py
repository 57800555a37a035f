"""Where words go: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table

output = Console(highlight=False, soft_wrap=False)
errors = Console(stderr=True, highlight=False)


def note(text: str) -> None:
    errors.print(text, markup=False, soft_wrap=True)


def problem(text: str) -> None:
    errors.print(f"[bold red]error:[/bold red] {_plain(text)}", soft_wrap=True)


def as_json(value: Any) -> None:
    output.out(json.dumps(value, ensure_ascii=False), highlight=False)


def table(title: str | None, columns: list[str], rows: list[list[str]], right: set[str]) -> None:
    """A table; the columns named in `right` hold numbers."""
    shown = Table(title=title, title_justify="left", header_style="bold")
    for name in columns:
        shown.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*map(_plain, row))
    output.print(shown)


def _plain(text: str) -> str:
    """Text that looks like markup is not: paths and names may hold brackets."""
    return text.replace("[", r"\[")
