"""What training is: the recipe, one job, and the order in which a job sees its points.

Shapes: R jobs; L labelled points; B points in a mini-batch; E epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from askance._checks import check_whole
from askance.embedding.sources import as_labels
from askance.errors import InputError
from askance.seeding import Draws

Precision = Literal["float32", "tf32", "bf16", "float64"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

Build = Callable[[Draws], nn.Module]
"""A network with the initial weights of one (seed, round)."""

OnEpoch = Callable[[int, int], None]
"""(epoch just finished, from 1; how many jobs finished it)."""


@dataclass(frozen=True)
class Recipe:
    """SGD with momentum on the mean cross-entropy of mini-batches, from scratch, no schedule.

    The last, incomplete mini-batch of an epoch is kept.

    Args:
        epochs: passes over the labelled set.
        batch_size: points in a mini-batch.
        momentum: of SGD.
    """

    epochs: int = 50
    batch_size: int = 8
    momentum: float = 0.9

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            check_whole(name, getattr(self, name), 1)
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum must be in [0, 1), got {self.momentum!r}")


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """One network to train.

    Args:
        rows: (L,) positions in the inputs that all jobs share.
        labels: (L,) their classes, as they were answered.
        learning_rate: of SGD.
        draws: the randomness of (seed, round): initial weights and the order of mini-batches.
    """

    rows: NDArray[np.int64]
    labels: Tensor
    learning_rate: float
    draws: Draws

    def __post_init__(self) -> None:
        rows = np.asarray(self.rows, dtype=np.int64)
        if rows.ndim != 1 or len(rows) == 0:
            raise InputError(f"a job needs at least one labelled row, got shape {rows.shape}")
        labels = as_labels(self.labels, len(rows))
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InputError(f"learning_rate must be above 0, got {self.learning_rate!r}")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for two jobs that would train the same network, step for step."""
        return (self.rows.tobytes(), self.labels.numpy().tobytes(), self.learning_rate, self.draws)

    def order(self, epochs: int) -> NDArray[np.int64]:
        """(E, L): how each epoch goes through the labelled points; of (seed, round) and L alone."""
        generator = self.draws.generator("mini-batches")
        return np.stack([generator.permutation(len(self)) for _ in range(epochs)])


def check_jobs(jobs: Sequence[TrainingJob], inputs: Tensor) -> None:
    """Raise unless every job's rows are rows of the inputs."""
    for job in jobs:
        if int(job.rows.min()) < 0 or int(job.rows.max()) >= len(inputs):
            raise InputError(
                f"a job's rows must be between 0 and {len(inputs) - 1}, got "
                f"{int(job.rows.min())} to {int(job.rows.max())}"
            )


def distinct(jobs: Sequence[TrainingJob]) -> tuple[list[TrainingJob], list[int]]:
    """The jobs without repeats, and where each of them is among those."""
    first = {job.key: job for job in reversed(jobs)}
    places = {key: place for place, key in enumerate(dict.fromkeys(job.key for job in jobs))}
    return [first[key] for key in places], [places[job.key] for job in jobs]


def check_precision(precision: str) -> None:
    """Raise unless it is one of `PRECISIONS`."""
    if precision not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")


def dtype_of(precision: Precision) -> torch.dtype:
    """What weights and inputs are kept in; bf16 and tf32 are how products of float32 are made."""
    return torch.float64 if precision == "float64" else torch.float32
