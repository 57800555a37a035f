"""The file of picks: one row each, best first."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from askance.errors import UnknownError

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
