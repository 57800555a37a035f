"""Stacked layers against the ordinary ones, network by network."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from askance.errors import InputError
from askance.training import maps as ways
from askance.training.stack import Stack, stackable


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 99),
    R=st.integers(1, 4),
    B=st.integers(1, 3),
    inner=st.integers(1, 4),
    out=st.integers(1, 4),
    k=st.integers(1, 5),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    H=st.integers(5, 9),
    W=st.integers(5, 9),
    products=st.booleans(),
)
def test_a_stacked_convolution_is_each_networks_own(
    seed, R, B, inner, out, k, stride, padding, H, W, products
):
    generator = torch.Generator().manual_seed(seed)
    maps = torch.randn(R, B, inner, H, W, generator=generator, dtype=torch.float64)
    weights = torch.randn(R, out, inner, k, k, generator=generator, dtype=torch.float64)
    solo = [t.clone().requires_grad_() for t in (maps, weights)]
    expected = torch.stack(
        [F.conv2d(m, w, stride=stride, padding=padding) for m, w in zip(*solo, strict=True)]
    )
    ours = [maps.transpose(0, 1).flatten(1, 2), weights.permute(0, 1, 3, 4, 2)]
    ours = [t.contiguous().requires_grad_() for t in ours]
    kept = ways._by_products
    ways._by_products = lambda *sizes: products
    try:
        actual = ways.convolved(
            ours[0].contiguous(memory_format=torch.channels_last), ours[1], None, stride, padding
        )
    finally:
        ways._by_products = kept
    actual = actual.unflatten(1, (R, out)).transpose(0, 1)
    assert torch.allclose(actual, expected, rtol=1e-10, atol=1e-10)
    weigh = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
    (expected * weigh).sum().backward()
    (actual * weigh).sum().backward()
    back = ours[0].grad.unflatten(1, (R, inner)).transpose(0, 1)
    assert torch.allclose(back, solo[0].grad, rtol=1e-9, atol=1e-9)
    weight_grad = ours[1].grad.permute(0, 1, 4, 2, 3)
    assert torch.allclose(weight_grad, solo[1].grad, rtol=1e-9, atol=1e-9)


def net(last: nn.Module | None = None) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(4, 6, 1, bias=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 5, bias=False),
        nn.ReLU(),
        last or nn.Linear(5, 3),
    )


def test_a_network_of_ones_own_is_stacked_and_unstacked():
    torch.manual_seed(0)
    solos = [net().double().train() for _ in range(3)]
    X = torch.randn(3, 4, 3, 8, 8, dtype=torch.float64)
    stack = Stack(solos).train()
    before = [{k: v.clone() for k, v in solo.state_dict().items()} for solo in solos]
    out = stack(X)
    for place, solo in enumerate(solos):
        assert {k: v.tolist() for k, v in solo.state_dict().items()} == {
            k: v.tolist() for k, v in before[place].items()
        }  # the originals are not touched
        assert torch.allclose(out[place], solo(X[place]), rtol=1e-12, atol=1e-12)
    fresh = net().double()
    for place, solo in enumerate(solos):
        stack.unstack(place, fresh)
        for name, value in fresh.state_dict().items():
            assert torch.allclose(value.double(), solo.state_dict()[name].double()), name
    logits, features = stack.eval().embedded(X[0])
    assert logits.shape == (3, 4, 3)
    assert features.shape == (3, 4, 5)
    assert torch.allclose(logits[1], solos[1].eval()(X[0]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Dropout(),
        nn.LayerNorm(3),
        nn.Conv2d(4, 4, 3, groups=2),
        nn.Conv2d(4, 4, 3, dilation=2),
        nn.Conv2d(4, 4, (3, 1)),
        nn.Conv2d(4, 4, 3, padding="same"),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
        nn.BatchNorm2d(4, affine=False),
        nn.BatchNorm2d(4, track_running_stats=False),
        nn.BatchNorm2d(4, momentum=None),
        nn.Flatten(2),
        nn.AdaptiveAvgPool2d(2),
    ],
)
def test_layers_that_cannot_be_stacked_are_named(layer):
    model = nn.Sequential(layer, nn.Linear(3, 2))
    assert not stackable(model)
    with pytest.raises(InputError, match=rf"cannot be stacked: 0 \({type(layer).__name__}\)"):
        Stack([model, model])


def test_a_parameter_outside_any_layer_cannot_be_stacked():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))
            self.layer = nn.Linear(3, 2)

        def forward(self, x):
            return self.layer(x) * self.scale

    assert not stackable(Odd())


def test_weights_that_are_used_twice_cannot_be_stacked():
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.ReLU(), layer)
    assert not stackable(model)
    with pytest.raises(
        InputError, match=r"cannot be stacked: 2\.weight \(shared with another layer\)"
    ):
        Stack([model, model])


def test_a_layer_without_weights_may_be_used_twice():
    def built(seed):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            pool, relu = nn.MaxPool2d(2), nn.ReLU()
            first, second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)
            return nn.Sequential(
                first, relu, pool, second, relu, pool, nn.Flatten(), nn.Linear(4, 2)
            )

    solos = [built(seed).double().eval() for seed in range(2)]
    maps = torch.randn(5, 3, 10, 10, dtype=torch.float64)
    got = Stack(solos).eval()(maps, shared=True)
    assert torch.allclose(got, torch.stack([solo(maps) for solo in solos]))


def test_a_network_that_does_not_end_with_its_head_has_no_stacked_embedding():
    stack = Stack([net(nn.Sequential(nn.Linear(5, 3), nn.ReLU())) for _ in range(2)]).eval()
    with pytest.raises(InputError, match="end with the linear layer"):
        stack.embedded(torch.randn(4, 3, 8, 8))
