"""The benchmark's rounds as Ray tasks, any number to a GPU; the driver alone writes to the store.

A round is a function of the experiment and of what was picked before, so a task whose worker or machine
is lost is simply played again, and the store cannot tell. The data travels once to each machine, by
Ray's object store; a network of one's own, and askance itself, must be importable there.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from askance.bench.machine import Machine
from askance.bench.records import RoundRecord, SweepResult
from askance.bench.rounds import Bench, State, Trial, find_network
from askance.bench.workers import Tell, points_each
from askance.connect.ray_cluster import joined, places, raised, ray_module
from askance.data.record import RawItems
from askance.errors import InputError


@dataclass(frozen=True)
class RayCrew:
    """Tasks on a Ray cluster.

    Args:
        address: the cluster's; see `ray_cluster.joined`.
        gpus: the share of a GPU each task has, 0.25 for four on each; 0 trains on CPUs.
        cpus: cores each task reserves. A network on a CPU trains with one thread, whatever this says.
        most: at most so many tasks at a time; as many as there is room for when None.
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
        return torch.device("cuda" if self.gpus else "cpu")

    @property
    def places(self) -> int:
        with joined(self.address) as ray:
            room = places(ray, self.cpus, self.gpus)
        return min(room, self.most or room)

    @contextmanager
    def hired(self, bench: Bench, tell: Tell) -> Iterator[RayWorkers]:
        with joined(self.address) as ray:
            hands = RayWorkers(ray, bench, tell, self)
            try:
                yield hands
            finally:
                hands.dismiss()


class RayWorkers:
    """A cluster's workers. Results come as they are done, each exactly once."""

    def __init__(self, ray: Any, bench: Bench, tell: Tell, crew: RayCrew) -> None:
        self.ray, self.bench, self.tell, self.crew = ray, bench, tell, crew
        # Rounds need no raw items, which may be files of this machine.
        none = RawItems(np.zeros(bench.dataset.pool_size), np.arange(bench.dataset.pool_size))
        self.shared = ray.put(replace(bench, dataset=replace(bench.dataset, raw=none)))
        self.options = {"num_cpus": crew.cpus, "num_gpus": crew.gpus, "max_retries": -1}
        self.pending: list[Any] = []

    def play(self, groups: Sequence[Sequence[State]], rate: float) -> Iterator[list[RoundRecord]]:
        return self._as_they_come(_play, groups, rate)

    def try_rates(self, groups: Sequence[Sequence[Trial]]) -> Iterator[list[SweepResult]]:
        return self._as_they_come(_try_rates, groups)

    def machine(self) -> Machine:
        remote = self.ray.remote(**self.options)(_machine)
        return self._result(remote.remote([self.shared]))

    def _as_they_come(
        self, work: Callable[..., Any], groups: Sequence[Sequence[Any]], *more: Any
    ) -> Iterator[Any]:
        remote = self.ray.remote(**self.options)(work)
        waiting = list(groups)[::-1]
        running: dict[Any, Sequence[Any]] = {}
        epochs = self.bench.recipe.epochs
        while waiting or running:
            while waiting and len(running) < (self.crew.most or len(groups)):
                group = waiting.pop()
                # The reference goes inside a list: a worker fetches its object once, not each time.
                running[remote.remote([self.shared], group, *more)] = group
            self.pending = list(running)
            # Not for ever, so that Ctrl-C is heard.
            done, _ = self.ray.wait(self.pending, num_returns=1, timeout=1.0)
            for ref in done:
                group = running.pop(ref)
                result = self._result(ref)
                self.tell(epochs, epochs * points_each(self.bench, group))
                yield result
        self.pending = []

    def _result(self, ref: Any) -> Any:
        try:
            return pickle.loads(self.ray.get(ref))
        except self.ray.exceptions.RayTaskError as error:
            raise raised(error) from None

    def dismiss(self) -> None:
        """Stop what is still being played; nobody waits for it."""
        for ref in self.pending:
            self.ray.cancel(ref, force=True)
        self.pending = []


# In a worker

_known: dict[str, Bench] = {}


def _bench(held: list[Any]) -> Bench:
    (ref,) = held
    if ref.hex() not in _known:
        _known.clear()
        _known[ref.hex()] = ray_module().get(ref)
    bench = _known[ref.hex()]
    find_network(bench.spec)
    if bench.device.type == "cpu":
        # The number of threads decides the last digits of sums: always one, as everywhere.
        torch.set_num_threads(1)
    return bench


# Results are pickled here: Ray would give out arrays that lie in its store and cannot be written to.


def _play(held: list[Any], states: Sequence[State], rate: float) -> bytes:
    return pickle.dumps(_bench(held).play(states, rate))


def _try_rates(held: list[Any], trials: Sequence[Trial]) -> bytes:
    return pickle.dumps(_bench(held).try_rates(trials))


def _machine(held: list[Any]) -> bytes:
    return pickle.dumps(_bench(held).machine())
