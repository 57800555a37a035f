"""What the study `contraction` measures: ‖DF(S, S_J, t)‖ along training, in every reading of the paper.

S is a sample of points and S_J a random subset of it; DF(S, S_J, t) = ∇f(θ_t; S) − ∇f(θ_t; S_J),
under true labels, after each epoch t. The paper leaves open which optimiser, which batch, which of
both sets is trained on, which gradient is meant and how large S_J is. So a *cell* is one choice of
each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from askance.errors import DataError
from askance.paper.studies.lab import Lab, network, provenance
from askance.paper.studies.measures import Contraction, Floats, contraction
from askance.paper.studies.paths import (
    OPTIMISERS,
    ROTATABLE,
    TwoLayers,
    subset_weights,
    train,
)
from askance.paper.studies.samples import DrawnSample
from askance.seeding import Draws
from askance.training import TrainingJob

GRADIENTS = ("full θ", "last layer")
WHOLE, PART = "S", "S_J"
HALF = 0.5  # of S, which S_J is where it is trained on
TRAINED = 0.9  # of its first loss: a network that is still above it has not trained
_STACK = 1 << 18  # weights: with more, a CPU trains networks faster one after the other
_EVERY = 10  # epochs: of a series' norms so many are kept, to be drawn


@dataclass(frozen=True)
class ContractionOptions:
    """What is measured: draws of S, S_J and initial weights from `seed` on.

    Args:
        optimisers: names in `paths.OPTIMISERS`.
        batches: points in a mini-batch; None for all at once.
        shares: |S_J|/|S|, read off the paths that are trained on S.
        trained_on: "S"; "S_J" too, with half of S.
    """

    datasets: tuple[str, ...] = ("german", "gisette", "20newsgroups")
    points: int = 1_000
    hidden: int = 128
    learning_rate: float = 1e-4
    epochs: int = 150
    optimisers: tuple[str, ...] = tuple(OPTIMISERS)
    batches: tuple[int | None, ...] = (8, None)
    trained_on: tuple[str, ...] = (WHOLE, PART)
    shares: tuple[float, ...] = (0.1, HALF, 0.9)
    draws: int = 10
    seed: int = 0


@dataclass(frozen=True)
class TrainingChoice:
    """How a network was trained: the part of a cell that is decided before anything is measured."""

    dataset: str
    optimiser: str
    batch: int | None
    trained_on: str


@dataclass(frozen=True)
class Series:
    """‖DF‖ of one gradient and one S_J along a path.

    Args:
        gradient: one of `GRADIENTS`.
        share: |S_J|/|S|.
        start: at the initial weights.
        norms: after the epochs of `kept_epochs`, to four digits.
        found: what all epochs come to.
    """

    gradient: str
    share: float
    start: float
    norms: tuple[float, ...]
    found: Contraction


@dataclass(frozen=True)
class TrainedPath:
    """One network's training.

    Args:
        seed: of S, S_J and the initial weights.
        loss: the mean loss over S at the start and after the last epoch.
    """

    choice: TrainingChoice
    seed: int
    loss: tuple[float, float]
    series: tuple[Series, ...]


@dataclass(frozen=True)
class ContractionResult:
    """Every path of every choice.

    Args:
        data: what the datasets are.
        absent: datasets that could not be loaded, with the reason.
    """

    options: ContractionOptions
    data: tuple[str, ...]
    absent: dict[str, str]
    paths: tuple[TrainedPath, ...]


@dataclass(frozen=True)
class Cell:
    """One reading of the paper: the series of all draws, and whether its networks trained."""

    choice: TrainingChoice
    gradient: str
    share: float
    loss: tuple[float, float]
    series: tuple[Series, ...]

    @property
    def trained(self) -> bool:
        """Whether the mean loss on S fell by a tenth or more."""
        return self.loss[1] <= TRAINED * self.loss[0]

    def values(self, measure: Callable[[Contraction], float]) -> Floats:
        """One number a draw."""
        return np.array([measure(one.found) for one in self.series], dtype=np.float64)


def cells(result: ContractionResult) -> list[Cell]:
    """The cells of a result, in the order of its paths."""
    by_choice: dict[TrainingChoice, list[TrainedPath]] = {}
    for path in result.paths:
        by_choice.setdefault(path.choice, []).append(path)
    found = []
    for choice, paths in by_choice.items():
        before, after = (float(np.mean([one.loss[end] for one in paths])) for end in (0, 1))
        for series in zip(*(one.series for one in paths), strict=True):
            first = series[0]
            found.append(Cell(choice, first.gradient, first.share, (before, after), series))
    return found


def kept_epochs(epochs: int) -> list[int]:
    """The epochs whose norms are kept: the first, every tenth and the last."""
    return sorted({1, epochs, *range(_EVERY, epochs, _EVERY)})


def run(options: ContractionOptions, lab: Lab) -> ContractionResult:
    """Train every network on every dataset that can be loaded, and measure ‖DF‖ after each epoch."""
    data: list[str] = []
    absent: dict[str, str] = {}
    paths: list[TrainedPath] = []
    for name in options.datasets:
        try:
            dataset = lab.load(name)
        except DataError as error:
            absent[name] = str(error)
            continue
        data.append(provenance(dataset))
        build = network("two-layer", dataset, hidden=options.hidden)
        with lab.one_thread():
            shares = [*options.shares, *([HALF] if PART in options.trained_on else [])]
            samples = [
                DrawnSample.of(
                    dataset,
                    build,
                    Draws(options.seed + number),
                    points=options.points,
                    shares=shares,
                    device=lab.device,
                )
                for number in range(options.draws)
            ]
            paths += _paths(dataset.name, options, samples, lab)
    if not paths:
        raise DataError(f"none of the datasets is at hand. {' '.join(absent.values())}")
    return ContractionResult(options, tuple(data), absent, tuple(paths))


def _paths(
    name: str, options: ContractionOptions, samples: Sequence[DrawnSample], lab: Lab
) -> list[TrainedPath]:
    """Every choice's paths, draw by draw."""
    paths = []
    narrow = [one.narrowed() for one in samples]
    for optimiser in options.optimisers:
        chosen = narrow if optimiser in ROTATABLE else samples
        for batch in options.batches:
            for trained_on in options.trained_on:
                choice = TrainingChoice(name, optimiser, batch, trained_on)
                lab.say(
                    f"{name}: {optimiser}, batch {batch or 'full'}, trained on {trained_on}: "
                    f"{len(samples)} draws of {options.epochs} epochs"
                )
                for some in stacks(chosen, options.hidden):
                    paths += _follow(options, choice, some)
    return paths


