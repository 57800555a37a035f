"""Where a study is made: the device, the data, training; and the small network two studies share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from askance import data, models
from askance.data import Dataset
from askance.embedding import Embedding
from askance.embedding.device import usable_or_best
from askance.seeding import Draws
from askance.training import Build, Engine, Fitted, OnEpoch, Precision, Recipe, TrainingJob, fit

Location = str | os.PathLike[str]
Say = Callable[[str], None]

CPU = torch.device("cpu")


def _silent(step: str) -> None:
    pass


@dataclass(frozen=True)
class Lab:
    """How a study is made, whatever is studied.

    Args:
        device: where to compute.
        data_dir: a folder to look for datasets in first.
        say: told of every step.
    """

    device: torch.device = CPU
    data_dir: Location | None = None
    say: Say = _silent

    @classmethod
    def at(
        cls,
        device: torch.device | str | None = None,
        data_dir: Location | None = None,
        say: Say | None = None,
    ) -> Lab:
        """A lab on `device`; on CUDA, where there is one, when None."""
        return cls(usable_or_best(device), data_dir, say or _silent)

    def load(self, name: str) -> Dataset:
        self.say(f"reading {name}")
        return data.load(name, self.data_dir, progress=False)

    def fit(
        self,
        build: Build,
        inputs: Tensor,
        jobs: Sequence[TrainingJob],
        recipe: Recipe,
        *,
        precision: Precision = "float32",
        training: Engine = "auto",
        on_epoch: OnEpoch | None = None,
    ) -> Fitted:
        """`askance.training.fit`, with one thread on a CPU: their number decides the last digits."""
        with one_thread(inputs.device):
            return fit(
                build,
                inputs,
                jobs,
                recipe,
                precision=precision,
                training=training,
                on_epoch=on_epoch,
            )


@contextmanager
def one_thread(device: torch.device) -> Iterator[None]:
    """Compute with one thread on a CPU, and with as many as before afterwards."""
    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def two_layer(shape: tuple[int, ...], classes: int, hidden: int = 128) -> nn.Module:
    """One hidden layer of ReLU on the flattened input, and a linear classifier."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(shape), hidden),
        nn.ReLU(),
        nn.Linear(hidden, classes),
    )


def network(name: str, dataset: Dataset, **options: object) -> Build:
    """What makes the network `name` for a dataset, given the draws of its weights."""
    shape, classes = tuple(dataset.train.inputs.shape[1:]), len(dataset.classes)
    known = f"{__name__}:two_layer" if name == "two-layer" else name

    def build(draws: Draws) -> nn.Module:
        return models.build(known, shape, classes, draws, **options)

    return build


def provenance(dataset: Dataset) -> str:
    """A dataset's name, and in which respect it is less or other than the official one."""
    return f"{dataset.name}: {dataset.subset or 'the official set'}"


def mean_loss(seen: Embedding, labels: Tensor) -> float:
    """How far a labelled set is fitted: its mean cross-entropy, in float64."""
    assert seen.logits is not None
    return float(cross_entropy(seen.logits.double(), labels.to(seen.device)))
