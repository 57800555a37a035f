"""Train networks side by side, with one step for all of them.

A mini-batch of 8 runs a few kernels that are too small to fill a GPU; R networks in one call take
hardly longer than one. On CUDA a step is captured once and replayed. It finds its mini-batch by a
counter on the device, so that nothing waits for the host. Large networks are split into several stacks,
which are replayed on streams of their own.

Momentum SGD with a learning rate for each network is momentum SGD with rate 1 on Σ_r γ_r f_r, since
networks share no weights: one fused update serves all.

Where inputs are sparse, the first layer makes its own steps (`sparse`), from row numbers.

Shapes: R jobs; L labelled points; B points in a mini-batch; E epochs; S steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from askance.capture import Repeated
from askance.training.recipe import Build, OnEpoch, Recipe, TrainingJob
from askance.training.sparse import lazy_layer
from askance.training.stack import Stack

T = TypeVar("T")


def fit_stacks(
    build: Build,
    inputs: Tensor,
    jobs: Sequence[TrainingJob],
    recipe: Recipe,
    *,
    size: int,
    streams: int = 1,
    on_epoch: OnEpoch | None = None,
) -> tuple[list[Stack], list[list[int]]]:
    """Trained stacks of at most `size` networks, and which jobs each holds.

    Jobs in a stack have equally many points. `streams` stacks are trained at a time.
    """
    places = [part for group in _by_size(jobs) for part in _parts(group, size)]
    stacks: list[Stack] = []
    for some in _parts(places, streams):
        fits = [_Fit(build, inputs, [jobs[p] for p in part], recipe) for part in some]
        _train(fits, recipe, on_epoch)
        stacks += [fit.stack.eval() for fit in fits]
    return stacks, places


def _by_size(jobs: Sequence[TrainingJob]) -> list[list[int]]:
    """The jobs' places, those with equally many points together."""
    groups: dict[int, list[int]] = defaultdict(list)
    for place, job in enumerate(jobs):
        groups[len(job)].append(place)
    return list(groups.values())


