"""Batch-norm with its sum and ReLU, for a GPU, against its equations and against networks alone.

Without a GPU Triton's interpreter runs the kernels, program by program, on the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from askance.models.resnet18 import BasicBlock
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, fit, numerics
from askance.training import maps as ways
from askance.training.stack import Stack
from tests.interpreter import DEVICE, compiled_or_interpreted
from tests.naive import training as naive

norms = compiled_or_interpreted("askance.training.norms")

# Small enough that a few places make several tiles, parts and blocks of channels.
SMALL = {"_WHOLE": 16, "_PLACES": 16, "_CHANNELS": 8, "_PARTS": 3}


@pytest.fixture(autouse=True, params=["whole", "parts"])
def _cut(request, monkeypatch):
    for name, size in SMALL.items() if request.param == "parts" else ():
        monkeypatch.setattr(norms, name, size)


def _channels(generator, B, C, H, W) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Maps, γ and β with what may go wrong: a channel that is constant, or far from 0; γ < 0, γ = 0."""
    maps = torch.randn(B, C, H, W, generator=generator)
    gamma, beta = (torch.randn(C, generator=generator) for _ in range(2))
    maps[:, 0] = 0.37
    maps[:, C // 2] = 100 + 0.1 * maps[:, C // 2]
    gamma[-1], gamma[C // 3] = 0.0, -gamma[C // 3].abs()
    return maps, gamma, beta


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 99),
    B=st.integers(1, 4),
    H=st.integers(1, 6),
    W=st.integers(2, 5),
    C=st.integers(1, 19),
    added=st.booleans(),
    rectified=st.booleans(),
)
@example(seed=0, B=4, H=5, W=5, C=9, added=True, rectified=True)
@example(seed=1, B=3, H=4, W=5, C=9, added=False, rectified=True)
@example(seed=2, B=1, H=1, W=2, C=1, added=False, rectified=False)
def test_a_norm_its_statistics_and_its_gradients_are_those_of_its_equations(
    seed, B, H, W, C, added, rectified
):
    generator = torch.Generator().manual_seed(seed)
    maps, gamma, beta = _channels(generator, B, C, H, W)
    more = torch.randn(B, C, H, W, generator=generator) if added else None
    running = torch.randn(C, generator=generator), torch.rand(C, generator=generator)

    theirs = [t if t is None else t.double().requires_grad_() for t in (maps, more, gamma, beta)]
    expected, *statistics = naive.normed(*theirs, *running, momentum=0.3, eps=1e-5)
    grad_out = torch.randn(expected.shape, generator=generator)
    if rectified or added:
        # Rounding decides there whether a gradient goes through.
        grad_out[expected.abs() < 0.02] = 0.0
        expected = torch.where(expected > 0, expected, 0.0)
    expected.backward(grad_out.double())

    ours = [t if t is None else t.to(DEVICE).requires_grad_() for t in (maps, more, gamma, beta)]
    moved = [t.to(DEVICE) for t in running]
    actual = norms.Norm.apply(*ours, *moved, 0.3, 1e-5, rectified)
    actual.backward(grad_out.to(DEVICE))

    for a, b in zip(moved, statistics, strict=True):
        torch.testing.assert_close(a.cpu().double(), b.detach(), rtol=1e-5, atol=1e-5)
    # A mean is rounded, and with it every x̂ of its channel.
    x_CP, told_CP = (t.double().transpose(0, 1).flatten(1) for t in (maps, grad_out))
    sigma_C = (x_CP.var(dim=1, correction=0) + 1e-5).sqrt()
    lost_C = 1e-6 * (1 + x_CP.mean(dim=1).abs() / sigma_C)
    g_C, G_C, gamma_C = told_CP.abs().amax(dim=1), told_CP.abs().sum(dim=1), gamma.abs() + 0.01
    slack = 20 * lost_C * gamma_C / sigma_C * g_C, 0 * g_C, 6 * lost_C * G_C, 1e-6 * G_C
    _near(actual, expected, 6 * lost_C * gamma_C + 1e-6)
    for a, b, slack_C in zip(ours, theirs, slack, strict=True):
        if a is not None:
            _near(a.grad, b.grad, slack_C + 1e-6)


