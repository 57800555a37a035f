"""`askance paper`: run the paper's experiments and studies, and publish what they say of its claims."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from askance import paper
from askance.cli import console
from askance.cli.options import grouped
from askance.cli.run import DataDir, Device, RunOptions, SpecChanges, run_spec, show
from askance.errors import DataError
from askance.experiments import spec
from askance.experiments.seeds import parse_seeds
from askance.experiments.spec import Spec
from askance.experiments.workers import Cluster

app = typer.Typer(help="The paper's experiments, studies and claims.", no_args_is_help=True)


@app.command()
@grouped
def run(
    *,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME…|all", help="Experiments, or all 18 of the paper.")
    ],
    changes: SpecChanges,
    out: Annotated[Path, typer.Option(help="Folder for the stores.")] = Path("runs"),
    options: RunOptions,
) -> int:
    """Run experiments of the paper, one after another. Finished ones are not run again."""
    suite = sorted(paper.SUITE.experiments) if "all" in names else []
    chosen = dict.fromkeys([*suite, *(name for name in names if name != "all")])
    specs = [changes.of(spec.load(name)) for name in chosen]
    with options.cluster() as cluster:
        missing = _play_all(specs, out, options, cluster)
    if missing:
        console.note(f"Not run for want of data: {', '.join(missing)}")
        return 2
    return 0


def _play_all(
    specs: list[Spec], out: Path, options: RunOptions, cluster: Cluster | None
) -> list[str]:
    """Run and show each experiment; returns the names of those whose data could not be loaded."""
    missing: list[str] = []
    for one in specs:
        try:
            path = run_spec(one, out / one.name, options, cluster)
        except DataError as error:
            # One dataset that cannot be loaded must not stop the other experiments.
            if len(specs) == 1:
                raise
            console.problem(f"{one.name} was left out: {error}")
            missing.append(one.name)
            continue
        show(one, path, options.json)
    return missing


@app.command()
def study(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Study: geometry, shift, contraction, cost, reference, labels, grand or theory.",
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Run the short form: minutes on a CPU.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("studies"),
    device: Device = None,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
    data_dir: DataDir = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Measure one claim of the paper: writes data, a figure and the findings."""
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


@app.command()
def publish(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of stores, with its studies.")
    ],
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE",
            help="Seeds that decide, such as 5-24 or 0,3,5-9 (default: those of judging.toml).",
        ),
    ] = None,
) -> None:
    """Judge the paper's claims from a folder of results; write RESULTS.md and figures/ into it."""
    # Not at the top: the figures and the studies would slow every other command's start.
    from askance.paper import claims

    claims.publish(folder, None if seeds is None else parse_seeds(seeds))
    console.output.print(f"Published: {folder}", markup=False, soft_wrap=True)
