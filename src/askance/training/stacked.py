"""Train networks side by side: parameters carry a leading axis of jobs, and one step serves them all.

A mini-batch of 8 is a handful of kernel launches, most of them too small to fill a GPU; R networks in
one launch take hardly longer than one. `torch.func` stacks ordinary modules, batch-norm statistics
included. Networks that draw in the forward pass (dropout) would draw otherwise than on their own.

Shapes: R jobs; L labelled points; B points in a mini-batch; E epochs.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn.functional import cross_entropy

from askance.training.recipe import Build, Job, OnEpoch, Recipe


def fit_stacked(
    build: Build, inputs: Tensor, jobs: Sequence[Job], recipe: Recipe, on_epoch: OnEpoch | None
) -> list[nn.Module]:
    """A trained network for each job; jobs with equally many points are trained together."""
    groups: dict[int, list[int]] = defaultdict(list)
    for place, job in enumerate(jobs):
        groups[len(job)].append(place)
    models: dict[int, nn.Module] = {}
    for places in groups.values():
        stack = _fit_stack(build, inputs, [jobs[place] for place in places], recipe, on_epoch)
        models.update(zip(places, stack, strict=True))
    return [models[place] for place in range(len(jobs))]


def _fit_stack(
    build: Build, inputs: Tensor, jobs: Sequence[Job], recipe: Recipe, on_epoch: OnEpoch | None
) -> list[nn.Module]:
    device = inputs.device
    models = [build(job.draws).to(device, inputs.dtype).train() for job in jobs]
    parameters, buffers = stack_module_state(models)
    skeleton = copy.deepcopy(models[0]).to("meta")

    def loss(
        parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, y: Tensor
    ) -> Tensor:
        return cross_entropy(functional_call(skeleton, (parameters, buffers), (x,)), y)

    gradients = vmap(grad(loss))
    rows_RL = torch.stack([torch.from_numpy(job.rows) for job in jobs]).to(device)
    labels_RL = torch.stack([job.labels for job in jobs]).to(device)
    order_ERL = torch.stack([torch.from_numpy(job.order(recipe.epochs)) for job in jobs], 1).to(
        device
    )
    rates_R = torch.tensor([job.learning_rate for job in jobs], dtype=inputs.dtype, device=device)
    weights = {name: p.detach() for name, p in parameters.items()}
    steps = {name: rates_R.reshape(-1, *[1] * (p.ndim - 1)) for name, p in weights.items()}
    speeds = {name: torch.zeros_like(p) for name, p in weights.items()}
    for epoch, order_RL in enumerate(order_ERL, 1):
        for batch_RB in order_RL.split(recipe.batch_size, dim=1):
            x_RB = inputs[rows_RL.gather(1, batch_RB)]
            slopes = gradients(weights, buffers, x_RB, labels_RL.gather(1, batch_RB))
            for name, weight in weights.items():
                speed = speeds[name].mul_(recipe.momentum).add_(slopes[name])
                weight.addcmul_(steps[name], speed, value=-1)
        if on_epoch is not None:
            on_epoch(epoch, len(jobs))
    for place, model in enumerate(models):
        state = {name: value[place] for name, value in (weights | buffers).items()}
        model.load_state_dict(state, strict=False)
        model.eval()
    return models
