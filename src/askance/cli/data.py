"""`askance data`: what is here, and getting what is not."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from askance import data
from askance.cli import console
from askance.cli.run import DataDir

app = typer.Typer(help="List and download datasets.", no_args_is_help=True)


@app.command("list")
def show(
    data_dir: DataDir = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the datasets, and where each one is on this machine."""
    datasets = [data.describe(name, data_dir=data_dir) for name in data.names()]
    if json:
        console.as_json([asdict(one) for one in datasets])
        return
    columns = ["name", "kind", "classes", "train", "test", "here", "licence"]
    rows = [
        [
            one.name,
            one.kind,
            str(one.classes),
            f"{one.train:,}",
            f"{one.test:,}",
            one.available or "no",
            one.licence,
        ]
        for one in datasets
    ]
    console.table(None, columns, rows, {"classes", "train", "test"})


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Names of datasets, or all.")],
    data_dir: DataDir = None,
) -> None:
    """Download datasets from their official sources into the cache."""
    if "all" in names:
        names = [name for name in data.names() if data.describe(name).fetchable]
    for name in names:
        path = data.fetch(name, data_dir=data_dir, progress=True)
        console.line(f"{name}: {path or 'comes with scikit-learn, there is nothing to get'}")
