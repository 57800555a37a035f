"""Where work is done: `--engine local`, or a Ray cluster's machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from askance.errors import InputError, UnknownError
from askance.experiments.workers import Cluster

ENGINES = ("local", "ray")

EngineOption = Annotated[str, typer.Option("--engine", help="Where to run: local or ray.")]
Address = Annotated[
    str | None, typer.Option(help="Address of the Ray cluster (default: this machine).")
]
Gpus = Annotated[
    float | None,
    typer.Option(help="Share of a GPU for each task with --engine ray; 0.25 runs four on a GPU."),
]


@contextmanager
def run_cluster(
    engine: str, address: str | None, gpus: float | None, most: int | None
) -> Iterator[Cluster | None]:
    """Who plays rounds, for the time of the context; None for this machine's own processes."""
    with cluster(engine, address, gpus) as ray:
        if ray:
            from askance.integrations.ray_rounds import RayCluster

            yield RayCluster(address, gpus or 0.0, most=most)
        else:
            yield None


@contextmanager
def cluster(engine: str, address: str | None, gpus: float | None) -> Iterator[bool]:
    """Whether the work is done on Ray, which is joined for the time of the context."""
    if engine not in ENGINES:
        raise UnknownError.of("engine", engine, ENGINES)
    if engine == "local":
        if address is not None or gpus is not None:
            raise InputError("--address and --gpus are for --engine ray")
        yield False
        return
    from askance.integrations.ray_cluster import joined

    with joined(address):
        yield True
