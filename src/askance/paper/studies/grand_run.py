"""Measuring GraNd and EL2N: networks of every draw, and what each score says of its pool.

Shapes: L labelled points; N pool points; K networks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from askance.embedding import embed
from askance.errors import InputError
from askance.experiments.rounds import LoadedExperiment
from askance.gradients.discrepancy import last_layer_reference
from askance.paper.studies import scores
from askance.paper.studies.lab import Lab, provenance
from askance.paper.studies.measures import Floats, overlap, rank_correlation
from askance.paper.studies.reference import Experiment, rate_of
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, fit

LABELS = ("pseudo", "true")


@dataclass(frozen=True)
class GrandOptions:
    """What is measured: draws from `seed` on, each a labelled set, a pool and some networks.

    Args:
        labeled: how many points are labelled, at random.
        points: how many others are scored, at random.
        batch: how many of them are asked for.
        networks: how many initial weights the scores are the mean over.
        early: epochs after which they are taken, beside the last; 0 is before training.
    """

    experiments: tuple[Experiment, ...] = (
        Experiment("isolet-mlp", rates=(0.005,)),
        Experiment("stl10-lenet", rates=(0.001,)),
    )
    labeled: int = 500
    points: int = 1_000
    batch: int = 100
    networks: int = 10
    early: tuple[int, ...] = (0, 5)
    draws: int = 5
    seed: int = 0


@dataclass(frozen=True)
class Ranking:
    """One score of one draw's pool, beside those of two rules.

    Args:
        score: "GraNd", "EL2N", or the name of a rule.
        labels: "true", or "pseudo" for each network's own.
        epoch: of the networks.
        networks: how many the score is the mean over.
        with_gradnorm, with_grad: Spearman's ρ with the rule, over the pool.
        shared_gradnorm, shared_grad: the share of the batch both ask for.
        with_length: Spearman's ρ with the length of the input.
        wrong: the share of the batch whose pseudo-label, by the first network at its end, is wrong.
    """

    experiment: str
    seed: int
    score: str
    labels: str
    epoch: int
    networks: int
    with_gradnorm: float | None
    with_grad: float | None
    shared_gradnorm: float
    shared_grad: float
    with_length: float | None
    wrong: float


@dataclass(frozen=True)
class GrandResult:
    """Every score of every draw.

    Args:
        data: what the datasets are.
        wrong: by experiment the share of each draw's pool whose pseudo-label is wrong.
    """

    options: GrandOptions
    data: tuple[str, ...]
    wrong: dict[str, tuple[float, ...]]
    rankings: tuple[Ranking, ...]


def run(options: GrandOptions, lab: Lab) -> GrandResult:
    """Train the networks of every draw, and score its pool at every epoch in every way."""
    data: list[str] = []
    wrong: dict[str, tuple[float, ...]] = {}
    rankings: list[Ranking] = []
    for experiment in options.experiments:
        lab.say(f"reading the data of {experiment.name}")
        loaded = LoadedExperiment.of(experiment.spec, lab.device, "auto", lab.data_dir)
        wanted, size = options.labeled + options.points, loaded.dataset.pool_size
        if wanted > size:
            raise InputError(
                f"the study wants {wanted} points, the pool of {experiment.name} has {size}"
            )
        data.append(provenance(loaded.dataset))
        with lab.one_thread():
            rate, shares = rate_of(loaded, lab), []
            for seed in range(options.seed, options.seed + options.draws):
                lab.say(f"{experiment.name}: draw {seed - options.seed + 1} of {options.draws}")
                share, those = _draw(loaded, rate, options, seed)
                shares.append(share)
                rankings += those
            wrong[experiment.name] = tuple(shares)
    return GrandResult(options, tuple(data), wrong, tuple(rankings))


def _draw(
    loaded: LoadedExperiment, rate: float, options: GrandOptions, seed: int
) -> tuple[float, list[Ranking]]:
    """The share of wrong pseudo-labels in one draw's pool, and every score of it."""
    wanted = options.labeled + options.points
    rows = Draws(seed).generator("start").choice(loaded.dataset.pool_size, wanted, replace=False)
    rows_L, rows_N = rows[: options.labeled], rows[options.labeled :]
    labels = loaded.dataset.train.labels
    labels_L, truth_N = labels[torch.from_numpy(rows_L)], labels[torch.from_numpy(rows_N)]
    inputs_L, inputs_N = (loaded.inputs[torch.from_numpy(at)] for at in (rows_L, rows_N))
    jobs = [
        TrainingJob(rows_L, labels_L, rate, Draws(seed, number))
        for number in range(options.networks)
    ]
    last = loaded.fit(jobs).model(0)
    pool = embed(last, inputs_N, batch_size=1024)
    reference = last_layer_reference(embed(last, inputs_L, batch_size=1024), labels_L)
    guessed_N = scores.pseudo(pool)
    wrong_N = (guessed_N.cpu() != truth_N).numpy()
    gradnorm = scores.last_layer_norm(pool, guessed_N)
    grad = scores.df(pool, guessed_N, reference)
    lengths = inputs_N.flatten(1).double().norm(dim=1).cpu().numpy()
    tops = [scores.in_order(each)[: options.batch] for each in (gradnorm, grad)]

    def ranking(score: str, labels: str, epoch: int, networks: int, values_N: Floats) -> Ranking:
        top = scores.in_order(values_N)[: options.batch]
        return Ranking(
            loaded.spec.name, seed, score, labels, epoch, networks,
            with_gradnorm=rank_correlation(values_N, gradnorm),
            with_grad=rank_correlation(values_N, grad),
            shared_gradnorm=overlap(top, tops[0]),
            shared_grad=overlap(top, tops[1]),
            with_length=rank_correlation(values_N, lengths),
            wrong=float(wrong_N[top].mean()),
        )  # fmt: skip

    epochs = loaded.recipe.epochs
    rankings = [
        ranking("gradnorm", "pseudo", epochs, 1, gradnorm),
        ranking("grad", "pseudo", epochs, 1, grad),
        ranking("gradnorm", "true", epochs, 1, scores.last_layer_norm(pool, truth_N)),
    ]
    for (score, kind, epoch), each_KN in _scores(loaded, jobs, options, inputs_N, truth_N):
        for count in sorted({1, options.networks}):
            rankings.append(ranking(score, kind, epoch, count, each_KN[:count].mean(axis=0)))
    return float(wrong_N.mean()), rankings


