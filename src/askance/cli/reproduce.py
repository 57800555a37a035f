"""`askance reproduce`: the paper's experiments, one store each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askance.bench import spec
from askance.bench.spec import Spec
from askance.cli import console
from askance.cli.engine import Address, EngineOption, Gpus, hired
from askance.cli.run import (
    DataDir,
    Device,
    Extend,
    Json,
    Lean,
    Means,
    PrecisionOption,
    Rounds,
    Seeds,
    Strategies,
    Track,
    Training,
    WorkerCount,
    changed,
    play,
    show,
)
from askance.errors import DataError


def reproduce(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME…|all", help="Experiments, or all 18 of the paper.")
    ],
    strategies: Strategies = None,
    seeds: Seeds = None,
    rounds: Rounds = None,
    out: Annotated[Path, typer.Option(help="A folder for one store an experiment.")] = Path("runs"),
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
    """Run experiments of the paper one after the other; those done are only shown."""
    wanted = [changed(one, strategies, seeds, rounds, precision) for one in _specs(names)]
    with hired(engine, address, gpus, workers) as crew:
        how = Means(device, training, workers, crew, data_dir, extend, lean)
        missing = _play_all(wanted, out, how, json, track)
    if missing:
        console.note(f"Not run for want of data: {', '.join(missing)}")
        return 2
    return 0


def _play_all(
    wanted: list[Spec], out: Path, how: Means, json: bool, track: list[str] | None
) -> list[str]:
    """Run and show each; the names of those whose data could not be had."""
    missing: list[str] = []
    for one in wanted:
        try:
            path = play(one, out / one.name, how, quiet=json, track=track)
        except DataError as error:
            # One dataset that cannot be had must not cost the other experiments their night.
            if len(wanted) == 1:
                raise
            console.problem(f"{one.name} was left out: {error}")
            missing.append(one.name)
            continue
        show(one, path, json)
    return missing


def _specs(names: list[str]) -> list[Spec]:
    every = [name for name in spec.names() if name != "digits"] if "all" in names else []
    asked = [name for name in names if name != "all"]
    return [spec.load(name) for name in dict.fromkeys([*every, *asked])]
