"""The bound is that of the equation, and says what is wrong with what it is given."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import InputError
from askance.paper.theory import bound, catoni_constant
from tests.naive import theory as naive

SIZES = {"gamma": 0.01, "epsilon": 0.02, "n": 100, "m": 50, "d": 10}
positive = st.floats(1e-3, 10)


@given(
    steps=st.lists(st.tuples(st.floats(0, 10), positive, positive), min_size=1, max_size=20),
    risk=st.floats(0, 1),
    m=st.integers(0, 99),
    d=st.integers(4, 10**6),
    delta=st.floats(0.001, 0.999),
    eta=st.floats(0.01, 10),
    source=st.sampled_from(["paper", "luo"]),
    data=st.data(),
)
def test_the_bound_is_that_of_the_equation(steps, risk, m, d, delta, eta, source, data):
    norms, gamma, epsilon = map(list, zip(*steps, strict=True))
    first = data.draw(st.none() | st.integers(1, len(steps)))
    terms = bound(
        risk, norms, gamma=gamma, epsilon=epsilon, n=100, m=m, d=d, delta=delta, eta=eta,
        first=first, source=source,
    )  # fmt: skip
    expected = naive.bound(risk, norms, gamma, epsilon, 100, m, d, delta, eta, first, source)
    assert terms.total == pytest.approx(expected, rel=1e-10)
    assert min(terms.empirical, terms.confidence, terms.discrepancy) >= 0


@given(norms=st.lists(st.floats(0, 10), min_size=1, max_size=20), ratio=positive)
def test_the_simplified_form_bounds_the_sum_of_norms_that_never_rise(norms, ratio):
    norms = sorted(norms, reverse=True)
    sizes = SIZES | {"gamma": ratio, "epsilon": 1.0}
    whole, simplified = (bound(0.1, norms, **sizes, first=first) for first in (None, 1))
    assert whole.discrepancy <= simplified.discrepancy * (1 + 1e-12)


def test_the_simplified_form_leaves_out_what_came_before():
    """So with t₀ after the first step it may be below the sum it stands for."""
    norms = [1.0, 0.1, 0.1]
    assert bound(0.1, norms, **SIZES, first=2).discrepancy < bound(0.1, norms, **SIZES).discrepancy


def test_the_paper_prints_a_lower_bound_than_was_proved():
    printed, proved = (
        bound(0.1, [0.5], **SIZES, eta=1.0, source=source).total for source in ("paper", "luo")
    )
    constant = 1 / (1 - math.exp(-1))
    assert proved - printed == pytest.approx(3 * (constant - 1) / 50)


def test_one_size_is_the_same_for_every_step():
    norms = [0.5, 0.2, 0.3]
    every = SIZES | {"gamma": [0.01] * 3, "epsilon": [0.02] * 3}
    assert bound(0.2, norms, **every) == bound(0.2, norms, **SIZES)


def test_the_constant_is_catonis():
    assert catoni_constant(1.0) == pytest.approx(1.5819767)
    assert catoni_constant(1e-12) == pytest.approx(1e12, rel=1e-6)  # 1 − e^{−η} loses no digits
    given_constant = bound(0.1, [0.5], **SIZES, eta=2.0, c_eta=3.0)
    assert given_constant.empirical == pytest.approx(2 * 3 * 0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"risk": 1.2}, "risk must be a share of errors"),
        ({"norms": []}, "one number of at least 0 for each step, got shape"),
        ({"norms": [0.1, -1.0]}, "with 1 below 0"),
        ({"norms": [0.1, float("nan")]}, "with 1 below 0 or not a number"),
        ({"gamma": [0.1] * 3}, "gamma must be above 0: one number, or one for each of 2 steps"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"m": 100}, "m = 100 of n = 100"),
        ({"delta": 1.0}, "delta must be between 0 and 1"),
        ({"eta": 0.0}, "eta must be a number above 0"),
        ({"c_eta": -1.0}, "c_eta must be a number above 0"),
        ({"d": 1}, "d · T above 3, got 2"),
        ({"first": 3}, "first must be a step from 1 to 2"),
        ({"source": "else"}, 'source must be "paper" or "luo"'),
    ],
)
def test_what_is_wrong_is_said(changes, message):
    arguments = {"risk": 0.1, "norms": [0.1, 0.2], **SIZES} | changes
    with pytest.raises(InputError, match=message):
        bound(arguments.pop("risk"), arguments.pop("norms"), **arguments)
