"""Training by hand: when it applies, and that it is the same training."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from askance import models
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, fit, sequential
from askance.training.manual_mlp import mlp_layers


def chain(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 99),
    L=st.integers(1, 20),
    batch_size=st.integers(1, 9),
    widths=st.lists(st.integers(1, 7), min_size=2, max_size=4),
    momentum=st.sampled_from([0.0, 0.9]),
)
def test_by_hand_is_by_autograd(seed, L, batch_size, widths, momentum):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(30, widths[0], generator=generator, dtype=torch.float64)
    y = torch.randint(widths[-1], (30,), generator=generator)

    def build(draws):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return chain(*widths)

    assert mlp_layers(build(None)) is not None
    job = TrainingJob(np.arange(L), y[:L], 0.1, Draws(seed))
    recipe = Recipe(epochs=3, batch_size=batch_size, momentum=momentum)
    by_hand = fit(build, X, [job], recipe, precision="float64", training="one").model(0)
    kept, sequential.mlp_layers = sequential.mlp_layers, lambda model: None
    try:
        other = fit(build, X, [job], recipe, precision="float64", training="one").model(0)
    finally:
        sequential.mlp_layers = kept
    for a, b in zip(by_hand.parameters(), other.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)


def test_the_mlp_is_plain_and_the_others_are_not():
    mlp = models.build("mlp", (3, 4), 5, Draws())
    assert [layer.out_features for layer in mlp_layers(mlp)] == [512, 256, 5]
    assert mlp_layers(models.build("lenet", (3, 32, 32), 5, Draws())) is None


class Own(nn.Module):
    """Looks like a chain and is not one."""

    def __init__(self) -> None:
        super().__init__()
        self.body = chain(3, 4, 2)

    def forward(self, x):
        return 2 * self.body(x)


@pytest.mark.parametrize(
    "model",
    [
        Own(),
        nn.Sequential(Own()),
        nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 4), nn.ReLU()),
        nn.Sequential(nn.ReLU(), nn.Linear(3, 4)),
        nn.Sequential(nn.Linear(3, 4, bias=False)),
        nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.ReLU(), nn.Linear(4, 2)),
    ],
)
def test_anything_else_is_differentiated(model):
    assert mlp_layers(model) is None


def test_a_frozen_layer_is_left_to_autograd():
    model = chain(3, 4, 2)
    model[0].weight.requires_grad_(False)
    assert mlp_layers(model) is None


def test_a_network_that_uses_weights_twice_is_not_trained_by_hand():
    layer, relu = nn.Linear(4, 4), nn.ReLU()
    twice = nn.Sequential(layer, relu, layer, relu, nn.Linear(4, 3))
    tied = chain(4, 4, 4, 3)
    tied[2].weight = tied[0].weight
    assert mlp_layers(chain(4, 4, 4, 3)) is not None
    assert mlp_layers(twice) is mlp_layers(tied) is None
