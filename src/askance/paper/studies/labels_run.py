"""Both scores along runs of `grad`, under pseudo-labels and true ones, and runs of an oracle.

Shapes: N pool points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from askance.embedding import Embedding
from askance.experiments.rounds import LoadedExperiment, RunState
from askance.gradients.discrepancy import last_layer_reference
from askance.loop import Run
from askance.paper.studies import scores
from askance.paper.studies.lab import Lab, provenance
from askance.paper.studies.measures import Rows, overlap, rank_correlation
from askance.paper.studies.reference import Experiment, rate_of
from askance.selection import select

ORACLE = "oracle"  # grad under the true labels
PATHS = ("random", "grad", ORACLE)


@dataclass(frozen=True)
class LabelsOptions:
    """What is measured: runs with seeds from `seed` on, of each way to pick."""

    experiments: tuple[Experiment, ...] = (
        Experiment("isolet-mlp", rates=(0.005,)),
        Experiment("stl10-lenet", rates=(0.001,)),
    )
    runs: int = 5
    seed: int = 0


@dataclass(frozen=True)
class LabelsRound:
    """Both scores in one round of a run of `grad`.

    Args:
        spearman: of DF under pseudo-labels and true ones, over the unlabelled pool.
        overlap: of their batches.
        wrong: share of the unlabelled pool whose pseudo-label is not the true one.
        wrong_pseudo, wrong_true: the same of the batch under pseudo-labels, and under true ones.
    """

    experiment: str
    seed: int
    round: int
    labels: int
    spearman: float | None
    overlap: float
    wrong: float
    wrong_pseudo: float
    wrong_true: float


@dataclass(frozen=True)
class PathAccuracy:
    """The test accuracy of one way to pick after one round."""

    experiment: str
    path: str
    seed: int
    round: int
    labels: int
    accuracy: float


@dataclass(frozen=True)
class LabelsResult:
    """Every round of every run.

    Args:
        data: what the datasets are.
        rates: each experiment's learning rate.
        rounds: both scores, along the runs of `grad`.
        curves: test accuracies.
    """

    options: LabelsOptions
    data: tuple[str, ...]
    rates: dict[str, float]
    rounds: tuple[LabelsRound, ...]
    curves: tuple[PathAccuracy, ...]


def run(options: LabelsOptions, lab: Lab) -> LabelsResult:
    """Play every experiment in each way, and compare both scores along the runs of `grad`."""
    data: list[str] = []
    rates: dict[str, float] = {}
    rounds: list[LabelsRound] = []
    curves: list[PathAccuracy] = []
    for experiment in options.experiments:
        lab.say(f"reading the data of {experiment.name}")
        loaded = LoadedExperiment.of(experiment.spec, lab.device, "auto", lab.data_dir)
        data.append(provenance(loaded.dataset))
        with lab.one_thread():
            rates[experiment.name] = rate_of(loaded, lab)
            _play(loaded, rates[experiment.name], options, lab, rounds, curves)
    return LabelsResult(options, tuple(data), rates, tuple(rounds), tuple(curves))


def _play(
    loaded: LoadedExperiment,
    rate: float,
    options: LabelsOptions,
    lab: Lab,
    rounds: list[LabelsRound],
    curves: list[PathAccuracy],
) -> None:
    """All runs of an experiment, round by round."""
    name, rule = loaded.spec.name, loaded.spec.strategies[0]
    seeds = range(options.seed, options.seed + options.runs)
    runs = [(path, loaded.run(RunState(rule, seed))) for path in PATHS for seed in seeds]
    test = loaded.dataset.test
    inputs, labels = test.inputs.to(lab.device), test.labels.to(lab.device)
    for number in range(loaded.spec.schedule.rounds + 1):
        lab.say(f"{name}: round {number} of {loaded.spec.schedule.rounds}")
        fitted = loaded.fit([loaded.job(run, rate) for _, run in runs])
        for (path, run), score in zip(runs, fitted.evaluate(inputs, labels), strict=True):
            curves.append(PathAccuracy(name, path, run.seed, number, len(run.rows), score.accuracy))
        if runs[0][1].finished:
            return
        for (path, run), pool in zip(runs, fitted.embed(loaded.inputs), strict=True):
            if path == "random":
                picks = select(
                    None, None, pool, run.batch, strategy=path, seed=run.draws, exclude=run.asked
                ).indices
            else:
                one, batches = compare(name, run, pool, loaded.dataset.train.labels)
                picks = batches[path]
                if path == "grad":
                    rounds.append(one)
            run.tell(picks)


def compare(
    name: str, run: Run, pool: Embedding, truth: torch.Tensor
) -> tuple[LabelsRound, dict[str, Rows]]:
    """Both scores of a run's unlabelled pool, and the batch that each would ask for."""
    reference = last_layer_reference(pool[run.rows], run.labels)
    free = np.setdiff1d(np.arange(run.size), run.asked)
    unlabelled, truth_N = pool[free], truth[torch.from_numpy(free)].to(pool.device)
    pseudo_N = scores.pseudo(unlabelled)
    wrong_N = (pseudo_N != truth_N).cpu().numpy()
    by_pseudo, by_truth = (
        scores.df(unlabelled, labels, reference) for labels in (pseudo_N, truth_N)
    )
    tops = [scores.in_order(by)[: run.batch] for by in (by_pseudo, by_truth)]
    agreement = LabelsRound(
        experiment=name,
        seed=run.seed,
        round=run.round,
        labels=len(run.rows),
        spearman=rank_correlation(by_pseudo, by_truth),
        overlap=overlap(*tops),
        wrong=float(wrong_N.mean()),
        wrong_pseudo=float(wrong_N[tops[0]].mean()),
        wrong_true=float(wrong_N[tops[1]].mean()),
    )
    return agreement, {"grad": free[tops[0]], ORACLE: free[tops[1]]}
