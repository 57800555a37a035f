"""`fit`: a list of jobs in, as many trained networks out, by the engine that suits the device."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from askance.errors import InputError
from askance.seeding import Draws
from askance.training.fitted import Fitted, Networks, Stacks
from askance.training.numerics import numerics
from askance.training.recipe import (
    Build,
    OnEpoch,
    Precision,
    Recipe,
    TrainingJob,
    check_jobs,
    check_precision,
    distinct,
    dtype_of,
)
from askance.training.sequential import fit_in_sequence
from askance.training.stack import Stack, stackable
from askance.training.stacked import fit_stacks

log = logging.getLogger(__name__)

Engine = Literal["auto", "one", "captured", "stacked", "streams"]
ENGINES: tuple[Engine, ...] = get_args(Engine)


def chosen(engine: Engine, device: torch.device, build: Build) -> Engine:
    """The engine to use: "auto" is "stacked" on a GPU where the network can be stacked, else "one".

    On a CPU a stack does not fit into the cache; without one a GPU is mostly idle.
    """
    if engine not in ENGINES:
        raise InputError(f"training must be one of {', '.join(ENGINES)}, got {engine!r}")
    if engine in ("captured", "streams") and device.type != "cuda":
        raise InputError(
            f"training={engine!r} records CUDA graphs, and the device is {device}; "
            f"use 'one' or 'stacked'"
        )
    if engine != "auto":
        return engine
    return "stacked" if device.type == "cuda" and stackable(build(Draws())) else "one"


def fit(
    build: Build,
    inputs: Tensor,
    jobs: Sequence[TrainingJob],
    recipe: Recipe,
    *,
    precision: Precision = "float32",
    training: Engine = "auto",
    on_epoch: OnEpoch | None = None,
) -> Fitted:
    """A network for each job, trained from scratch on the inputs' device.

    Jobs that are the same job (in round 0 every rule of a seed is) are trained once and share one
    network. What does not fit into memory at once is trained in several stacks.

    Args:
        build: makes a network with the initial weights of one (seed, round).
        inputs: (N, …) the points all jobs take theirs from; where they lie, training happens.
        jobs: what to train.
        recipe: how.
        precision: "float32"; "tf32" and "bf16" make products faster on CUDA; "float64".
        training: "one" after the other; "stacked" side by side; on CUDA also "captured" (one after
            the other, as graphs) and "streams" (graphs beside each other); or "auto".
        on_epoch: called after every epoch.
    """
    check_jobs(jobs, inputs)
    check_precision(precision)
    engine = chosen(training, inputs.device, build)
    inputs = inputs.to(dtype_of(precision))
    singles, where = distinct(jobs)
    with torch.enable_grad(), numerics(inputs.device, precision):
        if engine == "one":
            models = fit_in_sequence(build, inputs, singles, recipe, on_epoch)
            return Networks(singles, where, precision, models)
        stacks, places = _fit_what_fits(build, inputs, singles, recipe, engine, on_epoch)
    order = [place for part in places for place in part]
    where = [order.index(place) for place in where]
    return Stacks([singles[place] for place in order], where, precision, stacks, build)


def _fit_what_fits(
    build: Build,
    inputs: Tensor,
    jobs: Sequence[TrainingJob],
    recipe: Recipe,
    engine: Engine,
    on_epoch: OnEpoch | None,
) -> tuple[list[Stack], list[list[int]]]:
    """Train in stacks as large as memory allows; where it does not, in stacks of half that size."""
    size = len(jobs) if engine == "stacked" else 1
    streams = len(jobs) if engine == "streams" else 1
    while True:
        try:
            return fit_stacks(
                build, inputs, jobs, recipe, size=size, streams=streams, on_epoch=on_epoch
            )
        except torch.OutOfMemoryError:
            if size == streams == 1:
                raise
        size, streams = -(-size // 2), -(-streams // 2)
        log.info("not enough memory: stacks of %d, %d at a time", size, streams)
        torch.cuda.empty_cache()
