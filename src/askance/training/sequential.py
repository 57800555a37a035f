"""Train networks one after the other: what a CPU does, and what any network can be trained by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from askance.training.manual_mlp import ManualMLP, mlp_layers
from askance.training.recipe import Build, OnEpoch, Recipe, TrainingJob


def fit_in_sequence(
    build: Build,
    inputs: Tensor,
    jobs: Sequence[TrainingJob],
    recipe: Recipe,
    on_epoch: OnEpoch | None,
) -> list[nn.Module]:
    """A trained network for each job, on the inputs' device and in their dtype."""
    return [_fit(build, inputs, job, recipe, on_epoch) for job in jobs]


def _fit(
    build: Build, inputs: Tensor, job: TrainingJob, recipe: Recipe, on_epoch: OnEpoch | None
) -> nn.Module:
    device = inputs.device
    model = build(job.draws).to(device, inputs.dtype).train()
    inputs_L = inputs[torch.from_numpy(job.rows).to(device)]
    order_EL = torch.from_numpy(job.order(recipe.epochs)).to(device)
    labels_L = job.labels.to(device)
    layers = mlp_layers(model)
    if layers is not None and device.type == "cpu" and not torch.is_autocast_enabled("cpu"):
        mlp = ManualMLP(layers, job.learning_rate, recipe.momentum)
        epochs = _by_hand(mlp, inputs_L, labels_L, order_EL, recipe)
    else:
        epochs = _by_autograd(model, inputs_L, labels_L, order_EL, job.learning_rate, recipe)
    for epoch, _ in enumerate(epochs, 1):
        if on_epoch is not None:
            on_epoch(epoch, 1)
    return model.eval()


def _by_autograd(
    model: nn.Module, x_L: Tensor, y_L: Tensor, order_EL: Tensor, rate: float, recipe: Recipe
) -> Iterator[None]:
    """Train epoch by epoch with PyTorch's own SGD."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    # The fused update makes one pass where the plain one makes three.
    optimizer = torch.optim.SGD(parameters, lr=rate, momentum=recipe.momentum, fused=True)
    for order_L in order_EL:
        for batch in order_L.split(recipe.batch_size):
            optimizer.zero_grad(set_to_none=True)
            cross_entropy(model(x_L[batch]), y_L[batch]).backward()
            optimizer.step()
        yield
    optimizer.zero_grad(set_to_none=True)


def _by_hand(
    mlp: ManualMLP, x_L: Tensor, y_L: Tensor, order_EL: Tensor, recipe: Recipe
) -> Iterator[None]:
    """The same for a network whose step is written by hand."""
    inputs_LD = x_L.flatten(1)
    answers_LC = one_hot(y_L, len(mlp.biases[-1])).to(inputs_LD.dtype)
    with torch.no_grad():
        for order_L in order_EL:
            batches = inputs_LD[order_L].split(recipe.batch_size)
            answers = answers_LC[order_L].split(recipe.batch_size)
            for batch, answer in zip(batches, answers, strict=True):
                mlp.step(batch, answer)
            yield