def _parts(items: list[T], size: int) -> list[list[T]]:
    """Runs of at most `size` items, as even as can be: 25 by 20 is 13 and 12."""
    count = -(-len(items) // size)
    return [items[i * len(items) // count : (i + 1) * len(items) // count] for i in range(count)]


def _train(fits: Sequence[_Fit], recipe: Recipe, on_epoch: OnEpoch | None) -> None:
    steps = [fit.epochs() for fit in fits]
    for epoch in range(1, recipe.epochs + 1):
        # Step by step in turn, so that streams run beside each other and not one after the other.
        going = list(steps)
        while going:
            going = [stack for stack in going if next(stack)]
        if on_epoch is not None:
            on_epoch(epoch, sum(fit.stack.count for fit in fits))
    for fit in fits:
        fit.close()


class _Fit:
    """One stack in training: its mini-batches on the device, and the steps over them."""

    def __init__(
        self, build: Build, inputs: Tensor, jobs: Sequence[TrainingJob], recipe: Recipe
    ) -> None:
        device = inputs.device
        self.inputs = inputs
        # Runs of one seed start from the same weights: drawn once, and laid side by side on the device.
        built = {draws: build(draws).to(device, inputs.dtype) for draws in {j.draws for j in jobs}}
        self.stack = Stack([built[job.draws] for job in jobs]).train()
        rates = [job.learning_rate for job in jobs]
        self.rates_R = torch.tensor(rates, dtype=inputs.dtype, device=device)
        rows_RL = torch.stack([torch.from_numpy(job.rows) for job in jobs])
        labels_RL = torch.stack([job.labels for job in jobs])
        order_REL = torch.stack([torch.from_numpy(job.order(recipe.epochs)) for job in jobs])
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        B = recipe.batch_size
        whole, rest = divmod(rows_RL.shape[1], B)
        steps = recipe.epochs * (whole + int(rest > 0))
        self.lazy = lazy_layer(self.stack, inputs, recipe, steps)
        lazy_weight = None if self.lazy is None else self.lazy.weight_RDO
        parameters = [p for p in self.stack.parameters() if p is not lazy_weight]
        self.optimizer = _optimizer(parameters, recipe.momentum)
        # (steps an epoch, the step): whole mini-batches, then the smaller one, where there are such.
        self.steps: list[tuple[int, _Step]] = []
        for count, start, width in ((whole, 0, B), (int(rest > 0), whole * B, rest)):
            if count:
                part_REL = order_REL[:, :, start : start + count * width]
                table_RSB = part_REL.reshape(len(jobs), -1, width)
                rows, labels = (
                    torch.stack([of[table] for of, table in zip(all_RL, table_RSB, strict=True)], 1)
                    for all_RL in (rows_RL, labels_RL)
                )
                self.steps.append((count, _Step(self, rows.to(device), labels.to(device))))

    def epochs(self) -> Iterator[bool]:
        """Goes a step at a time; False at the end of each epoch."""
        while True:
            for count, step in self.steps:
                for _ in range(count):
                    step.run()
                    yield True
            yield False

    def stack_input(self, rows_RB: Tensor) -> Tensor:
        """What the stack is given of these rows of the inputs."""
        return self.inputs[rows_RB] if self.lazy is None else rows_RB.unsqueeze(2)

    def state(self) -> list[Tensor]:
        """All that a step of whatever kind changes in place."""
        buffers = [state["momentum_buffer"] for state in self.optimizer.state.values()]
        lazy = [] if self.lazy is None else self.lazy.state
        return [*self.stack.parameters(), *self.stack.buffers(), *buffers, *lazy]

    def logit_grads(self, logits_RBC: Tensor, labels_RB: Tensor) -> Tensor:
        """∂/∂z of Σ_r γ_r f_r, f_r the mean cross-entropy of network r: γ_r (p − e_y) / B."""
        p_RBC = torch.softmax(logits_RBC.detach(), dim=2, dtype=self.rates_R.dtype)
        own_RBC = labels_RB.unsqueeze(2) == torch.arange(p_RBC.shape[2], device=p_RBC.device)
        return p_RBC.sub_(own_RBC.to(p_RBC.dtype)).mul_(
            self.rates_R[:, None, None] / labels_RB.shape[1]
        )

    def close(self) -> None:
        for _, step in self.steps:
            step.run.wait()
        self.steps.clear()
        if self.lazy is not None:
            self.lazy.settle()
        self.stack.zero_grad(set_to_none=True)


class _Step:
    """One kind of mini-batch, whole or the smaller last one; a counter on the device selects it."""

    def __init__(self, fit: _Fit, rows_SRB: Tensor, labels_SRB: Tensor) -> None:
        self.fit = fit
        self.table = torch.stack([rows_SRB, labels_SRB], dim=1)
        self.at = torch.zeros(1, dtype=torch.int64, device=rows_SRB.device)
        state = [*fit.state(), self.at]
        self.run = Repeated(self._step, state, fresh=self._clear_grads, stream=fit.stream)

    def _step(self) -> None:
        fit = self.fit
        rows_RB, labels_RB = self.table.index_select(0, self.at)[0]
        # Trying the step out may run past the table's end.
        self.at.add_(1).remainder_(len(self.table))
        self._clear_grads()
        logits_RBC = fit.stack(fit.stack_input(rows_RB))
        logits_RBC.backward(fit.logit_grads(logits_RBC, labels_RB).to(logits_RBC.dtype))
        fit.optimizer.step()

    def _clear_grads(self) -> None:
        self.fit.optimizer.zero_grad(set_to_none=True)


def _optimizer(parameters: list[nn.Parameter], momentum: float) -> torch.optim.SGD:
    optimizer = torch.optim.SGD(parameters, lr=1.0, momentum=momentum, fused=True)
    for parameter in parameters:
        # As if the first step had been made from rest: v = μ·0 + g.
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer
