"""One round of some runs, as a function of the experiment and of the picks so far.

Nothing here touches a store, so a round may be run in this process, in another, or on another
machine, and gives the same record.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from askance import data, models, oracles
from askance.data import Dataset, Imbalance, Split
from askance.embedding import Embedding, embed
from askance.embedding.factory import import_from
from askance.encoders.linear import Standardiser
from askance.errors import NonFiniteError, SpecError
from askance.experiments.machine import Machine
from askance.experiments.meter import Meter
from askance.experiments.records import Origin, RoundRecord, SweepResult, is_untrained
from askance.experiments.spec import Spec
from askance.experiments.strategy_spec import StrategySpec
from askance.loop import Run, ask_together, first_batch
from askance.oracles import Oracle
from askance.seeding import Draws
from askance.selection import Selection
from askance.stopping.check import SAMPLE
from askance.training import (
    Engine,
    Fitted,
    Recipe,
    TrainingJob,
    best_rate,
    chosen,
    fit,
    fit_regressions,
    numerics,
    standardiser,
    sweep_rows,
)

Progress = Callable[[int, int], None]
"""Called after each epoch with its number and how many points went through training."""


@dataclass(frozen=True, eq=False)
class RunState:
    """A run and how far it has come: the picks of each round so far.

    Args:
        first: the rows that it began with, where they are known; else they are picked again.
    """

    rule: StrategySpec
    seed: int
    picks: tuple[NDArray[np.int64], ...] = ()
    first: NDArray[np.int64] | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What a store calls the run: (strategy label, seed)."""
        return self.rule.label, self.seed

    @property
    def round(self) -> int:
        """The number of the next round to play."""
        return len(self.picks)


@dataclass(frozen=True)
class Trial:
    """One learning rate of the sweep, with one seed."""

    learning_rate: float
    seed: int


def find_network(spec: Spec) -> None:
    """Let a user's network and encoder be imported from the spec's folder, or else the working
    directory."""
    if ":" in spec.model or ":" in (spec.encoder or ""):
        import_from(spec.folder or Path.cwd())


