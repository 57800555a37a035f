"""`askance data`: what is here, and getting what is not; the cached features of encoders."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from askance import data, encoders
from askance.cli import console
from askance.cli.run import DataDir
from askance.errors import UnknownError

app = typer.Typer(
    help="List and download datasets. List and delete cached features.", no_args_is_help=True
)


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


@app.command()
def features(
    prune: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Delete those of an encoder (name or digest), or all."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the features of pretrained encoders that are cached, or delete them."""
    there = encoders.cached()
    if prune is not None and prune != "all":
        names = [name for each in there for name in (each.encoder, each.digest)]
        if prune not in names:
            raise UnknownError.of("encoder with cached features", prune, list(dict.fromkeys(names)))
    if prune is not None:
        there = encoders.prune(None if prune == "all" else prune)
    if json:
        console.as_json([asdict(each) | {"path": str(each.path)} for each in there])
        return
    rows = [
        [each.encoder, f"{each.items:,}", f"{each.size / 2**20:,.1f}", each.digest]
        for each in there
    ]
    if rows:
        columns = ["encoder", "items", "MiB", "digest"]
        console.table(None, columns, rows, {"items", "MiB"})
    what = "Deleted" if prune is not None else "Cached"
    size = sum(each.size for each in there) / 2**20
    console.line(f"{what}: {size:,.1f} MiB, in {encoders.cache_folder()}")
