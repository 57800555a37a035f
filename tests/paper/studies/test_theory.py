"""The study `theory` measures what it says, followed once more with PyTorch alone."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from askance import data
from askance.errors import InputError
from askance.paper.studies import Lab, contraction_run, lab, samples, theory_run
from askance.paper.theory import FlooredSGD, bound, rates
from askance.seeding import Draws
from tests.naive import contraction as naive
from tests.paper.studies.tiny import OPTIONS

LAB = Lab()


@pytest.fixture(scope="module")
def result():
    return theory_run.run(OPTIONS["theory"], LAB)


def test_theory_bounds_the_path_that_floored_steps_take(result):
    """Followed once more by hand, with the optimizer alone."""
    options = OPTIONS["theory"]
    (one, _) = result.floored
    digits, draws = data.load("digits"), Draws(0)
    total = len(digits.train) + len(digits.val) + len(digits.test)
    x, y = samples.draw_points(digits, total, draws)
    order = torch.from_numpy(draws.generator("held out").permutation(total))
    x, y = x.flatten(1).double()[order], y[order]
    model = lab.network("two-layer", digits, hidden=options.hidden)(draws).double()
    optimizer = FlooredSGD(model.parameters(), 0.01, 0.01, 0.9)

    def gradients(count):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[:count]), y[:count])
        loss.backward()
        return loss

    norms = []
    for _ in range(options.floored_steps):
        norms.append(naive.discrepancy(model, x[:60], y[:60], torch.arange(30)))
        optimizer.step(lambda: gradients(60), lambda: gradients(30))
    wrong = (model(x).argmax(dim=1) != y).double()
    risk = float(wrong[30:60].mean())
    terms = bound(risk, norms, gamma=0.01, epsilon=0.01, n=60, m=30, d=one.d, delta=0.1, eta=1.0)
    assert one.d == 64 * 6 + 6 + 6 * 10 + 10
    expected = terms.empirical, terms.confidence, terms.discrepancy
    assert one.terms == pytest.approx(expected, rel=1e-5)
    assert (one.risk, one.held_out) == pytest.approx((risk, float(wrong[60:].mean())), rel=1e-5)
    assert one.loss[0] > one.loss[1]


def test_theory_follows_each_walk_to_a_small_gradient(result):
    options = OPTIONS["theory"]
    assert [(one.walk, one.seed) for one in result.walks] == [
        (walk, seed) for walk in options.walks for seed in (0, 1)
    ]
    for one in result.walks:
        assert one.gradients[0] <= options.end_gradient
        assert 0 < one.steps < options.end_steps
        assert one.best.rho <= one.whole.rho
        assert one.best.first <= options.indices - theory_run.LEFT
        assert one.whole.observed <= one.whole.rho * (1 + 1e-4)
        assert len(one.rhos) == len(contraction_run.kept_epochs(options.indices)) - 1


def test_theory_measures_distance_and_discrepancy_along_the_path():
    """One plain walk of full batches, followed once more with PyTorch alone."""
    walk = theory_run.Walk("sgd", None, 0.1)
    options = replace(OPTIONS["theory"], walks=(walk,), draws=1, indices=12)
    (one,) = theory_run.run(options, LAB).walks
    digits, draws = data.load("digits"), Draws(0)
    x, y = samples.draw_points(digits, 40, draws)
    x = x.flatten(1).double()
    subset = torch.from_numpy(draws.generator("S_J").choice(40, 20, replace=False))
    model = lab.network("two-layer", digits, hidden=6)(draws).double()
    orders = torch.arange(40).expand(12, 40)
    at, norms = [], []
    for trained in naive.path(model, x, y, torch.arange(40), orders, "sgd", 0.1, None):
        at.append(torch.cat([p.detach().flatten() for p in trained.parameters()]))
        norms.append(naive.discrepancy(trained, x, y, subset))
    momentum = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(one.steps):
        momentum.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        momentum.step()
    end = torch.cat([p.detach().flatten() for p in model.parameters()])
    distances = [float((each - end).norm()) for each in at]
    assert one.distances == pytest.approx((distances[0], distances[-1]), rel=1e-4)
    (first, *_) = rates(distances, norms)
    assert (one.whole.q, one.whole.rho) == pytest.approx((first.q, first.rho), rel=1e-4)


def test_theory_wants_walks_that_are_not_there_yet():
    options = replace(OPTIONS["theory"], end_gradient=1e3, draws=1)
    with pytest.raises(InputError, match="ends at θ\\* itself: give it fewer indices"):
        theory_run.run(options, LAB)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bound_points": 1797}, "bound_points must be from 2 to 1796"),
        ({"indices": 11}, "more than 11 indices, got 11"),
    ],
)
def test_what_cannot_be_measured_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        theory_run.run(replace(OPTIONS["theory"], **changes), LAB)
