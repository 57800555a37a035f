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
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    format: Annotated[
        str | None, typer.Option(help="html or md; by the file's name when left out.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="A folder for every figure, as SVG and PNG.")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE", help="Only these seeds, such as 5-24 or 0,3,5-9; all when left out."
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Write a self-contained page: verdict, curves, who beats whom, picks, provenance."""
    # Not at the top: the figures would slow every other command's start.
    from askance import report as page

    wanted = None if seeds is None else parse_seeds(seeds)
    facts = page.read(store, paper.SUITE)
    chosen = facts if wanted is None else facts.of_seeds(wanted)
    path = page.write(chosen, out, format=format, figures=figures, data_dir=data_dir)
    console.output.print(f"Report: {path}", markup=False, soft_wrap=True)
    if figures is not None:
        console.output.print(f"Figures: {figures}", markup=False, soft_wrap=True)
