"""Where a study runs: the device and the data; and the small network that two studies share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from askance import data, models
from askance.data import Dataset
from askance.embedding import Embedding
from askance.seeding import Draws
from askance.training import Build

Location = str | os.PathLike[str]
Say = Callable[[str], None]

CPU = torch.device("cpu")


def silent(step: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Lab:
    """Where a study runs, whatever it studies.

    Args:
        device: where to compute.
        data_dir: a folder in which datasets are looked for first.
        say: called with every step, in words.
    """

    device: torch.device = CPU
    data_dir: Location | None = None
    say: Say = silent

    def load(self, name: str) -> Dataset:
        """The dataset `name`."""
        self.say(f"reading {name}")
        return data.load(name, self.data_dir, progress=False)

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Compute with one thread on a CPU: the number of threads decides a sum's last digits."""
        threads = torch.get_num_threads()
        if self.device.type == "cpu":
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
    """A function that builds the network `name` for a dataset, given the draws of its weights."""
    shape, classes = tuple(dataset.train.inputs.shape[1:]), len(dataset.classes)
    model = f"{__name__}:two_layer" if name == "two-layer" else name

    def build(draws: Draws) -> nn.Module:
        return models.build(model, shape, classes, draws, **options)

    return build


def provenance(dataset: Dataset) -> str:
    """A dataset's name, and how it differs from the official one."""
    return f"{dataset.name}: {dataset.subset or 'the official set'}"


def mean_loss(labeled: Embedding, labels: Tensor) -> float:
    """The mean cross-entropy of a labelled set in float64: how far the set is fitted."""
    assert labeled.logits is not None
    return float(cross_entropy(labeled.logits.double(), labels.to(labeled.device)))