@dataclass(frozen=True, eq=False)
class LoadedExperiment:
    """An experiment with its data on a device: what every run shares."""

    spec: Spec
    dataset: Dataset
    device: torch.device
    engine: Engine

    @classmethod
    def of(
        cls,
        spec: Spec,
        device: torch.device,
        engine: Engine,
        data_dir: str | os.PathLike[str] | None = None,
        on_encode: Callable[[int, int], None] | None = None,
    ) -> LoadedExperiment:
        """Load the data, and check that the experiment is possible before hours are spent on it."""
        find_network(spec)
        dataset = data.load(
            spec.data_path or spec.dataset,
            data_dir,
            label=spec.label,
            text=spec.text,
            features=spec.features,
            encoder=spec.encoder,
            imbalance=None if spec.imbalance is None else Imbalance(**dict(spec.imbalance)),
            on_encode=on_encode,
        )
        experiment = cls(spec, dataset, device, engine)
        schedule = spec.schedule
        wanted = schedule.batch * (schedule.rounds + 1)
        size, part = experiment.seen, f", of which a seed sees {spec.pool:.0%}" if spec.pool else ""
        if wanted > size:
            raise SpecError(
                f"{spec.name}: {schedule.rounds} rounds of {schedule.batch} after a start of "
                f"{schedule.batch} label {wanted:,} points, the pool of {dataset.name} has "
                f"{dataset.pool_size:,}{part}; lower [schedule] rounds or batch"
            )
        model = experiment.build(Draws())
        if schedule.rounds:
            embed(model, dataset.train.inputs[:2])  # a network without a head cannot be asked
        return replace(experiment, engine=chosen(engine, device, experiment.build))

    def machine(self) -> Machine:
        """What this process runs on, and how it trains."""
        # A CPU has no TF32 unit: it computes float32.
        cpu = self.device.type == "cpu"
        real = "float32" if cpu and self.spec.precision == "tf32" else self.spec.precision
        return Machine(device=str(self.device), engine=self.engine, precision=real)

    @property
    def recipe(self) -> Recipe:
        """How each network is trained."""
        recipe = self.spec.recipe
        return Recipe(recipe.epochs, recipe.batch_size, recipe.momentum)

    @property
    def seen(self) -> int:
        """How many points of the pool a seed may ask for."""
        return round((self.spec.pool or 1.0) * self.dataset.pool_size)

    def unseen(self, seed: int) -> NDArray[np.int64]:
        """The points of the pool that no rule of this seed may ask for, ascending."""
        size = self.dataset.pool_size
        draws = Draws(seed).generator("unseen")
        return np.sort(draws.choice(size, size - self.seen, replace=False)).astype(np.int64)

    @cached_property
    def inputs(self) -> Tensor:
        """(N, …) the pool, on the device."""
        return self.dataset.train.inputs.to(self.device)

    @cached_property
    def _standardiser(self) -> Standardiser:
        return standardiser(self.inputs)

    @cached_property
    def oracle(self) -> Oracle:
        """Who labels the pool."""
        options = dict(self.spec.oracle)
        train = self.dataset.train
        return oracles.make(options.pop("kind"), train.labels, len(self.dataset.classes), **options)

    @cached_property
    def _held_out(self) -> dict[str, tuple[Tensor, Tensor]]:
        def moved(split: Split) -> tuple[Tensor, Tensor]:
            return split.inputs.to(self.device), split.labels.to(self.device)

        return {"val": moved(self.dataset.val), "test": moved(self.dataset.test)}

    def build(self, draws: Draws) -> nn.Module:
        """A new network; `draws` decides its weights."""
        shape, classes = tuple(self.dataset.train.inputs.shape[1:]), len(self.dataset.classes)
        options = dict(self.spec.model_options)
        return models.build(self.spec.model, shape, classes, draws, **options)

    def origin(self) -> Origin:
        """The data and the network: a name in a spec may mean something else some day."""
        model, data = self.build(Draws()), self.dataset
        parts = [
            f"{name or 'the network'} is a {type(module).__name__}"
            for name, module in model.named_modules()
        ]
        tensors = [*model.named_parameters(), *model.named_buffers()]
        parts += [f"{name} has shape {tuple(tensor.shape)}" for name, tensor in tensors]
        file = self.spec.file
        return Origin(
            data.fingerprint,
            data.source,
            data.subset,
            tuple(parts),
            sizes={
                "pool": len(data.train),
                "validation": len(data.val),
                "test": len(data.test),
                "classes": len(data.classes),
            },
            file=None if file is None else str(file),
        )

    def fit(
        self, jobs: Sequence[TrainingJob], progress: Progress | None = None, points: int = 0
    ) -> Fitted:
        """Train one network for each job; `points` is how many all jobs have in an epoch."""
        share = points / len({job.key for job in jobs})  # equal jobs are trained once

        def on_epoch(epoch: int, networks: int) -> None:
            if progress is not None:
                progress(epoch, round(networks * share))

        if self.spec.model == "linear":
            strength = dict(self.spec.model_options).get("strength")
            classes = len(self.dataset.classes)
            return fit_regressions(
                self.inputs, jobs, classes, strength, on_epoch, self._standardiser
            )
        return fit(
            self.build,
            self.inputs,
            jobs,
            self.recipe,
            precision=self.spec.precision,
            training=self.engine,
            on_epoch=on_epoch,
        )

    def run(self, state: RunState) -> Run:
        """The run as it stands after its picks."""
        schedule = self.spec.schedule
        run = Run(
            self.inputs,
            self.oracle,
            state.rule.build(),
            batch=schedule.batch,
            rounds=schedule.rounds,
            seed=state.seed,
            first=self._first_batch(state.seed) if state.first is None else state.first,
            exclude=self.unseen(state.seed),
            label=state.rule.label,
        )
        for picks in state.picks:
            run.tell(picks)
        return run

    @cached_property
    def _first_batches(self) -> dict[int, NDArray[np.int64]]:
        return {}

    def _first_batch(self, seed: int) -> NDArray[np.int64]:
        """The rows that all rules of a seed begin with. Picked once, on the CPU."""
        if seed not in self._first_batches:
            inputs, schedule = self.dataset.train.inputs, self.spec.schedule
            self._first_batches[seed] = first_batch(
                inputs, len(inputs), schedule.batch, schedule.first, seed, self.unseen(seed)
            )
        return self._first_batches[seed]

    def job(self, run: Run, rate: float) -> TrainingJob:
        """The network of a run's next round."""
        return TrainingJob(run.rows, run.labels, rate, run.draws)

    def run_round(
        self, states: Sequence[RunState], rate: float, progress: Progress | None = None
    ) -> list[RoundRecord]:
        """Run the next round of each run: train, evaluate, ask."""
        runs = [self.run(state) for state in states]
        jobs = [self.job(run, rate) for run in runs]
        numbers = [run.round for run in runs]
        meter = Meter(self.device)
        with meter.stage("train"):
            fitted = self.fit(jobs, progress, sum(len(run.asked) for run in runs))
        with meter.stage("evaluate"):
            scores = fitted.evaluate(*self._held_out["test"])
            training_scores = fitted.evaluate_training(self.inputs)
            predictions = self._predictions(fitted, len(runs))
        try:
            selections = self._ask(runs, fitted, meter)
        except NonFiniteError as error:
            diverged = [
                f"{run.label}, seed {run.seed}, round {number}"
                for run, number, score in zip(runs, numbers, scores, strict=True)
                if not np.isfinite(score.loss)
            ]
            raise NonFiniteError(
                f"{'; '.join(diverged[:3]) or self.spec.name}: with learning rate {rate:g}, {error}"
            ) from error
        # What a rule takes it says itself; the rest is shared by all runs.
        shared = {s: t / len(runs) for s, t in meter.seconds.items() if s != "select"}
        records = []
        for run, number, job, score, trained, selection, predicted in zip(
            runs, numbers, jobs, scores, training_scores, selections, predictions, strict=True
        ):
            timings = {} if selection is None else selection.timings
            records.append(
                RoundRecord(
                    strategy=run.label,
                    seed=run.seed,
                    round=number,
                    labels=len(job),
                    accuracy=score.accuracy,
                    loss=score.loss,
                    learning_rate=rate,
                    picks=np.empty(0, np.int64) if selection is None else selection.indices,
                    scores=None if selection is None else selection.scores,
                    seconds=shared | {s: shared.get(s, 0.0) + t for s, t in timings.items()},
                    peak_mb=meter.peak_mb,
                    train_loss=trained.loss,
                    train_accuracy=trained.accuracy,
                    majority=_majority(job),
                    balanced_accuracy=score.balanced_accuracy,
                    macro_f1=score.macro_f1,
                    predictions=predicted,
                )
            )
        return records

    def _predictions(self, fitted: Fitted, runs: int) -> list[NDArray[np.int64] | None]:
        """Each network's classes of a sample of the test split, if a stopping rule asks for them."""
        if not any("predictions" in rule.build().needs for rule in self.spec.stop):
            return [None] * runs
        inputs, _ = self._held_out["test"]
        draws = Draws().generator("stop")
        rows = np.sort(draws.choice(len(inputs), min(SAMPLE, len(inputs)), replace=False))
        sample = inputs[torch.from_numpy(rows).to(inputs.device)]
        predicted = []
        for embedding in fitted.embed(sample):
            assert embedding.logits is not None
            predicted.append(embedding.logits.argmax(dim=1).cpu().numpy())
        return list(predicted)

    def _ask(self, runs: Sequence[Run], fitted: Fitted, meter: Meter) -> Sequence[Selection | None]:
        """The next batch of each run; nothing after the last round."""
        selections: list[Selection | None] = [None] * len(runs)
        if runs[0].finished:
            return selections
        # A rule that differentiates the network itself is given the network.
        whole = [place for place, run in enumerate(runs) if "inputs" in run.strategy.needs]
        rest = [place for place in range(len(runs)) if place not in whole]
        embeddings: list[Embedding] = []
        if rest:
            with meter.stage("forward"):
                embeddings = fitted.embed(self.inputs)
        with meter.stage("select"), numerics(self.device, self.spec.precision):
            together = ask_together([runs[p] for p in rest], [embeddings[p] for p in rest])
            for place, selection in zip(rest, together, strict=True):
                selections[place] = selection
            for place in whole:
                selections[place] = runs[place].ask(fitted.model(place), batch_size=1024)
        return selections

    def try_rates(
        self, trials: Sequence[Trial], progress: Progress | None = None
    ) -> list[SweepResult]:
        """How learning rates do on random labelled sets.

        Their validation accuracy is that of a set of the final budget's size; they trained if they did
        on the first `batch` points of that set too.
        """
        schedule, labels = self.spec.schedule, self.dataset.train.labels
        budget = schedule.batch * (schedule.rounds + 1)

        def jobs(size: int) -> list[TrainingJob]:
            made = []
            for trial in trials:
                rows = sweep_rows(self.dataset.pool_size, budget, trial.seed)[:size]
                answers = labels[torch.from_numpy(rows)]
                made.append(TrainingJob(rows, answers, trial.learning_rate, Draws(trial.seed)))
            return made

        meter = Meter(self.device)
        with meter.stage("train"):
            first = jobs(schedule.batch)
            learned = self.fit(first, progress, schedule.batch * len(trials))
            fitted = self.fit(jobs(budget), progress, budget * len(trials))
        seconds, peak = meter.seconds["train"] / len(trials), meter.peak_mb.get("train")
        return [
            SweepResult(
                trial.learning_rate,
                trial.seed,
                score.accuracy,
                seconds,
                peak,
                trained=not is_untrained(trained.accuracy, _majority(job), len(job)),
            )
            for trial, score, trained, job in zip(
                trials,
                fitted.evaluate(*self._held_out["val"]),
                learned.evaluate_training(self.inputs),
                first,
                strict=True,
            )
        ]


def swept_rate(results: Iterable[SweepResult], rates: Sequence[float]) -> float:
    """The winner of a sweep. A rate with which any seed's first set was not learned is no candidate,
    unless there is no other."""
    results = list(results)
    untrained = {one.learning_rate for one in results if one.trained is False}
    accuracies = {(one.learning_rate, one.seed): one.accuracy for one in results}
    return best_rate(accuracies, rates, untrained)


def _majority(job: TrainingJob) -> float:
    """The share of the largest class among a job's labels."""
    return int(job.labels.bincount().max()) / len(job)