def stacks(samples: Sequence[DrawnSample], hidden: int) -> list[list[DrawnSample]]:
    """The samples in groups that are trained side by side: of one shape, and not too many weights."""
    groups: list[list[DrawnSample]] = []
    for one in samples:
        most = _STACK if one.inputs.device.type == "cpu" else 64 * _STACK
        room = most // (hidden * one.inputs.shape[1])
        last = groups[-1] if groups else []
        if last and len(last) < room and last[0].inputs.shape == one.inputs.shape:
            last.append(one)
        else:
            groups.append([one])
    return groups


def _follow(
    options: ContractionOptions, choice: TrainingChoice, samples: Sequence[DrawnSample]
) -> list[TrainedPath]:
    """Train a stack of networks, and measure each after every epoch."""
    device = samples[0].inputs.device
    networks = TwoLayers([one.start for one in samples])
    shares = options.shares if choice.trained_on == WHOLE else (HALF,)
    weights_RJL = [
        subset_weights(options.points, [one.subsets[share] for share in shares]).to(device)
        for one in samples
    ]

    def norms() -> Floats:
        """(R, J, 2) discrepancies."""
        norms_RJ2 = [
            one.points.discrepancies(networks.one(r), w_JL)
            for r, (one, w_JL) in enumerate(zip(samples, weights_RJL, strict=True))
        ]
        return torch.stack(norms_RJ2).cpu().numpy()

    def losses() -> list[float]:
        return [digits(one.points.loss(networks.one(r))) for r, one in enumerate(samples)]

    whole = torch.arange(options.points)
    rows_RL = [whole if choice.trained_on == WHOLE else one.subsets[HALF] for one in samples]
    jobs = [
        TrainingJob(rows_L.numpy(), one.labels[rows_L].cpu(), options.learning_rate, one.draws)
        for one, rows_L in zip(samples, rows_RL, strict=True)
    ]
    order_REL = torch.stack([torch.from_numpy(job.order(options.epochs)) for job in jobs])
    epochs = train(
        networks,
        torch.stack([one.inputs[rows] for one, rows in zip(samples, rows_RL, strict=True)]),
        torch.stack([one.labels[rows] for one, rows in zip(samples, rows_RL, strict=True)]),
        order_REL.to(device),
        optimiser=choice.optimiser,
        learning_rate=options.learning_rate,
        batch=choice.batch,
    )
    before = losses()
    norms_TRJ2 = np.stack([norms(), *(norms() for _ in epochs)])
    after = losses()
    return [
        TrainedPath(
            choice,
            one.draws.seed,
            (before[r], after[r]),
            tuple(
                _series(gradient, share, norms_TRJ2[:, r, j, g])
                for g, gradient in enumerate(GRADIENTS)
                for j, share in enumerate(shares)
            ),
        )
        for r, one in enumerate(samples)
    ]


def _series(gradient: str, share: float, norms_T: Floats) -> Series:
    """One series; `norms_T` starts at the initial weights."""
    found = contraction(norms_T[1:])
    kept = tuple(digits(norms_T[epoch], 4) for epoch in kept_epochs(len(norms_T) - 1))
    return Series(gradient, share, digits(norms_T[0], 4), kept, rounded(found))


def rounded(found: Contraction) -> Contraction:
    """The same to six digits, so that a result of a thousand series is a small file."""
    changed: dict[str, Any] = {
        key: digits(value) for key, value in vars(found).items() if isinstance(value, float)
    }
    return replace(found, **changed)


def digits(value: float, count: int = 6) -> float:
    """The value to so many digits, which is shorter to write down."""
    return float(f"{value:.{count}g}")