def _scores(
    loaded: LoadedExperiment,
    jobs: list[TrainingJob],
    options: GrandOptions,
    inputs_N: Tensor,
    truth_N: Tensor,
) -> Iterator[tuple[tuple[str, str, int], Floats]]:
    """((score, labels, epoch), (K, N) of every network) at each epoch."""
    recipe = loaded.recipe
    for epoch in (*options.early, recipe.epochs):
        if epoch:
            shorter = Recipe(epoch, recipe.batch_size, recipe.momentum)
            fitted = fit(loaded.build, loaded.inputs, jobs, shorter, precision=loaded.spec.precision,
                         training=loaded.engine)  # fmt: skip
            models = [fitted.model(place) for place in range(len(jobs))]
        else:
            models = [loaded.build(job.draws).to(inputs_N.device).eval() for job in jobs]
        pools = [embed(model, inputs_N, batch_size=1024) for model in models]
        for kind in LABELS:
            labels = [truth_N if kind == "true" else scores.pseudo(pool) for pool in pools]
            yield ("EL2N", kind, epoch), np.stack(list(map(scores.el2n, pools, labels)))
            each = [
                scores.grand(model, inputs_N, y) for model, y in zip(models, labels, strict=True)
            ]
            yield ("GraNd", kind, epoch), np.stack(each)
