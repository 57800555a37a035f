"""The lazy first layer against every weight at every step, and whole networks trained either way.

Without a GPU Triton's interpreter runs the kernels, program by program, on the CPU.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from askance import models, training
from askance.capture import triton_kernels
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, fit, sparse
from askance.training.stack import Stack
from tests.interpreter import DEVICE, compiled_or_interpreted
from tests.naive import training as naive

kernels = compiled_or_interpreted("askance.training.sparse_kernels")


def points(seed: int, N: int, D: int, density: float) -> torch.Tensor:
    """Float64; some columns are in many points, some in none, and some points are empty."""
    random = np.random.default_rng(seed)
    share_D = np.minimum(1, density * random.exponential(size=D))
    inputs_ND = np.where(random.random((N, D)) < share_D, random.normal(size=(N, D)), 0)
    inputs_ND[random.random(N) < 0.1] = -0.0
    return torch.from_numpy(inputs_ND).to(DEVICE)


def layer(seed: int, R: int, D: int, out: int) -> Stack:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Stack([nn.Linear(D, out).double() for _ in range(R)]).to(DEVICE)


def lazily(stack, inputs_ND, batches, grads, momentum):
    """What it says in each step, and the settled layer."""
    lazy = sparse.Lazy(stack.entry(), inputs_ND, momentum, len(batches), kernels)
    said = []
    for rows_RB, grad_RBO in zip(batches, grads, strict=True):
        said.append(stack(rows_RB.unsqueeze(2)))
        said[-1].backward(grad_RBO.clone())  # autograd may keep it, and add to it
    lazy.settle()
    return said, lazy


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 999),
    R=st.integers(1, 3),
    B=st.integers(1, 5),
    D=st.integers(1, 40),
    out=st.integers(1, 9),
    density=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    momentum=st.sampled_from([0.0, 0.3, 0.9, 0.999]),
    steps=st.integers(1, 6),
    again=st.booleans(),
)
@example(0, 2, 3, 40, 3, 0.3, 0.9, 6, False)
def test_late_steps_are_those_made_in_time(seed, R, B, D, out, density, momentum, steps, again):
    inputs_ND = points(seed, 7, D, density)
    random = np.random.default_rng(seed)
    # Every third mini-batch is a smaller one; a row may be in a mini-batch twice.
    sizes = [B if s % 3 < 2 else max(1, B - 2) for s in range(steps)]
    batches = [torch.from_numpy(random.integers(0, 7, (R, b))).to(DEVICE) for b in sizes]
    if not again:
        batches = [
            torch.from_numpy(np.stack([random.permutation(7)[:b] for _ in range(R)])).to(DEVICE)
            for b in sizes
        ]
    grads = [torch.from_numpy(random.normal(size=(R, b, out))).to(DEVICE) for b in sizes]
    stack = layer(seed, R, D, out)
    before, bias = stack.entry().weight.detach().clone(), stack.entry().bias.detach()
    said, lazy = lazily(stack, inputs_ND, batches, grads, momentum)
    expected, weights, buffers = naive.first_layer(
        before, inputs_ND, batches, grads, momentum=momentum
    )
    close = {"rtol": 1e-10, "atol": 1e-10}
    for ours, theirs in zip(said, expected, strict=True):
        torch.testing.assert_close(ours.detach() - bias[:, None], torch.stack(theirs), **close)
    torch.testing.assert_close(lazy.weight_RDO.detach(), torch.stack(weights), **close)
    torch.testing.assert_close(lazy.momentum_buffer_RDO, torch.stack(buffers), **close)
    bias_grad = sum(grad_RBO.sum(dim=1) for grad_RBO in grads)
    torch.testing.assert_close(stack.entry().bias.grad, bias_grad, **close)
    assert stack.entry().weight.grad is None
    # It is an ordinary layer again.
    x_RBD = inputs_ND[batches[0]]
    torch.testing.assert_close(stack(x_RBD), x_RBD @ torch.stack(weights) + bias[:, None], **close)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9, 0.9999])
def test_a_column_may_wait_for_thousands_of_steps(momentum):
    """The first column is in steps 0 and 8,000 alone; in between the clock is set on."""
    inputs_ND = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64, device=DEVICE)
    stack = layer(0, 1, 2, 3)
    before = stack.entry().weight.detach().clone()
    lazy = sparse.Lazy(stack.entry(), inputs_ND, momentum, 10_000, kernels)
    grad_RBO = torch.tensor([[[1.0, -2.0, 0.5]]], dtype=torch.float64, device=DEVICE)
    rows = torch.zeros(1, 1, 1, dtype=torch.int64, device=DEVICE)
    stack(rows).backward(grad_RBO.clone())
    lazy.clock.fill_(8_000)
    stack(rows).backward(grad_RBO.clone())
    lazy.clock.fill_(10_000)
    lazy.settle()
    nothing = torch.zeros_like(grad_RBO)
    twin = naive.first_layer(
        before,
        inputs_ND,
        [rows[0]] * 10_000,
        [grad_RBO] + [nothing] * 7_999 + [grad_RBO] + [nothing] * 1_999,
        momentum=momentum,
    )
    torch.testing.assert_close(lazy.weight_RDO.detach(), torch.stack(twin[1]), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(lazy.momentum_buffer_RDO, torch.stack(twin[2]), rtol=1e-9, atol=1e-9)


def test_long_points_and_wide_layers_are_taken_in_parts_that_leave_nothing_out(monkeypatch):
    """More non-zeros than all parts take in one go, more outputs than one program has."""
    monkeypatch.setattr(kernels, "PRODUCT", (8, 16, 2))
    monkeypatch.setattr(kernels, "UPDATE", (8, 16, 3))
    D, out = 8 * 3 * 2 + 3, 16 + 5
    inputs_ND = points(1, 3, D, 4.0)
    inputs_ND[0] = 1.5
    inputs_ND[1, 1:] = 0
    batches = [torch.tensor([[0, 1, 2]], device=DEVICE), torch.tensor([[2, 0]], device=DEVICE)]
    grads = [torch.ones(1, rows.shape[1], out).double().to(DEVICE) for rows in batches]
    stack = layer(1, 1, D, out)
    before = stack.entry().weight.detach().clone()
    said, lazy = lazily(stack, inputs_ND, batches, grads, 0.9)
    expected, weights, _ = naive.first_layer(before, inputs_ND, batches, grads, momentum=0.9)
    assert int(torch.count_nonzero(inputs_ND[0])) == D
    ours = said[1].detach() - stack.entry().bias[:, None]
    torch.testing.assert_close(ours, expected[1][0][None])
    torch.testing.assert_close(lazy.weight_RDO.detach(), torch.stack(weights))


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9, 0.999999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tables_are_sums_of_powers_up_to_where_nothing_is_left(momentum, dtype):
    powers, paths = sparse._tables(momentum, 3_000, dtype)
    power, path = 1.0, 0.0
    for k in range(3_001):
        at = min(k, len(powers) - 1)
        assert float(powers[at].to(dtype)) == pytest.approx(power, rel=1e-6, abs=1e-44)
        assert float(paths[at]) == pytest.approx(path, rel=1e-9)
        power *= momentum
        path += power
    if momentum == 0.9 and dtype == torch.float32:
        assert len(powers) < 1_000
    if momentum == 0.0:
        assert powers.tolist() == [1, 0]


C, DENSE = 4, 60


def build(draws: Draws) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(draws.seed)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(DENSE, 6), nn.ReLU(), nn.Identity(), nn.Linear(6, C)
        )


def trained(inputs: torch.Tensor, engine: str, precision: str = "float64", build=build):
    """Networks of other seeds, sets and rates, one of another size; a smaller last mini-batch."""
    y = torch.arange(len(inputs)) % C
    jobs = [
        TrainingJob(np.arange(first, first + L), y[first : first + L], rate, Draws(seed, 1))
        for seed, first, L, rate in ((0, 0, 8, 0.1), (1, 2, 8, 0.2), (2, 0, 4, 0.1))
    ]
    recipe = Recipe(epochs=3, batch_size=3)
    return fit(build, inputs, jobs, recipe, precision=precision, training=engine)


def weights(fitted) -> torch.Tensor:
    models = [fitted.model(place) for place in range(len(fitted))]
    return torch.cat([p.detach().flatten() for model in models for p in model.parameters()])


@pytest.fixture
def lazies(monkeypatch):
    """Kernels everywhere; and which layers were made lazy."""
    made = []

    class Noted(sparse.Lazy):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(sparse, "_kernels", lambda inputs: kernels)
    monkeypatch.setattr(sparse, "Lazy", Noted)
    return made


def test_networks_trained_lazily_are_those_trained_one_by_one(lazies):
    X = points(3, 12, DENSE, 0.02)
    actual = trained(X, "stacked")
    assert len(lazies) == 2  # two sizes of labelled set, two stacks
    assert all(int(lazy.clock) == steps for lazy, steps in zip(lazies, (9, 6), strict=True))
    assert all(lazy.layer.by_rows is None for lazy in lazies)
    alone = trained(X, "one")
    torch.testing.assert_close(weights(actual), weights(alone), rtol=1e-10, atol=1e-10)
    for a, b in zip(actual.embed(X), alone.embed(X), strict=True):
        torch.testing.assert_close(a.logits, b.logits, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(a.features, b.features, rtol=1e-9, atol=1e-9)


def test_it_is_the_same_each_time_to_the_last_bit(lazies):
    X = points(3, 12, DENSE, 0.02).float()
    first, second = (weights(trained(X, "stacked", "float32")) for _ in range(2))
    assert len(lazies) == 4
    assert torch.equal(first, second)
    exact = weights(trained(X, "one", "float64"))
    torch.testing.assert_close(first.double(), exact, rtol=1e-4, atol=1e-5)


class Crossed(nn.Module):
    """Its layers are not used in the order they are listed."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.first = nn.Linear(DENSE, C), nn.Linear(DENSE, DENSE)

    def forward(self, inputs):
        return self.last(self.first(inputs))


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.ReLU(), nn.Linear(DENSE, C)),
        lambda: nn.Linear(DENSE, C, bias=False),
        Crossed,
    ],
)
def test_any_other_network_is_trained_as_ever(lazies, make):
    def build(draws: Draws) -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(draws.seed)
            return make()

    X = points(3, 12, DENSE, 0.02)
    actual, alone = (weights(trained(X, engine, build=build)) for engine in ("stacked", "one"))
    assert not lazies
    torch.testing.assert_close(actual, alone, rtol=1e-10, atol=1e-10)


