"""Networks trained side by side, on fewer columns, are the networks of the plain loop."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import UnknownError
from askance.paper.studies import lab
from askance.paper.studies.paths import (
    OPTIMISERS,
    ROTATABLE,
    PreparedPoints,
    TwoLayers,
    narrowed,
    subset_weights,
    train,
    weights_of,
)
from tests.naive import contraction as naive

CLASSES, HIDDEN = 3, 5


def problem(seed, points, columns, share_of_zeros=0.0):
    """x, y and a network in float64."""
    torch.manual_seed(seed)
    x = torch.randn(points, columns, dtype=torch.float64)
    x[torch.rand(x.shape) < share_of_zeros] = 0
    return x, torch.randint(CLASSES, (points,)), lab.two_layer((columns,), CLASSES, HIDDEN).double()


@given(
    seed=st.integers(0, 10**6),
    points=st.integers(4, 12),
    columns=st.integers(2, 20),
    zeros=st.sampled_from([0.0, 0.95]),
)
def test_discrepancies_are_those_of_autograd(seed, points, columns, zeros):
    x, y, model = problem(seed, points, columns, zeros)
    subsets = [torch.randperm(points)[:count] for count in (1, points // 2, points - 1)]
    fast = PreparedPoints(x, y).discrepancies(weights_of(model), subset_weights(points, subsets))
    for row, subset in zip(fast, subsets, strict=True):
        for norm, last_layer in zip(row, (False, True), strict=True):
            slow = naive.discrepancy(model, x, y, subset, last_layer)
            assert float(norm) == pytest.approx(slow, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("batch", [4, None])
@pytest.mark.parametrize("trained_on", ["S", "S_J"])
def test_paths_are_those_of_the_plain_loop(optimiser, batch, trained_on):
    """Of 30 columns, 12 are always zero; the 18 that are left are more than the 10 points."""
    points, epochs, rate = 10, 6, 0.05
    problems = [problem(seed, points, 30, 0.3) for seed in (1, 2)]
    rows = torch.arange(points) if trained_on == "S" else torch.tensor([0, 3, 4, 7, 9])
    orders = [torch.stack([torch.randperm(len(rows)) for _ in range(epochs)]) for _ in problems]
    inputs, starts = [], []
    for x, _, model in problems:
        x[:, 5:17] = 0
        kept = x.ne(0).any(dim=0)
        first, *others = weights_of(copy.deepcopy(model))
        one, start = x[:, kept], [first[:, kept], *others]
        assert one.shape[1] == 18
        if optimiser in ROTATABLE:
            one, start = narrowed(one, start)
            assert one.shape == (points, points)
        inputs.append(one)
        starts.append(start)
    networks = TwoLayers(starts)
    labels = torch.stack([y for _, y, _ in problems])
    slow = [
        naive.path(model, x, y, rows, order, optimiser, rate, batch)
        for (x, y, model), order in zip(problems, orders, strict=True)
    ]
    w_JL = subset_weights(points, [torch.arange(3)])
    fast = train(
        networks, torch.stack(inputs)[:, rows], labels[:, rows], torch.stack(orders),
        optimiser=optimiser, learning_rate=rate, batch=batch,
    )  # fmt: skip
    for epoch in fast:
        assert 1 <= epoch <= epochs
        for r, (path, (x, y, _)) in enumerate(zip(slow, problems, strict=True)):
            model = next(path)
            norms = PreparedPoints(inputs[r], y).discrepancies(networks.one(r), w_JL)[0]
            for norm, last_layer in zip(norms, (False, True), strict=True):
                expected = naive.discrepancy(model, x, y, torch.arange(3), last_layer)
                assert float(norm) == pytest.approx(expected, rel=1e-8)
            loss = torch.nn.functional.cross_entropy(model(x), y).item()
            assert PreparedPoints(inputs[r], y).loss(networks.one(r)) == pytest.approx(
                loss, rel=1e-9
            )
    assert epoch == epochs


def test_adam_depends_on_the_columns():
    """So it is not among those whose inputs may be turned."""
    assert set(ROTATABLE) == {"momentum", "sgd"}
    x, y, model = problem(0, 6, 15)
    turned, start = narrowed(x, weights_of(model))
    order = torch.arange(6).expand(1, 3, 6)
    losses = []
    for inputs, weights in ((x, weights_of(copy.deepcopy(model))), (turned, start)):
        networks = TwoLayers([weights])
        for _ in train(
            networks, inputs[None], y[None], order, optimiser="adam", learning_rate=0.1, batch=None
        ):
            pass
        losses.append(PreparedPoints(inputs, y).loss(networks.one(0)))
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)


def test_an_unknown_optimiser_is_told_the_known_ones():
    x, y, model = problem(0, 4, 3)
    order = torch.zeros(1, 1, 4).long()
    path = train(
        TwoLayers([weights_of(model)]), x[None], y[None], order,
        optimiser="adamw", learning_rate=0.1, batch=None,
    )  # fmt: skip
    with pytest.raises(UnknownError, match=r"unknown optimiser 'adamw'.*did you mean 'adam'"):
        next(path)
