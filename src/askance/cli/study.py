"""`askance study`: one of the paper's claims, measured."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from askance.cli import console
from askance.cli.run import DataDir, Device

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="geometry, shift, contraction, cost or reference.")
]


def study(
    name: Name,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller form, for a CPU and a few minutes.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("studies"),
    device: Device = None,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
    data_dir: DataDir = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Measure a claim of the paper: data, figure and a paragraph of findings."""
    # Not at the top: what a study needs would slow every other command's start.
    from askance.paper import studies

    studies.get(name)
    with console.errors.status(f"{name} …") as status:

        def say(step: str) -> None:
            if console.errors.is_terminal:
                status.update(f"{name}: {step}")
            elif not json:
                console.note(f"{name}: {step}")

        report = studies.conduct(
            name, out, quick=quick, seed=seed, device=device, data_dir=data_dir, say=say
        )
    if json:
        files = [str(path) for path in report.files]
        console.as_json({**asdict(report), "files": files})
        return
    table = report.table
    console.table(
        f"{name}, {report.form} form, {report.seconds:.0f} s",
        list(table.columns),
        [list(row) for row in table.rows],
        set(table.columns[table.names :]),
    )
    console.output.print(report.findings, markup=False)
    for path in report.files:
        console.output.print(str(path), markup=False, soft_wrap=True)