def _near(actual: torch.Tensor, expected: torch.Tensor, slack_C: torch.Tensor) -> None:
    off = (actual.detach().cpu().double() - expected.detach()).abs()
    off_C = off if off.ndim == 1 else off.transpose(0, 1).flatten(1).amax(dim=1)
    assert (off_C <= slack_C).all(), (off_C / slack_C).tolist()


def test_a_channel_far_from_zero_keeps_its_variance():
    """E[x²] − E[x]² would find none of it in float32."""
    maps = 1000 + 0.1 * torch.randn(5, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    running = torch.zeros(3, device=DEVICE), torch.zeros(3, device=DEVICE)
    one = torch.ones(3, device=DEVICE)
    norms.Norm.apply(maps.to(DEVICE), None, one, one, *running, 1.0, 1e-5, False)
    expected = maps.double().var(dim=(0, 2, 3))
    torch.testing.assert_close(running[1].double().cpu(), expected, rtol=1e-3, atol=0)


def test_a_network_that_diverged_stays_so():
    maps = torch.full((2, 1, 2, 2), torch.nan, device=DEVICE)
    one, running = torch.ones(1, device=DEVICE), torch.zeros(2, 1, device=DEVICE)
    for added in (None, maps):
        assert norms.Norm.apply(maps, added, one, one, *running, 0.1, 1e-5, True).isnan().all()


def test_what_the_kernels_do_not_do_is_left_to_pytorch(monkeypatch):
    monkeypatch.setattr(ways, "_kernels", lambda values: norms)
    maps = torch.zeros(1, 4, 1, 2)
    assert ways._norms(maps, None) is ways._norms(maps, maps) is norms
    assert ways._norms(maps.double(), None) is None
    assert ways._norms(maps, maps.double()) is None
    assert ways._norms(maps, maps[:, :1]) is None  # PyTorch would spread it over the channels
    # One value a channel: PyTorch says what is wrong.
    assert ways._norms(maps[..., :1], None) is None
    assert ways._norms(maps.bfloat16(), None) is None


def _chain() -> nn.Module:
    relu = nn.ReLU()  # one object in two places
    return nn.Sequential(
        nn.Conv2d(3, 5, 3, padding=1, bias=False), nn.BatchNorm2d(5), relu,
        nn.MaxPool2d(2),
        nn.Conv2d(5, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.BatchNorm2d(6), relu,
        nn.Flatten(), nn.Linear(6 * 4, 3),
    )  # fmt: skip


def _blocks() -> nn.Module:
    return nn.Sequential(
        BasicBlock(3, 3), BasicBlock(3, 5, stride=2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 3),
    )  # fmt: skip


class _ByHand(nn.Module):
    """Calls the layers of its chain one by one, and uses what batch-norm gave before the ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        before = self.layers[1](self.layers[0](maps))
        return self.head(self.layers[2](before) - before)


@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")
@pytest.mark.parametrize("build", [_chain, _blocks, _ByHand])
def test_a_stack_of_networks_is_each_of_them(build, monkeypatch):
    used = []

    class Norm(norms.Norm):
        @staticmethod
        def forward(ctx, *args):
            used.append((args[1] is not None, args[-1]))
            return norms.Norm.forward(ctx, *args)

    # The kernels of convolutions and pools have tests of their own.
    monkeypatch.setattr(ways, "_norms", lambda maps, added: type("norms", (), {"Norm": Norm}))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        solos = [build().train() for _ in range(2)]
        inputs, grad_out = torch.randn(2, 5, 3, 4, 4), torch.randn(2, 5, 3)
    stack = Stack(solos).to(DEVICE).train()
    if DEVICE == "cpu":
        monkeypatch.setattr(ways, "_kernels", lambda values: None)
    with numerics(torch.device(DEVICE), "float32"):
        out = stack(inputs.to(DEVICE))
        out.backward(grad_out.to(DEVICE))
    wanted = {
        _chain: [(False, True), (False, False), (False, True)],
        _blocks: [(False, True), (True, False), (False, True), (False, False), (True, False)],
        _ByHand: [(False, False)],
    }
    assert used == wanted[build]
    close = {"rtol": 1e-3, "atol": 1e-4, "check_device": False}
    for place, solo in enumerate(solos):
        expected = solo(inputs[place])
        torch.testing.assert_close(out[place], expected, **close)
        expected.backward(grad_out[place])
        fresh = build()
        stack.unstack(place, fresh)
        for (name, actual), value in zip(
            fresh.state_dict().items(), solo.state_dict().values(), strict=True
        ):
            torch.testing.assert_close(actual, value, **close, msg=lambda m, n=name: f"{n}: {m}")
        for parameter, grad_of_one in zip(
            solo.parameters(), _grads(stack, place, fresh), strict=True
        ):
            torch.testing.assert_close(grad_of_one, parameter.grad, **close)
    with numerics(torch.device(DEVICE), "float32"):
        kept = stack.eval()(inputs[0].to(DEVICE), shared=True)
    for place, solo in enumerate(solos):
        torch.testing.assert_close(kept[place], solo.eval()(inputs[0]), **close)


def _grads(stack: Stack, place: int, fresh: nn.Module) -> list[torch.Tensor]:
    """One network's gradients, written where its weights would go."""
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.data, parameter.grad = parameter.grad, parameter.data
        stack.unstack(place, fresh)
        for parameter in stack.parameters():
            parameter.data, parameter.grad = parameter.grad, parameter.data
    return [p.detach().to(DEVICE) for p in fresh.parameters()]


@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")
@pytest.mark.parametrize("ours", [True, False], ids=["fused", "PyTorch's"])
@pytest.mark.parametrize("_cut", ["as they are"], indirect=True)
def test_networks_trained_with_either_norm_are_those_of_float64(ours, monkeypatch):
    """Two steps, each tensor within a thousandth of the way it went in float64 on the CPU.

    Rounding is not amplified here: a norm has 112 places or more, and no ReLU is given a value that
    rounding could put on the other side of 0. VGG-16 in a mini-batch of 6 would not do: one such
    ReLU after its last norms, of 24 places, moves its step by 2 %, whoever's norm it is.
    """
    used = []

    def offered(maps, added):
        used.append(kept(maps, added) if DEVICE == "cuda" else norms)
        return used[-1] if ours else None

    kept = ways._norms
    monkeypatch.setattr(ways, "_norms", offered)
    X = torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(8))
    jobs = [
        TrainingJob(np.arange(16), torch.arange(16) % 4, rate, Draws(i))
        for i, rate in enumerate((0.1, 0.05))
    ]
    recipe = Recipe(
        epochs=1, batch_size=9
    )  # 9 points and 7, of 576 places and 448 in the first norm

    nearest, relu = [], torch.relu
    with monkeypatch.context() as patch:
        patch.setattr(
            torch, "relu", lambda x: nearest.append(float(x.detach().abs().min())) or relu(x)
        )
        exact = fit(_trained, X, jobs, recipe, precision="float64", training="one")
    assert not used
    assert min(nearest) > 2e-5  # in float32 these values are 3e-6 off at most

    actual = fit(_trained, X.to(DEVICE), jobs, recipe, precision="float32", training="stacked")
    assert used
    assert all(module is norms for module in used)
    for place in range(2):
        start = _trained(Draws(place)).state_dict()
        states = actual.model(place).cpu().state_dict(), exact.model(place).state_dict()
        for (key, a), b in zip(states[0].items(), states[1].values(), strict=True):
            way, off = (b.double() - start[key]).norm(), (a.double() - b).norm()
            assert off <= 1e-3 * way, f"{key}: {off / way:.1e} of the way"


def _trained(draws: Draws) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(draws.seed)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
            BasicBlock(8, 8), BasicBlock(8, 12, stride=2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 4),
        )  # fmt: skip
