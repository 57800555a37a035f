"""`askance reproduce`: the paper's experiments, one store each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askance.cli import console
from askance.cli.options import grouped
from askance.cli.run import RunOptions, SpecChanges, play, show
from askance.errors import DataError
from askance.experiments import spec
from askance.experiments.spec import Spec
from askance.experiments.workers import Crew


@grouped
def reproduce(
    *,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME…|all", help="Experiments, or all 18 of the paper.")
    ],
    changes: SpecChanges,
    out: Annotated[Path, typer.Option(help="A folder for one store an experiment.")] = Path("runs"),
    options: RunOptions,
) -> int:
    """Run experiments of the paper one after the other; those done are only shown."""
    wanted = [changes.of(one) for one in _specs(names)]
    with options.crew() as crew:
        missing = _play_all(wanted, out, options, crew)
    if missing:
        console.note(f"Not run for want of data: {', '.join(missing)}")
        return 2
    return 0


def _play_all(wanted: list[Spec], out: Path, options: RunOptions, crew: Crew | None) -> list[str]:
    """Run and show each; the names of those whose data could not be had."""
    missing: list[str] = []
    for one in wanted:
        try:
            path = play(one, out / one.name, options, crew)
        except DataError as error:
            # One dataset that cannot be had must not cost the other experiments their night.
            if len(wanted) == 1:
                raise
            console.problem(f"{one.name} was left out: {error}")
            missing.append(one.name)
            continue
        show(one, path, options.json)
    return missing


def _specs(names: list[str]) -> list[Spec]:
    every = [name for name in spec.names() if name != "digits"] if "all" in names else []
    asked = [name for name in names if name != "all"]
    return [spec.load(name) for name in dict.fromkeys([*every, *asked])]
