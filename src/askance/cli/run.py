"""`askance run`: one experiment into one store."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from askance.bench import export, spec
from askance.bench.runner import Watch
from askance.bench.runner import run as run_experiment
from askance.bench.seeds import from_option
from askance.bench.spec import Spec
from askance.bench.tracked import Several, Tracked
from askance.bench.workers import Crew
from askance.cli import console
from askance.cli.engine import Address, EngineOption, Gpus, hired
from askance.cli.progress import Bar, resumable
from askance.connect.trackers import tracker
from askance.errors import InputError
from askance.training import ENGINES, PRECISIONS

Device = Annotated[str | None, typer.Option(help="cpu, cuda, …; CUDA where there is one.")]
Training = Annotated[str, typer.Option(help=f"The engine: {', '.join(ENGINES)}.")]
PrecisionOption = Annotated[str | None, typer.Option(help=f"One of {', '.join(PRECISIONS)}.")]
DataDir = Annotated[Path | None, typer.Option(help="A folder to look for datasets in first.")]
Strategies = Annotated[str | None, typer.Option(help="Rules, by comma, instead of the spec's.")]
Seeds = Annotated[
    str | None,
    typer.Option(
        help="How many seeds, as in 5 (0 to 4), or which, as in 5-24.", metavar="K|FIRST-LAST"
    ),
]
Rounds = Annotated[int | None, typer.Option(help="Acquisitions, instead of the spec's.", min=0)]
Extend = Annotated[bool, typer.Option("--extend", help="Add strategies or seeds to a store.")]
Lean = Annotated[
    bool, typer.Option("--lean", help="Store picks without scores, seconds and memory.")
]
Track = Annotated[
    list[str] | None,
    typer.Option(metavar="KIND:WHERE", help="tensorboard:DIR or mlflow:URI; may be repeated."),
]
WorkerCount = Annotated[
    int | None, typer.Option("--workers", help="Processes that train at a time on a CPU.", min=1)
]
Json = Annotated[
    bool, typer.Option("--json", help="JSON, one object an experiment, instead of tables and bars.")
]


def run(
    experiment: Annotated[
        str, typer.Argument(metavar="[NAME|FILE]", help="A shipped experiment, or a TOML file.")
    ] = "digits",
    strategies: Strategies = None,
    seeds: Seeds = None,
    rounds: Rounds = None,
    out: Annotated[
        Path | None, typer.Option(help="The store's folder; runs/NAME when left out.")
    ] = None,
    device: Device = None,
    training: Training = "auto",
    precision: PrecisionOption = None,
    workers: WorkerCount = None,
    engine: EngineOption = "local",
    address: Address = None,
    gpus: Gpus = None,
    data_dir: DataDir = None,
    extend: Extend = False,
    lean: Lean = False,
    track: Track = None,
    json: Json = False,
) -> int:
    """Run an experiment, or go on with one that was stopped."""
    wanted = changed(spec.load(experiment), strategies, seeds, rounds, precision)
    folder = out or Path("runs") / wanted.name
    with hired(engine, address, gpus, workers) as crew:
        how = Means(device, training, workers, crew, data_dir, extend, lean)
        path = play(wanted, folder, how, quiet=json, track=track)
    show(wanted, path, json)
    return 0


def changed(
    wanted: Spec,
    strategies: str | None,
    seeds: str | None,
    rounds: int | None,
    precision: str | None,
) -> Spec:
    """The spec with what the command line says instead."""
    rules = None if strategies is None else [name.strip() for name in strategies.split(",")]
    numbers = None if seeds is None else from_option(seeds)
    return wanted.override(strategies=rules, seeds=numbers, rounds=rounds, precision=precision)


@dataclass(frozen=True)
class Means:
    """How to run, whatever is run: options that change no result."""

    device: str | None
    training: str
    workers: int | None
    crew: Crew | None
    data_dir: Path | None
    extend: bool
    lean: bool

    def __post_init__(self) -> None:
        there = None if self.crew is None else self.crew.device.type
        if there and self.device is not None and not self.device.startswith(there):
            raise InputError(
                f"--device {self.device} is for this machine; on the cluster each task trains on "
                f"{there}, as --gpus says: leave --device out"
            )


def play(
    wanted: Spec, folder: Path, how: Means, *, quiet: bool, track: list[str] | None = None
) -> Path:
    """Run with a progress bar and trackers; on Ctrl-C say how to go on."""
    bar = None if quiet else Bar()
    with resumable(bar, f"{folder}{os.sep}"), ExitStack() as stack:
        trackers = [stack.enter_context(tracker(text)) for text in track or []]
        told: list[Watch] = [] if bar is None else [bar]
        told += [Tracked(one) for one in trackers]
        return run_experiment(wanted, folder, watch=Several(*told), **vars(how))


def show(wanted: Spec, path: Path, json: bool) -> None:
    """The rules, best first, and where the store is."""
    # Not at the top: scipy's statistics would slow every command's start, and every worker's.
    from askance.bench.stats.table import BASELINE
    from askance.bench.summary import ranking

    ranks = ranking(export.table(path))
    if json:
        summary = {"experiment": wanted.name, "store": str(path)}
        console.as_json({**summary, "ranking": [asdict(rank) for rank in ranks]})
        return
    rows = [
        [
            rank.strategy,
            f"{rank.mean_accuracy:.1%}" + ("" if rank.spread is None else f" ± {rank.spread:.1%}"),
            f"{rank.final_accuracy:.1%}",
            "–" if rank.labels_to_match is None else f"{rank.labels_to_match:,.0f}",
        ]
        for rank in ranks
    ]
    goal = f"labels to where {BASELINE} ends"
    columns = ["rule", "mean accuracy", "at the end", goal]
    counts = {"seed": ranks[0].seeds, "round": wanted.schedule.rounds}
    told = ", ".join(f"{n} {noun}" + ("" if n == 1 else "s") for noun, n in counts.items())
    title = f"{wanted.name}: {told} of {wanted.schedule.batch}"
    console.table(title, columns, rows, set(columns[1:]))
    console.line(f"Store: {path}")
