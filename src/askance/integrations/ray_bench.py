"""The benchmark's rounds in actors of a Ray cluster, any number to a GPU; the driver has the store.

A round is a function of the experiment and of what was picked before, so one whose actor or machine is
lost is simply played again by another, and the store cannot tell. The data travels once to each
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
from askance.experiments.machine import Machine
from askance.experiments.records import RoundRecord, SweepResult
from askance.experiments.rounds import Bench, State, Trial, find_network
from askance.experiments.workers import Tell, points_each
from askance.integrations.ray_cluster import joined, places, raised, ray_module

Call = tuple[Any, ...]

# Losses without a result between, for each actor, after which the cluster is held to be broken.
_FRUITLESS = 3


@dataclass(frozen=True)
class RayCrew:
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
    """A cluster's workers. Results come as they are done, each exactly once.

    They are actors, not tasks. To cancel a task that is just ending aborts the whole process (Ray 2.60:
    "tried to complete task that was not pending"); an actor can be killed at any time.
    """

    def __init__(self, ray: Any, bench: Bench, tell: Tell, crew: RayCrew) -> None:
        self.ray, self.bench, self.tell, self.crew = ray, bench, tell, crew
        # Rounds need no raw items, which may be files of this machine.
        none = RawItems(np.zeros(bench.dataset.pool_size), np.arange(bench.dataset.pool_size))
        self.shared = ray.put(replace(bench, dataset=replace(bench.dataset, raw=none)))
        self.player = ray.remote(num_cpus=crew.cpus, num_gpus=crew.gpus)(_Player)
        self.actors: list[Any] = []
        self.coming: dict[Any, Any] = {}
        self.idle: list[Any] = []

    def play(self, groups: Sequence[Sequence[State]], rate: float) -> Iterator[list[RoundRecord]]:
        return self._played("play", [(states, rate) for states in groups])

    def try_rates(self, groups: Sequence[Sequence[Trial]]) -> Iterator[list[SweepResult]]:
        return self._played("try_rates", [(trials,) for trials in groups])

    def machine(self) -> Machine:
        ((_, machine),) = self._as_they_come("machine", [()])
        return machine

    def dismiss(self) -> None:
        """Stop what is still being played; nobody waits for it."""
        while self.actors:
            self.ray.kill(self.actors.pop())

    def _played(self, method: str, calls: Sequence[Call]) -> Iterator[Any]:
        epochs = self.bench.recipe.epochs
        for (group, *_), result in self._as_they_come(method, calls):
            self.tell(epochs, epochs * points_each(self.bench, group))
            yield result

    def _as_they_come(self, method: str, calls: Sequence[Call]) -> Iterator[tuple[Call, Any]]:
        """Each call with its result; a call whose actor is lost is another's."""
        waiting = list(calls)[::-1]
        busy: dict[Any, tuple[Any, Call]] = {}
        losses = 0
        while waiting or busy:
            most = self._ask_for(len(waiting) + len(busy))
            while waiting and self.idle:
                actor, next_call = self.idle.pop(), waiting.pop()
                busy[getattr(actor, method).remote(*next_call)] = actor, next_call
            # Not for ever, so that Ctrl-C is heard and new room is seen.
            done, _ = self.ray.wait([*busy, *self.coming], num_returns=1, timeout=1.0)
            for ref in done:
                call: Call | None = None
                if ref in busy:
                    actor, call = busy.pop(ref)
                else:
                    actor = self.coming.pop(ref)
                try:
                    result = pickle.loads(self.ray.get(ref))
                except self.ray.exceptions.RayTaskError as error:
                    raise raised(error) from None
                except self.ray.exceptions.RayError as error:
                    self._let_go(actor)
                    if call is not None:
                        waiting.append(call)
                    losses += 1
                    if losses >= _FRUITLESS * most:
                        raise AskanceError(
                            f"the Ray cluster lost {losses} workers and no round was played between; "
                            f"look at its logs, or give its workers more memory: {error}"
                        ) from error
                    continue
                self.idle.append(actor)
                if call is not None:
                    losses = 0
                    yield call, result

    def _ask_for(self, calls: int) -> int:
        """Have as many actors as are of use for so many calls; returns how many those are.

        One more than there is room for: a cluster that grows when it is asked to then does.
        """
        most = min(calls, self.crew.most or self.crew.places + 1)
        for _ in range(len(self.actors), most):
            # The reference goes inside a list, or Ray would fetch its object before there is an actor.
            actor = self.player.remote([self.shared])
            self.actors.append(actor)
            self.coming[actor.open.remote()] = actor
        return most

    def _let_go(self, actor: Any) -> None:
        self.actors.remove(actor)
        self.ray.kill(actor)


class _Player:
    """An actor that plays rounds. Its results are pickled here: Ray would give out arrays that lie in
    its store and cannot be written to."""

    def __init__(self, held: list[Any]) -> None:
        self.held = held

    def open(self) -> bytes:
        """Get ready. Not when it is made: what goes wrong here comes back as itself."""
        self.bench: Bench = ray_module().get(self.held[0])
        find_network(self.bench.spec)
        if self.bench.device.type == "cpu":
            # The number of threads decides the last digits of sums: always one, as everywhere.
            torch.set_num_threads(1)
        return pickle.dumps(None)

    def play(self, states: Sequence[State], rate: float) -> bytes:
        return pickle.dumps(self.bench.play(states, rate))

    def try_rates(self, trials: Sequence[Trial]) -> bytes:
        return pickle.dumps(self.bench.try_rates(trials))

    def machine(self) -> bytes:
        return pickle.dumps(self.bench.machine())
