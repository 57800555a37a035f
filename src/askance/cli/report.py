"""`askance report`: stores as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
        Path | None,
        typer.Option(help="A folder for every figure of the paper, as SVG and PNG."),
    ] = None,
    publish: Annotated[
        bool | None,
        typer.Option(
            "--publish/--no-publish",
            help="Write RESULTS.md and figures/ into the folder: the paper's claims, judged. By itself "
            "where a folder has been published before.",
        ),
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
    # Not at the top: the figures and the studies would slow every other command's start.
    from askance import report as page
    from askance.paper import claims
    from askance.paper.claims.judging import of_seeds

    wanted = None if seeds is None else parse_seeds(seeds)
    published = [f for f in store if publish or (publish is None and claims.is_published(f))]
    for folder in published:
        claims.check(folder)
    facts = page.read(store)
    shared = facts if published and len(store) == 1 else None  # of the page and of the folder
    chosen = facts if wanted is None else of_seeds(facts, wanted)
    path = page.write(chosen, out, format=format, figures=figures, data_dir=data_dir)
    console.output.print(f"Report: {path}", markup=False, soft_wrap=True)
    if figures is not None:
        console.output.print(f"Figures: {figures}", markup=False, soft_wrap=True)
    for folder in published:
        claims.publish(folder, shared, wanted)
        console.output.print(f"Published: {folder}", markup=False, soft_wrap=True)
