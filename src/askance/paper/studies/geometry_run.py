"""Measuring where a batch lies: the starts, their batches, and how far apart these are.

Shapes: N pool points; C classes; D features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding
from askance.errors import InputError
from askance.gradients.last_layer import pseudo_residuals
from askance.paper.studies.lab import Lab, network, provenance
from askance.paper.studies.measures import Rows, Spread, close_limit, spread
from askance.paper.studies.study import column
from askance.seeding import Draws
from askance.selection import select
from askance.training import Recipe, TrainingJob, fit

Points = NDArray[np.float64]
Batches = dict[str, dict[str, Rows]]  # picks by rule and, as text, size

SPACES = ("inputs", "gradients")
VIEWS = ("space", "plane")
CHANCE = "random"


@dataclass(frozen=True)
class GeometryOptions:
    """What is measured: starts from `seed` on, each with a labelled set, a network and its batches."""

    dataset: str = "mnist"
    points: int = 3_000
    labeled: int = 10
    batches: tuple[int, ...] = (10, 20, 40)
    rules: tuple[str, ...] = ("grad", "entropy", "badge")
    hidden: int = 128
    learning_rate: float = 0.01
    epochs: int = 100
    starts: int = 20
    chance: int = 100
    seed: int = 0


@dataclass(frozen=True)
class Measured:
    """One batch: of a rule from one start, or the mean of `chance` random ones."""

    start: int
    space: str
    view: str
    batch: int
    rule: str
    spread: Spread


@dataclass(frozen=True)
class Plane:
    """The first start's picture: two principal components of every point.

    Args:
        explained: the share of variance in each component.
        points: (N, 2), in the order of points.
    """

    space: str
    explained: tuple[float, ...]
    points: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class GeometryResult:
    """What was measured, and what the pictures of the first start show.

    Args:
        data: what the dataset is.
        labeled: the first start's labelled points.
        picks: its batches, by rule and size.
        planes: its pictures.
        measured: all numbers.
    """

    options: GeometryOptions
    data: str
    labeled: tuple[int, ...]
    picks: dict[str, dict[str, tuple[int, ...]]]
    planes: tuple[Plane, ...]
    measured: tuple[Measured, ...]


def run(options: GeometryOptions, lab: Lab) -> GeometryResult:
    """Train a network from every start, let every rule pick, and measure the batches."""
    dataset = lab.load(options.dataset)
    if options.points > dataset.pool_size:
        raise InputError(
            f"the study wants {options.points} points, {dataset.name} has {dataset.pool_size}"
        )
    draws = Draws(options.seed).generator("points")
    rows = torch.from_numpy(np.sort(draws.choice(dataset.pool_size, options.points, replace=False)))
    inputs, labels = dataset.train.inputs[rows].flatten(1), dataset.train.labels[rows]
    jobs = [_job(options, labels, Draws(options.seed + number)) for number in range(options.starts)]
    lab.say(f"training {len(jobs)} networks on {options.labeled} points each")
    build = network("two-layer", dataset, hidden=options.hidden)
    with lab.one_thread():
        fitted = fit(build, inputs.to(lab.device), jobs, Recipe(epochs=options.epochs))
    inputs_ND = inputs.double().numpy()
    measured: list[Measured] = []
    pictures: list[tuple[Batches, list[Plane]]] = []
    embeddings = fitted.embed(inputs.to(lab.device))
    for number, (job, embedding) in enumerate(zip(jobs, embeddings, strict=True)):
        lab.say(f"measuring start {number + 1} of {options.starts}")
        picks = _batches(options, embedding, job)
        spaces = {"inputs": inputs_ND, "gradients": gradient_rows(embedding)}
        planes = [_plane(space, points) for space, points in spaces.items()]
        views = [(space, "space", points) for space, points in spaces.items()]
        views += [(plane.space, "plane", np.array(plane.points)) for plane in planes]
        for space, view, points in views:
            for batch, rule, measure in _spreads(options, points, job, picks):
                measured.append(Measured(options.seed + number, space, view, batch, rule, measure))
        pictures.append((picks, planes))
    first_picks, first_planes = pictures[0]
    return GeometryResult(
        options=options,
        data=provenance(dataset),
        labeled=tuple(jobs[0].rows.tolist()),
        picks={r: {n: tuple(p.tolist()) for n, p in of.items()} for r, of in first_picks.items()},
        planes=tuple(first_planes),
        measured=tuple(measured),
    )


def _job(options: GeometryOptions, labels: Tensor, draws: Draws) -> TrainingJob:
    rows = draws.generator("start").choice(options.points, options.labeled, replace=False)
    return TrainingJob(rows, labels[torch.from_numpy(rows)], options.learning_rate, draws)


def _batches(options: GeometryOptions, embedding: Embedding, job: TrainingJob) -> Batches:
    labeled = embedding[job.rows], job.labels

    def picks(rule: str, n: int) -> Rows:
        """The rule's batch of `n` from this start."""
        return select(
            None, labeled, embedding, n, strategy=rule, seed=job.draws, exclude=job.rows
        ).indices

    return {rule: {str(n): picks(rule, n) for n in options.batches} for rule in options.rules}


def gradient_rows(embedding: Embedding) -> Points:
    """Every point's pseudo-labelled last-layer gradient a ⊗ [h; 1], (N, C·(D + 1)).

    The one place where they are written out: principal components are of rows.
    """
    assert embedding.logits is not None
    assert embedding.features is not None
    a_NC, h_ND = pseudo_residuals(embedding.logits.double()), embedding.features.double()
    h_ND = torch.cat([h_ND, h_ND.new_ones(len(h_ND), 1)], dim=1)
    return (a_NC[:, :, None] * h_ND[:, None, :]).flatten(1).cpu().numpy()


def _plane(space: str, points: Points) -> Plane:
    from sklearn.decomposition import PCA

    pca = PCA(n_components=2, svd_solver="covariance_eigh").fit(points)
    placed = pca.transform(points).round(6)
    explained = tuple(float(share) for share in pca.explained_variance_ratio_)
    return Plane(space, explained, tuple(map(tuple, placed.tolist())))


def _spreads(
    options: GeometryOptions, points: Points, job: TrainingJob, picks: Batches
) -> Iterator[tuple[int, str, Spread]]:
    from sklearn.metrics import euclidean_distances

    pool = np.setdiff1d(np.arange(len(points)), job.rows)
    distances = euclidean_distances(points[pool])
    limit = close_limit(distances)
    for n in options.batches:
        for rule, of in picks.items():
            yield n, rule, spread(distances, np.searchsorted(pool, of[str(n)]), limit)
        by_chance = job.draws.generator(f"chance {n}")
        drawn = [
            astuple(spread(distances, by_chance.choice(len(pool), n, replace=False), limit))
            for _ in range(options.chance)
        ]
        yield n, CHANCE, Spread(*np.mean(drawn, axis=0).tolist())


def values(
    result: GeometryResult, space: str, view: str, batch: int, rule: str, measure: str
) -> NDArray[np.float64]:
    """One measure of one kind of batch, start by start."""
    field = f"spread.{measure}"
    return column(result.measured, field, space=space, view=view, batch=batch, rule=rule)
