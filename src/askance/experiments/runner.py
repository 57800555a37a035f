"""Run an experiment into its store: the sweep, then every run, round by round.

Everything a round does is a function of the spec, the data and the rounds stored before it. So a
process that is killed at any moment loses the rounds in flight and nothing else, and the next one goes
on as if it had not been.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import torch

from askance.data import Dataset
from askance.embedding.device import usable_or_best
from askance.errors import InputError
from askance.experiments.machine import Machine
from askance.experiments.records import RoundRecord
from askance.experiments.rounds import LoadedExperiment, Progress, RunState, Trial, swept_rate
from askance.experiments.spec import Spec
from askance.experiments.store import ResultStore
from askance.experiments.workers import Cluster, Workers, count_for, workers
from askance.training import SWEEP_SEEDS, Engine

T = TypeVar("T")


class RunObserver:
    """Called while an experiment runs. Subclasses override what they need: to show it, to count it.

    Every method is called in the thread that called `run`, however many workers train. An error that
    one raises stops the run; what is stored is safe.
    """

    def encoding(self, spec: Spec, done: int, total: int) -> None:
        """The spec's encoder has done so many of the data's items; before anything else happens."""

    def began(self, spec: Spec, dataset: Dataset, how: str, total: int, done: int) -> None:
        """An experiment starts: `total` points to go through training, `done` of them in the store."""

    def stage(self, stage: str) -> None:
        """The sweep begins, or "round t"."""

    def epoch(self, epoch: int, points: int) -> None:
        """An epoch ended; `points` went through training."""

    def swept(self, rate: float, seed: int, accuracy: float) -> None:
        """One learning rate of the sweep was tried."""

    def resumed(self, record: RoundRecord) -> None:
        """A round was in the store when the experiment started."""

    def stored(self, record: RoundRecord) -> None:
        """A round has been stored."""


def run(
    spec: Spec,
    folder: str | os.PathLike[str],
    *,
    device: torch.device | str | None = None,
    training: Engine = "auto",
    workers: int | None = None,
    cluster: Cluster | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    extend: bool = False,
    lean: bool = False,
    observers: Sequence[RunObserver] = (),
) -> Path:
    """Run an experiment into the store of `folder`, or go on where the store ends.

    Args:
        spec: the experiment.
        folder: where its store is, or will be.
        device: "cpu", "cuda", …; CUDA where there is one when None.
        training: the engine, see `askance.training.fit`.
        workers: processes that train at a time on a CPU; one a core when None. The results are the
            same with any number.
        cluster: runs the rounds instead of this machine, on its own device. This
            process alone writes to the store.
        data_dir: a folder to look for datasets in first.
        extend: let the spec add strategies and seeds to a store that has fewer. The runs that the spec
            asks for are run; others of the store stay as they are.
        lean: store picks without scores, seconds and peak memory: a third of the size.
        observers: each is called when something happens.

    Returns:
        The path of the store.
    """
    where = usable_or_best(device) if cluster is None else cluster.device
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, got {workers}")

    def on_encode(done: int, total: int) -> None:
        for observer in observers:
            observer.encoding(spec, done, total)

    experiment = LoadedExperiment.of(spec, where, training, data_dir, on_encode)
    with ResultStore.open(folder, spec, extend=extend, origin=experiment.origin()) as store:
        _Session(experiment, store, data_dir, workers, cluster, lean, observers).run()
        return store.path


def _machine(experiment: LoadedExperiment, progress: Progress) -> Machine:
    return experiment.machine()


@dataclass(frozen=True)
class _Session:
    """One process at work on one store; the arguments are those of `run`."""

    experiment: LoadedExperiment
    store: ResultStore
    data_dir: str | os.PathLike[str] | None
    workers: int | None
    cluster: Cluster | None
    lean: bool
    observers: Sequence[RunObserver]

    def run(self) -> None:
        experiment, store = self.experiment, self.store
        states = self._resumed()
        stored, rounds = store.progress(), experiment.spec.schedule.rounds
        left = [state for state in states if stored[state.key] <= rounds]
        total, done = self._work(states, stored)
        count = (
            self.cluster.n_workers
            if self.cluster
            else count_for(experiment, self.workers, len(left))
        )
        how = f"{count} at a time" if experiment.engine == "one" else experiment.engine
        for observer in self.observers:
            observer.began(experiment.spec, experiment.dataset, how, total, done)
        for record in store.rounds():
            for observer in self.observers:
                observer.resumed(record)
        if not left:
            return
        with self._started(count) as do_tasks:
            (machine,) = do_tasks([_machine]) if self.cluster else [experiment.machine()]
            store.note_machine(machine)
            self._rounds(do_tasks, left, self._learning_rate(do_tasks))

    def _started(self, count: int) -> AbstractContextManager[Workers]:
        if self.cluster is None:
            return workers(self.experiment, count, self.data_dir, self._epoch)
        return self.cluster.workers(self.experiment, self._epoch)

    def _epoch(self, epoch: int, points: int) -> None:
        for observer in self.observers:
            observer.epoch(epoch, points)

    def _stage(self, stage: str) -> None:
        for observer in self.observers:
            observer.stage(stage)

    def _resumed(self) -> list[RunState]:
        """Every run of the spec, at the round it had reached."""
        # A cluster may train where this process cannot: here, a run is only asked where it starts.
        experiment = (
            replace(self.experiment, device=torch.device("cpu"))
            if self.cluster
            else self.experiment
        )
        last = experiment.spec.schedule.rounds
        states = []
        for label, rule, seed in experiment.spec.runs():
            history = self.store.history(label, seed)
            picks = tuple(record.picks for record in history if record.round < last)
            first = experiment.run(RunState(rule, seed)).asked
            self.store.start_run(label, seed, first)
            states.append(RunState(rule, seed, picks, first))
        return states

    def _work(
        self, states: Sequence[RunState], stored: Mapping[tuple[str, int], int]
    ) -> tuple[int, int]:
        """How many points go through training in all, and how many have already."""
        schedule, epochs = self.experiment.spec.schedule, self.experiment.recipe.epochs
        sizes = [schedule.batch * (number + 1) for number in range(schedule.rounds + 1)]
        after = [epochs * sum(sizes[:rounds]) for rounds in range(len(sizes) + 1)]
        done = sum(after[stored[state.key]] for state in states)
        total = after[-1] * len(states)
        rates = self.experiment.spec.recipe.learning_rates
        if len(rates) > 1:
            each = epochs * (sizes[0] + sizes[-1])
            total += each * len(rates) * len(SWEEP_SEEDS)
            done += each * len(self.store.sweep_results())
        return total, done

    def _learning_rate(self, do_tasks: Workers) -> float:
        """The stored rate, or the winner of the sweep, which is then stored."""
        stored = self.store.learning_rate()
        if stored is not None:
            return stored
        rates = self.experiment.spec.recipe.learning_rates
        best = rates[0] if len(rates) == 1 else self._sweep(do_tasks, rates)
        self.store.set_learning_rate(best)
        return best

    def _sweep(self, do_tasks: Workers, rates: Sequence[float]) -> float:
        self._stage("sweep")
        tried = {(trial.learning_rate, trial.seed) for trial in self.store.sweep_results()}
        pairs = [(rate, seed) for rate in rates for seed in SWEEP_SEEDS]
        left = [Trial(*pair) for pair in pairs if pair not in tried]
        groups = (
            [[trial] for trial in left] if self.experiment.engine == "one" else self._stacks(left)
        )
        for results in do_tasks(
            [partial(LoadedExperiment.try_rates, trials=trials) for trials in groups]
        ):
            for result in results:
                self.store.add_sweep(result)
                for observer in self.observers:
                    observer.swept(result.learning_rate, result.seed, result.accuracy)
        return swept_rate(self.store.sweep_results(), rates)

    def _rounds(self, do_tasks: Workers, states: Sequence[RunState], rate: float) -> None:
        """Algorithm 1 for these runs: each round of each is committed as soon as it is done."""
        runs = {state.key: state for state in states}
        for number in range(self.experiment.spec.schedule.rounds + 1):
            turn = [state for state in runs.values() if state.round == number]
            if not turn:
                continue
            self._stage(f"round {number}")
            groups = self._groups(turn)
            for records in do_tasks(
                [partial(LoadedExperiment.run_round, states=some, rate=rate) for some in groups]
            ):
                for record in records:
                    if self.lean:
                        record = replace(record, scores=None, seconds={}, peak_mb={})
                    self.store.add_round(record)
                    for observer in self.observers:
                        observer.stored(record)
                    state = runs[record.strategy, record.seed]
                    runs[state.key] = replace(state, picks=(*state.picks, record.picks))

    def _groups(self, turn: Sequence[RunState]) -> list[list[RunState]]:
        """The runs of each task: a whole stack, else those of one network.

        In round 0 all rules of a seed have one network.
        """
        if self.experiment.engine != "one":
            return self._stacks(sorted(turn, key=lambda one: one.seed) if self.cluster else turn)
        alike: dict[object, list[RunState]] = {}
        for state in turn:
            alike.setdefault(state.seed if state.round == 0 else id(state), []).append(state)
        return list(alike.values())

    def _stacks(self, items: Sequence[T]) -> list[list[T]]:
        """One stack; of a cluster's as many as it trains at a time, of neighbours."""
        count = min(self.cluster.n_workers if self.cluster else 1, len(items))
        cuts = [len(items) * place // max(count, 1) for place in range(count + 1)]
        return [list(items[first:last]) for first, last in pairwise(cuts)]
