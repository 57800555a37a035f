"""`askance run`: one experiment into one store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from askance.cli import console
from askance.cli.engine import Address, EngineOption, Gpus, run_cluster
from askance.cli.options import grouped
from askance.cli.progress import Bar, resumable
from askance.errors import InputError
from askance.experiments import export, spec
from askance.experiments.runner import RunObserver
from askance.experiments.runner import run as run_experiment
from askance.experiments.seeds import from_option
from askance.experiments.spec import Spec
from askance.experiments.stops import StopResult, stops
from askance.experiments.tracked import Tracked
from askance.experiments.workers import Cluster
from askance.integrations.trackers import tracker
from askance.training import ENGINES, PRECISIONS, Engine

Device = Annotated[str | None, typer.Option(help="Device: cpu, cuda, … (CUDA if available).")]
DataDir = Annotated[Path | None, typer.Option(help="Folder to search for datasets first.")]


@dataclass(frozen=True)
class SpecChanges:
    """Options that replace values of the spec."""

    strategies: Annotated[
        str | None, typer.Option(help="Rules, separated by commas (default: the file's).")
    ] = None
    seeds: Annotated[
        str | None,
        typer.Option(help="Number of seeds, or a range such as 5-24.", metavar="K|FIRST-LAST"),
    ] = None
    rounds: Annotated[
        int | None, typer.Option(help="Number of queries (default: the file's).", min=0)
    ] = None
    precision: Annotated[
        str | None, typer.Option(help=f"Precision of training: {', '.join(PRECISIONS)}.")
    ] = None

    def of(self, wanted: Spec) -> Spec:
        """The spec, changed."""
        names = self.strategies
        rules = None if names is None else [name.strip() for name in names.split(",")]
        numbers = None if self.seeds is None else from_option(self.seeds)
        return wanted.override(rules, numbers, self.rounds, self.precision)


@dataclass(frozen=True)
class RunOptions:
    """Options on how to run. None of them changes a result."""

    device: Device = None
    training: Annotated[
        str, typer.Option(help=f"How networks are trained: {', '.join(ENGINES)}.")
    ] = "auto"
    workers: Annotated[
        int | None, typer.Option(help="Number of training processes on a CPU.", min=1)
    ] = None
    engine: EngineOption = "local"
    address: Address = None
    gpus: Gpus = None
    data_dir: DataDir = None
    extend: Annotated[
        bool, typer.Option("--extend", help="Add rules or seeds to an existing store.")
    ] = False
    lean: Annotated[
        bool, typer.Option("--lean", help="Leave scores, seconds and memory out of the store.")
    ] = False
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND:WHERE", help="Tracker: tensorboard:DIR or mlflow:URI. Repeatable."
        ),
    ] = None
    json: Annotated[
        bool,
        typer.Option("--json", help="Print a JSON object for each experiment, not tables."),
    ] = False

    @contextmanager
    def cluster(self) -> Iterator[Cluster | None]:
        """The cluster to run on, for the time of the context; None for this machine."""
        with run_cluster(self.engine, self.address, self.gpus, self.workers) as cluster:
            if (
                cluster
                and self.device is not None
                and not self.device.startswith(cluster.device.type)
            ):
                raise InputError(
                    f"--device {self.device} is for this machine; on the cluster each task trains on "
                    f"{cluster.device.type}, as --gpus says: leave --device out"
                )
            yield cluster


@grouped
def run(
    *,
    experiment: Annotated[
        str, typer.Argument(metavar="[NAME|FILE]", help="Experiment: a name, or a TOML file.")
    ] = "digits",
    changes: SpecChanges,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the store (default: runs/NAME).")
    ] = None,
    options: RunOptions,
) -> int:
    """Run an experiment, or continue one that was stopped."""
    wanted = changes.of(spec.load(experiment))
    with options.cluster() as cluster:
        path = run_spec(wanted, out or Path("runs") / wanted.name, options, cluster)
    show(wanted, path, options.json)
    return 0


def run_spec(wanted: Spec, folder: Path, options: RunOptions, cluster: Cluster | None) -> Path:
    """Run with a progress bar and trackers; on Ctrl-C say how to go on."""
    bar = None if options.json else Bar()
    with resumable(bar, f"{folder}{os.sep}"), ExitStack() as stack:
        observers: list[RunObserver] = [] if bar is None else [bar]
        for text in options.track or []:
            observers.append(Tracked(stack.enter_context(tracker(text))))
        return run_experiment(
            wanted,
            folder,
            device=options.device,
            training=cast(Engine, options.training),
            workers=options.workers,
            cluster=cluster,
            data_dir=options.data_dir,
            extend=options.extend,
            lean=options.lean,
            observers=observers,
        )


def show(wanted: Spec, path: Path, json: bool) -> None:
    """Print the rules, best first, and where the store is."""
    # Not at the top: scipy's statistics would slow every command's start, and every worker's.
    from askance.experiments.statistics.table import BASELINE
    from askance.experiments.summary import left_out, ranking

    table, stopped = export.table(path), stops(path, wanted.stop)
    ranks, untrained = ranking(table), left_out(table)
    if json:
        summary: dict[str, Any] = {"experiment": wanted.name, "store": str(path)}
        summary |= {"ranking": [asdict(rank) for rank in ranks], "rounds_left_out": untrained}
        if wanted.stop:
            summary["stops"] = [asdict(one) for one in stopped]
        console.as_json(summary)
        return
    rows = [
        [
            rank.strategy,
            _share(rank.mean_accuracy) + ("" if rank.spread is None else f" ± {rank.spread:.1%}"),
            _share(rank.final_accuracy),
            "–" if rank.labels_to_match is None else f"{rank.labels_to_match:,.0f}",
        ]
        for rank in ranks
    ]
    goal = f"labels to match {BASELINE}'s final accuracy"
    columns = ["rule", "mean accuracy", "final accuracy", goal]
    counts = {"seed": len({row.seed for row in table}), "round": wanted.schedule.rounds}
    size = ", ".join(f"{n} {noun}" + ("" if n == 1 else "s") for noun, n in counts.items())
    title = f"{wanted.name}: {size} of {wanted.schedule.batch}"
    console.table(title, columns, rows, set(columns[1:]))
    if untrained:
        many = "1 round" if untrained == 1 else f"{untrained} rounds"
        console.line(f"{many} of a seed left out for all rules: a model did not learn its labels.")
    if stopped:
        _show_stops(stopped)
    console.line(f"Store: {path}")


def _show_stops(stopped: Sequence[StopResult]) -> None:
    """Where each stopping rule would have stopped."""
    rows = [
        [
            one.stop,
            one.strategy,
            one.unknown or f"{one.stopped} of {one.seeds}",
            "–" if one.labels is None else f"{one.labels:,.0f}",
            _share(one.accuracy),
            _share(one.final_accuracy),
        ]
        for one in stopped
    ]
    columns = ["stopping rule", "rule", "runs stopped", "labels", "accuracy", "final accuracy"]
    console.table("Where stopping rules stop (means over seeds)", columns, rows, set(columns[2:]))


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