def test_a_lone_layer_and_the_network_for_text_are_trained_lazily(lazies):
    X = points(3, 12, DENSE, 0.02)
    makers = (
        lambda: nn.Linear(DENSE, C),
        lambda: models.build("mlp", (DENSE,), C, Draws(0)),
    )
    for count, make in enumerate(makers, 1):
        stack = Stack([make().double()]).to(DEVICE)
        lazy = sparse.lazy_layer(stack, X, Recipe(), 5)
        assert len(lazies) == count
        assert lazy.weight_RDO is stack.entry().weight
        assert lazy.weight_RDO.shape[1] == DENSE


@pytest.mark.parametrize(
    ("share", "batch_size", "expected"), [(0.03, 8, True), (0.04, 8, False), (0.04, 6, True)]
)
def test_dense_inputs_are_given_as_they_are(lazies, share, batch_size, expected):
    X = torch.zeros(100, DENSE, dtype=torch.float64, device=DEVICE)
    X.view(-1)[: int(share * X.numel())] = 1.0
    stack = Stack([build(Draws(0)).double()]).to(DEVICE)
    lazy = sparse.lazy_layer(stack, X, Recipe(batch_size=batch_size), 5)
    assert (lazy is not None) == expected
    assert sparse.lazy_layer(stack, X.view(100, 1, DENSE), Recipe(), 5) is None


def test_a_cpu_a_low_precision_and_a_machine_without_triton_do_without(monkeypatch):
    assert sparse._kernels(torch.zeros(1)) is None

    class OnCuda:
        is_cuda, dtype = True, torch.float32

    assert sparse._kernels(OnCuda) is kernels
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
    assert sparse._kernels(OnCuda) is None
    monkeypatch.undo()
    monkeypatch.delattr(training, "sparse_kernels")
    monkeypatch.setitem(sys.modules, "askance.training.sparse_kernels", None)
    triton_kernels.cache_clear()
    try:
        assert sparse._kernels(OnCuda) is None
    finally:
        triton_kernels.cache_clear()
