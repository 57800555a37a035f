"""Mean and deviation of features in parts, against those of all at once."""

from functools import reduce
from operator import add

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from askance.encoders.linear import Standardiser
from askance.encoders.moments import FeatureMoments


@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(any),
    shift=st.sampled_from([0.0, 1.0, -1e3]),
    seed=st.integers(0, 9),
)
def test_parts_of_any_size_give_the_scale_of_the_whole(sizes, shift, seed):
    draws = np.random.default_rng(seed)
    pool_ND = (draws.normal(size=(sum(sizes), 4)) + shift).astype(np.float32)
    pool_ND[:, 3] = 5.0  # a constant feature has the scale 1
    parts = np.split(pool_ND, np.cumsum(sizes)[:-1])
    moments = reduce(add, map(FeatureMoments.of, parts), FeatureMoments.none(4))
    assert moments.count == len(pool_ND)
    whole, made = Standardiser.of(pool_ND), moments.standardiser()
    np.testing.assert_allclose(made.mean, whole.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(made.scale, whole.scale, rtol=1e-9)
    assert made.scale[3] == 1


def test_of_no_rows_there_is_a_scale_that_changes_nothing():
    made = FeatureMoments.none(2).standardiser()
    np.testing.assert_array_equal(made(np.array([[1.0, -2.0]])), [[1.0, -2.0]])
