"""`askance advise`: which rule, and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from askance import advice
from askance.cli import console


def advise(
    *,
    model: Annotated[
        str | None, typer.Option(help="Model: encoder, network, probabilities or committee.")
    ] = None,
    classes: Annotated[int | None, typer.Option(help="Number of classes.")] = None,
    labels: Annotated[
        int | None, typer.Option(help="Number of labels so far (0 before the first).")
    ] = None,
    pool: Annotated[int | None, typer.Option(help="Number of rows in the pool.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Say which rule to take for your case, and why, in three sentences."""
    said = advice.advise(model, classes=classes, labels=labels, pool=pool)  # type: ignore[arg-type]
    if json:
        console.as_json(asdict(said))
    else:
        console.line(str(said))
