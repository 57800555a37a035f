"""`askance export`: one tidy row per run and round."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from askance.errors import StoreError
from askance.experiments import export as tidy
from askance.experiments import formats
from askance.label.store import FILE as PROJECT


def export(
    store: Annotated[
        list[Path],
        typer.Argument(metavar="STORE|FOLDER…", help="Stores, exports, or folders of them."),
    ],
    format: Annotated[
        str | None, typer.Option(help="Format: csv, parquet or json (default: from the file name).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write (default: standard output).")
    ] = None,
) -> None:
    """Write a table of results, one row for each run and round."""
    for path in store:
        if (path / PROJECT).is_file():
            raise StoreError(
                f"{path} is a labelling project, and this exports experiments; run `askance label "
                f"{path}` and take its answers and its model from the page, under Export"
            )
    rows = tidy.table(store)
    kind = format or (out.suffix.removeprefix(".") if out is not None and out.suffix else "csv")
    if out is None:
        sys.stdout.buffer.write(formats.render(rows, kind))
    else:
        tidy.write(rows, kind, out)
