"""The file of picks: one row each, best first; and identifiers read from such a file, or another."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from askance.errors import InputError, UnknownError

FORMATS = ("jsonl", "csv", "parquet")


def render(rows: Sequence[dict[str, Any]], format: str) -> bytes:
    """The rows as a file's content; what explains a pick is nested in JSON and Parquet, flat in CSV."""
    if format == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    if format == "csv":
        flat = [
            {key: value for key, value in row.items() if key != "why"} | row["why"] for row in rows
        ]
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(flat[0]) if flat else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        return text.getvalue().encode()
    if format == "parquet":
        import pyarrow
        from pyarrow import parquet

        content = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist(list(rows)), content)
        return content.getvalue()
    raise UnknownError.of("ending of the file of picks", format, FORMATS)


def identifiers_in(path: Path, column: str | None) -> list[str]:
    """The identifiers in a file: one a line, or a column of a table.

    Args:
        path: .csv, .tsv, .jsonl or .parquet for a table; anything else has one a line.
        column: what the column is called; `id`, as in a file of picks, where none is called so.
    """
    kind = path.suffix.lower().removeprefix(".")
    try:
        if kind not in ("csv", "tsv", "jsonl", "parquet", "pq"):
            return _lines(path)
        if kind in ("parquet", "pq"):
            from pyarrow import parquet

            names = parquet.read_schema(path).names
            found = _column_of(path, names, column)
            values = parquet.read_table(path, columns=[found]).column(0).to_pylist()
        elif kind == "jsonl":
            rows = [json.loads(line) for line in _lines(path)]
            found = _column_of(path, list(rows[0]) if rows else ["id"], column)
            values = [row.get(found) for row in rows]
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                table = csv.DictReader(file, delimiter="\t" if kind == "tsv" else ",")
                found = _column_of(path, list(table.fieldnames or []), column)
                values = [row[found] for row in table]
    except InputError:
        raise
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    if any(value is None or value == "" for value in values):
        raise InputError(f"{path}: {found!r} is empty in some rows; every row needs an identifier")
    return [str(value) for value in values]


def _lines(path: Path) -> list[str]:
    """The lines that are not empty. Other characters that part lines on a screen may be in a name."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


def _column_of(path: Path, names: Sequence[str], column: str | None) -> str:
    for name in (column, "id"):
        if name is not None and name in names:
            return name
    if len(names) == 1:
        return names[0]
    wanted = "'id'" if column in (None, "id") else f"{column!r} or 'id'"
    raise InputError(
        f"{path}: no column {wanted} of identifiers; it has {', '.join(map(repr, names)) or 'none'}. "
        f"Name it with --id, as the pool's is"
    )
