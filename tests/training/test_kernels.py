"""The GPU's own kernels against PyTorch's layers, network by network.

Without a GPU Triton's interpreter runs them, program by program, on the CPU.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from askance import training
from askance.capture import triton_kernels
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, fit
from askance.training import maps as ways
from tests.interpreter import DEVICE, compiled_or_interpreted

kernels = compiled_or_interpreted("askance.training.kernels")


def _random(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(DEVICE)


def _last(maps: torch.Tensor) -> torch.Tensor:
    return maps.contiguous(memory_format=torch.channels_last)


sides = st.integers(5, 9)
shapes = given(
    seed=st.integers(0, 99),
    R=st.integers(1, 3),
    B=st.integers(1, 3),
    inner=st.integers(1, 6),
    out=st.integers(1, 18),
    k=st.integers(1, 5),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    H=sides,
    W=sides,
    biased=st.booleans(),
)


@settings(max_examples=5, deadline=None)
@shapes
def test_a_convolution_and_its_gradients_are_each_networks_own(
    seed, R, B, inner, out, k, stride, padding, H, W, biased
):
    maps, weights = _random(seed, R, B, inner, H, W), _random(seed + 1, R, out, inner, k, k)
    bias = _random(seed + 2, R, out) if biased else None
    naive = [t if t is None else t.double().requires_grad_() for t in (maps, weights, bias)]
    expected = torch.stack(
        [
            F.conv2d(naive[0][r], naive[1][r], naive[2][r] if biased else None, stride, padding)
            for r in range(R)
        ]
    )
    ours = [_last(maps.transpose(0, 1).flatten(1, 2)), weights.permute(0, 1, 3, 4, 2).contiguous()]
    ours = [t.requires_grad_() for t in (*ours, *([bias.clone()] if biased else []))]
    actual = kernels.Convolution.apply(
        ours[0], ours[1], ours[2] if biased else None, stride, padding
    )
    grad_out = _random(seed + 3, *expected.shape)
    expected.backward(grad_out.double())
    actual.backward(grad_out.transpose(0, 1).flatten(1, 2))
    close = {"rtol": 1e-4, "atol": 1e-4, "check_dtype": False}
    torch.testing.assert_close(actual.unflatten(1, (R, out)).transpose(0, 1), expected, **close)
    grads = ours[0].grad.unflatten(1, (R, inner)).transpose(0, 1), ours[1].grad
    torch.testing.assert_close(grads[0], naive[0].grad, **close)
    torch.testing.assert_close(grads[1].permute(0, 1, 4, 2, 3), naive[1].grad, **close)
    if biased:
        torch.testing.assert_close(ours[2].grad, naive[2].grad, **close)


@pytest.mark.parametrize("places", [63, 64, 65, 700])
def test_a_long_sum_of_gradients_is_cut_into_parts_that_leave_nothing_out(places):
    maps, weight = _last(_random(0, 1, 2, 1, places)), _random(1, 1, 3, 1, 1, 2).requires_grad_()
    kernels.Convolution.apply(maps, weight, None, 1, 0).sum().backward()
    expected = maps.double().sum(dim=(0, 2, 3)).expand(3, 2)
    torch.testing.assert_close(weight.grad[0, :, 0, 0].double(), expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 99),
    k=st.integers(1, 3),
    more=st.integers(0, 1),
    H=sides,
    W=sides,
    channels=st.integers(1, 5),
)
def test_pooling_is_pytorchs_to_the_last_bit_where_values_are_equal_too(
    seed, k, more, H, W, channels
):
    maps = _last(_random(seed, 2, channels, H, W).mul(2).round())
    maps[0, 0, 0, 0] = torch.nan
    theirs, ours = (maps.clone().requires_grad_() for _ in range(2))
    expected, actual = F.max_pool2d(theirs, k, k + more), kernels.MaxPool.apply(ours, k, k + more)
    grad_out = _random(seed + 1, *expected.shape)
    expected.backward(grad_out)
    actual.backward(grad_out)
    assert torch.equal(actual.nan_to_num(99.0), expected.nan_to_num(99.0))
    assert torch.equal(ours.grad, theirs.grad)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 99),
    R=st.integers(1, 3),
    inner=st.integers(1, 70),
    k=st.integers(1, 4),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    H=sides,
    W=sides,
)
def test_patches_and_their_overlaps_are_those_made_without_kernels(
    seed, R, inner, k, stride, padding, H, W
):
    maps = _last(_random(seed, 2, R * inner, H, W))
    # In float64 the stack makes no use of the kernels.
    expected, (B, h, w) = ways.patches(maps.double(), R, k, stride, padding)
    actual, sizes = kernels.patches(maps, R, k, stride, padding)
    assert torch.equal(actual.double(), expected)
    assert sizes == (B, h, w)
    spread = _random(seed + 1, *actual.shape)
    expected = ways._overlapped(
        spread.double().view(R, B, h, w, k, k, inner), maps.shape, stride, padding
    )
    actual = kernels.overlapped(spread, maps.shape, R, k, stride, padding)
    torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-5)


def _network(draws: Draws) -> nn.Module:
    """Few channels, then many: a layer for each of the kernels."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 20, 3, padding=1),
            nn.BatchNorm2d(20),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(20, 17, 3, stride=2, padding=1, bias=False),
            nn.Flatten(),
            nn.Linear(17 * 4, 3),
        )


def test_networks_trained_with_kernels_are_those_trained_without(monkeypatch):
    inputs = _random(0, 5, 3, 8, 8)
    labels = torch.arange(5) % 3
    jobs = [TrainingJob(np.arange(5), labels, rate, Draws(0, 0)) for rate in (0.01, 0.02)]

    def trained() -> torch.Tensor:
        fitted = fit(_network, inputs, jobs, Recipe(epochs=2, batch_size=2), training="stacked")
        weights = [list(fitted.model(place).parameters()) for place in range(len(jobs))]
        return torch.cat([w.detach().flatten() for some in weights for w in some])

    used = []
    monkeypatch.setattr(ways, "_kernels", lambda values: used.append(1) or kernels)
    actual = trained()
    assert used
    monkeypatch.setattr(ways, "_kernels", lambda values: None)
    torch.testing.assert_close(actual, trained(), rtol=1e-4, atol=1e-5)


def test_a_stack_does_without_kernels_where_triton_is_missing(monkeypatch):
    monkeypatch.delattr(training, "kernels")
    monkeypatch.setitem(sys.modules, "askance.training.kernels", None)
    triton_kernels.cache_clear()
    try:
        assert triton_kernels("askance.training.kernels") is None
    finally:
        triton_kernels.cache_clear()
