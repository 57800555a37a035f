"""Run an experiment's rounds in actors of a Ray cluster, any number to a GPU; the driver has the store.

A round is a function of the experiment and of what was picked before, so one whose actor or machine is
lost is simply run again by another, and the store cannot tell. The data travels once to each
machine, by Ray's object store; a network of one's own, and askance itself, must be importable there.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from askance.data.record import RawItems
from askance.errors import AskanceError, InputError
from askance.experiments.rounds import LoadedExperiment, Progress, find_network
from askance.experiments.workers import Task, Workers
from askance.integrations.ray_cluster import joined, places, raised, ray_module

# Losses without a result between, for each actor, after which the cluster is held to be broken.
_FRUITLESS = 3


@dataclass(frozen=True)
class RayCluster:
    """Actors on a Ray cluster.

    Args:
        address: the cluster's; see `ray_cluster.joined`.
        gpus: the share of a GPU each has, 0.25 for four on each; 0 trains on CPUs.
        cpus: cores each reserves. A network on a CPU trains with one thread, whatever this says.
        most: at most so many; as many as there is room for when None.
    """

    address: str | None = None
    gpus: float = 0.0
    cpus: float = 1.0
    most: int | None = None

    def __post_init__(self) -> None:
        ray_module()
        if self.gpus < 0 or (self.gpus > 1 and self.gpus != int(self.gpus)):
            raise InputError(f"gpus must be a share of one, 0 or a whole number, got {self.gpus}")
        if self.cpus <= 0:
            raise InputError(f"cpus must be above 0, got {self.cpus}")

    @property
    def device(self) -> torch.device:
        """Where each actor trains."""
        return torch.device("cuda" if self.gpus else "cpu")

    @property
    def n_workers(self) -> int:
        """How many actors there is room for now."""
        with joined(self.address) as ray:
            room = places(ray, self.cpus, self.gpus)
        return min(room, self.most or room)

    @contextmanager
    def workers(self, experiment: LoadedExperiment, progress: Progress) -> Iterator[Workers]:
        """Actors for the time of the context."""
        with joined(self.address) as ray:
            actors = _Actors(ray, experiment, progress, self)
            try:
                yield actors.do
            finally:
                actors.dismiss()


class _Actors:
    """A cluster's workers. Results come as they are done, each exactly once.

    They are actors, not tasks of Ray. To cancel a task that is just ending aborts the whole process
    (Ray 2.60: "tried to complete task that was not pending"); an actor can be killed at any time.
    """

    def __init__(
        self, ray: Any, experiment: LoadedExperiment, progress: Progress, cluster: RayCluster
    ) -> None:
        self.ray, self.progress, self.cluster = ray, progress, cluster
        # Rounds need no raw items, which may be files of this machine.
        none = RawItems(
            np.zeros(experiment.dataset.pool_size), np.arange(experiment.dataset.pool_size)
        )
        self.experiment = ray.put(
            replace(experiment, dataset=replace(experiment.dataset, raw=none))
        )
        self.player = ray.remote(num_cpus=cluster.cpus, num_gpus=cluster.gpus)(_Actor)
        self.actors: list[Any] = []
        self.starting: dict[Any, Any] = {}  # reference to actor
        self.idle: list[Any] = []

    def dismiss(self) -> None:
        """Stop what is still being done; nobody waits for it."""
        while self.actors:
            self.ray.kill(self.actors.pop())

    def do(self, tasks: Sequence[Task]) -> Iterator[Any]:
        """The results of tasks; one whose actor is lost is done by another."""
        waiting = list(tasks)[::-1]
        busy: dict[Any, tuple[Any, Task]] = {}
        losses = 0
        while waiting or busy:
            most = self._ask_for(len(waiting) + len(busy))
            while waiting and self.idle:
                actor, task = self.idle.pop(), waiting.pop()
                busy[actor.do.remote(task)] = actor, task
            # Not for ever, so that Ctrl-C is heard and new room is seen.
            done, _ = self.ray.wait([*busy, *self.starting], num_returns=1, timeout=1.0)
            for ref in done:
                if ref in busy:
                    actor, task = busy.pop(ref)
                    finished = [task]
                else:
                    actor, finished = self.starting.pop(ref), []
                try:
                    epochs, points, result = pickle.loads(self.ray.get(ref))
                except self.ray.exceptions.RayTaskError as error:
                    raise raised(error) from None
                except self.ray.exceptions.RayError as error:
                    self.actors.remove(actor)
                    self.ray.kill(actor)
                    waiting += finished
                    losses += 1
                    if losses >= _FRUITLESS * most:
                        raise AskanceError(
                            f"the Ray cluster lost {losses} workers and no round was played between; "
                            f"look at its logs, or give its workers more memory: {error}"
                        ) from error
                    continue
                self.idle.append(actor)
                if finished:
                    losses = 0
                    self.progress(epochs, points)
                    yield result

    def _ask_for(self, tasks: int) -> int:
        """Have as many actors as are of use for so many tasks; returns how many those are.

        One more than there is room for: a cluster that grows when it is asked to then does.
        """
        most = min(tasks, self.cluster.most or self.cluster.n_workers + 1)
        for _ in range(len(self.actors), most):
            # The reference goes inside a list, or Ray would fetch its object before there is an actor.
            actor = self.player.remote([self.experiment])
            self.actors.append(actor)
            self.starting[actor.open.remote()] = actor
        return most


class _Actor:
    """An actor that does tasks. Its results are pickled here: Ray would give out arrays that lie in its
    store and cannot be written to."""

    def __init__(self, reference: list[Any]) -> None:
        self.reference = reference

    def open(self) -> bytes:
        """Get ready. Not when it is made: what goes wrong here comes back as itself."""
        self.experiment: LoadedExperiment = ray_module().get(self.reference[0])
        find_network(self.experiment.spec)
        if self.experiment.device.type == "cpu":
            # The number of threads decides the last digits of sums: always one, as everywhere.
            torch.set_num_threads(1)
        return pickle.dumps((0, 0, None))

    def do(self, task: Task) -> bytes:
        """(epochs, points that went through training, the result), pickled."""
        epochs, points = 0, 0

        def progress(epoch: int, more: int) -> None:
            nonlocal epochs, points
            epochs, points = epoch, points + more

        result = task(self.experiment, progress=progress)
        return pickle.dumps((epochs, points, result))
