"""`fit`: a list of jobs in, a list of trained networks out, by the engine that suits the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from askance.errors import InputError
from askance.training.numerics import numerics
from askance.training.one import fit_one_by_one
from askance.training.recipe import (
    Build,
    Job,
    OnEpoch,
    Precision,
    Recipe,
    check_jobs,
    check_precision,
    distinct,
    dtype_of,
)
from askance.training.stacked import fit_stacked

Engine = Literal["auto", "one", "stacked"]
ENGINES: tuple[Engine, ...] = get_args(Engine)


def chosen(engine: Engine, device: torch.device) -> Literal["one", "stacked"]:
    """What "auto" stands for: on a CPU a stack falls out of the cache, a GPU idles without one."""
    if engine not in ENGINES:
        raise InputError(f"training must be one of {', '.join(ENGINES)}, got {engine!r}")
    if engine != "auto":
        return engine
    return "stacked" if device.type == "cuda" else "one"


def fit(
    build: Build,
    inputs: Tensor,
    jobs: Sequence[Job],
    recipe: Recipe,
    *,
    precision: Precision = "float32",
    training: Engine = "auto",
    on_epoch: OnEpoch | None = None,
) -> list[nn.Module]:
    """A network for each job, trained from scratch on the inputs' device, in evaluation mode.

    Jobs that are the same job (in round 0 every rule of a seed is) are trained once and share one
    network.

    Args:
        build: makes a network with the initial weights of one (seed, round).
        inputs: (N, …) the points all jobs take theirs from; where they lie, training happens.
        jobs: what to train.
        recipe: how.
        precision: "float32"; "tf32" and "bf16" make products faster on CUDA; "float64".
        training: "one" after the other, "stacked" side by side, or "auto" by device.
        on_epoch: told of every finished epoch.
    """
    check_jobs(jobs, inputs)
    check_precision(precision)
    engine = fit_stacked if chosen(training, inputs.device) == "stacked" else fit_one_by_one
    inputs = inputs.to(dtype_of(precision))
    singles, where = distinct(jobs)
    with torch.enable_grad(), numerics(inputs.device, precision):
        models = engine(build, inputs, singles, recipe, on_epoch)
    return [models[place] for place in where]


@dataclass(frozen=True)
class Score:
    """How a network did on labelled points: share of right answers, mean cross-entropy."""

    accuracy: float
    loss: float


def evaluate(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    *,
    precision: Precision = "float32",
    batch_size: int = 1024,
) -> Score:
    """Accuracy and mean cross-entropy of a network in evaluation mode."""
    right, loss = 0, 0.0
    with torch.no_grad(), numerics(inputs.device, precision):
        for x, y in zip(inputs.split(batch_size), labels.split(batch_size), strict=True):
            logits = model(x.to(dtype_of(precision))).double()
            right += int((logits.argmax(dim=1) == y).sum())
            loss += float(cross_entropy(logits, y, reduction="sum"))
    return Score(right / len(labels), loss / len(labels))
