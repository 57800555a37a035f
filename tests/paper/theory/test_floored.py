"""The optimizer takes the steps of Algorithm 1."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import InputError
from askance.paper.theory import FlooredSGD
from tests.naive import theory as naive

number = st.floats(-5, 5)


def quadratic(matrix, target):
    """½ wᵀ diag(m) w − targetᵀ w, whose gradient is m ∘ w − target."""
    return lambda w: (0.5 * matrix * w * w - target * w).sum()


def follow(optimizer, weights, whole, prior, steps):
    """The weights after every step, for two losses of the weights."""

    def closure(loss):
        def evaluate():
            optimizer.zero_grad()
            value = loss(*weights)
            value.backward()
            return value

        return evaluate

    path = []
    for _ in range(steps):
        optimizer.step(closure(whole), closure(prior))
        path.append([w.detach().clone() for w in weights])
    return path


@given(
    start=st.lists(st.integers(-5, 5), min_size=1, max_size=4),
    slopes=st.tuples(st.sampled_from([0.25, 0.5, 1.0]), st.sampled_from([0.25, 0.5, 1.0])),
    targets=st.tuples(st.integers(-5, 5), st.integers(-5, 5)),
    precision=st.sampled_from([2.0**-10, 0.0625, 0.5, 8.0]),
    momentum=st.sampled_from([0.0, 0.5]),
)
def test_the_path_is_that_of_the_algorithm(start, slopes, targets, precision, momentum):
    """In numbers that float64 computes with exactly, so that both floor alike."""
    weight = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer = FlooredSGD([weight], lr=0.125, precision=precision, momentum=momentum)
    losses = [quadratic(slope, target) for slope, target in zip(slopes, targets, strict=True)]
    fast = follow(optimizer, [weight], *losses, steps=5)
    gradients = [
        lambda w, s=slope, t=target: [s * x - t for x in w]
        for slope, target in zip(slopes, targets, strict=True)
    ]
    slow = naive.floored_path(start, *gradients, 5, 0.125, precision, momentum)
    assert [seen.tolist() for (seen,) in fast] == slow[1:]


def test_a_fine_precision_is_gradient_descent_on_all_of_s():
    plain, floored = (
        torch.tensor([3.0, -2.0], dtype=torch.float64, requires_grad=True) for _ in "ab"
    )
    sgd = torch.optim.SGD([plain], lr=0.1, momentum=0.9)
    optimizer = FlooredSGD([floored], lr=0.1, precision=1e-12, momentum=0.9)
    whole, prior = quadratic(1.0, 1.0), quadratic(0.5, -1.0)
    path = follow(optimizer, [floored], whole, prior, steps=20)
    for (seen,) in path:
        sgd.zero_grad()
        whole(plain).backward()
        sgd.step()
        torch.testing.assert_close(seen, plain.detach(), rtol=0, atol=1e-9)


def test_a_coarse_precision_is_gradient_descent_on_the_prior_alone():
    weight = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    optimizer = FlooredSGD([weight], lr=0.1, precision=100.0)
    path = follow(optimizer, [weight], quadratic(1.0, 50.0), quadratic(1.0, 0.0), steps=3)
    assert [w.item() for (w,) in path] == pytest.approx([2.7, 2.43, 2.187])


def test_flooring_is_towards_zero():
    for target, moved in ((0.25, 0.2), (-0.25, -0.2)):
        weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimizer = FlooredSGD([weight], lr=1.0, precision=0.1)
        follow(optimizer, [weight], quadratic(0.0, target), quadratic(0.0, 0.0), steps=1)
        assert weight.item() == pytest.approx(moved)


def test_groups_have_options_of_their_own_and_idle_weights_stay():
    a, b, idle = (torch.ones(2, requires_grad=True) for _ in range(3))
    optimizer = FlooredSGD(
        [{"params": [a]}, {"params": [b], "lr": 0.5}, {"params": [idle]}], lr=0.1, precision=1e-6
    )
    losses = [lambda a, b, idle: (a + b).sum()] * 2
    follow(optimizer, [a, b, idle], *losses, steps=1)
    assert (a[0].item(), b[0].item(), idle[0].item()) == pytest.approx((0.9, 0.5, 1.0))


def test_the_state_can_be_kept():
    def start():
        weight = torch.tensor([3.0], requires_grad=True)
        return weight, FlooredSGD([weight], lr=0.1, precision=0.01, momentum=0.9)

    losses = quadratic(1.0, 1.0), quadratic(1.0, 0.5)
    weight, optimizer = start()
    follow(optimizer, [weight], *losses, steps=2)
    other, resumed = start()
    other.data.copy_(weight.data)
    resumed.load_state_dict(optimizer.state_dict())
    expected = follow(optimizer, [weight], *losses, steps=2)
    assert torch.equal(follow(resumed, [other], *losses, steps=2)[-1][0], expected[-1][0])


def test_what_is_wrong_is_said():
    weight = torch.ones(1, requires_grad=True)
    for changes, message in (
        ({"lr": 0.0}, "lr must be above 0"),
        ({"precision": -1.0}, "precision must be above 0"),
        ({"momentum": 1.0}, "momentum must be in"),
    ):
        with pytest.raises(InputError, match=message):
            FlooredSGD([weight], **({"lr": 0.1, "precision": 0.1} | changes))
    optimizer = FlooredSGD([weight], lr=0.1, precision=0.1)
    with pytest.raises(InputError, match="two closures"):
        optimizer.step(lambda: 0.0)
    empty = torch.empty(0)
    with pytest.raises(InputError, match="does every mini-batch hold a point of S_J"):
        follow(optimizer, [weight], lambda w: w.sum(), lambda w: (w * empty).mean(), steps=1)
    with pytest.raises(InputError, match="must return its mean loss, a number; got None"):
        optimizer.step(lambda: 0.0, lambda: None)
    assert weight.item() == 1.0
