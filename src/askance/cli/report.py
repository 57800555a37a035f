"""`askance report`: stores as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askance import paper
from askance.cli import console
from askance.cli.run import DataDir
from askance.experiments.seeds import parse_seeds


def report(
    store: Annotated[
        list[Path],
        typer.Argument(metavar="STORE|FOLDER…", help="Stores, exports, or folders of them."),
    ],
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("report.html"),
    format: Annotated[
        str | None, typer.Option(help="Format: html or md (default: from the file name).")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for all figures, as SVG and PNG.")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE", help="Seeds to include, such as 5-24 or 0,3,5-9 (default: all)."
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Write a report of stores as one page. It has the verdict, curves, comparisons and picks."""
    # Not at the top: the figures would slow every other command's start.
    from askance import report as page

    wanted = None if seeds is None else parse_seeds(seeds)
    facts = page.read(store, paper.SUITE)
    if not paper.SUITE.covers(row.experiment for row in facts.rows):
        facts = page.read(store)
    chosen = facts if wanted is None else facts.of_seeds(wanted)
    path = page.write(chosen, out, format=format, figures=figures, data_dir=data_dir)
    console.output.print(f"Report: {path}", markup=False, soft_wrap=True)
    if figures is not None:
        console.output.print(f"Figures: {figures}", markup=False, soft_wrap=True)
