"""q, μ_Δ, L_Δ and ρ along a path, and what the proposition says of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import InputError
from askance.paper.theory import rates
from tests.naive import theory as naive

size = st.floats(1e-3, 1e3)


@given(st.lists(st.tuples(size, size), min_size=2, max_size=20))
def test_the_constants_are_those_of_the_definition(path):
    far, df = map(list, zip(*path, strict=True))
    found = rates(far, df)
    assert [one.first for one in found] == list(range(1, len(path)))
    for one in found:
        q, mu, smoothness = naive.rate(far, df, one.first)
        assert (one.q, one.mu, one.smoothness) == pytest.approx((q, mu, smoothness))
        assert one.rho == pytest.approx(smoothness * q / mu)
        assert one.holds == (one.q < 1 and one.rho < 1)


@given(st.lists(st.tuples(size, size), min_size=2, max_size=20))
def test_rho_bounds_every_step_as_the_proposition_says(path):
    far, df = map(list, zip(*path, strict=True))
    for one in rates(far, df):
        steps = [df[t + 1] / df[t] for t in range(one.first - 1, len(df) - 1)]
        assert one.observed == pytest.approx(max(steps))
        assert one.observed <= one.rho * (1 + 1e-9)


def test_it_holds_where_the_discrepancy_is_in_step_with_the_distance():
    far = 0.5 ** np.arange(10)
    (first, *_) = rates(far, 3 * far)
    assert (first.q, first.mu, first.smoothness, first.rho) == (0.5, 3, 3, 0.5)
    assert first.holds


def test_it_does_not_hold_where_the_discrepancy_stays():
    """With no common stationary point the discrepancy does not vanish at θ*."""
    far = 0.5 ** np.arange(10)
    assert not any(one.holds for one in rates(far, np.ones(10)))


def test_what_is_no_path_is_refused():
    with pytest.raises(InputError, match="as many distances as discrepancies"):
        rates([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match="at least two of each"):
        rates([1.0], [1.0])
    with pytest.raises(InputError, match="let the path end before it is at θ"):
        rates([1.0, 0.0], [1.0, 1.0])
