"""`strata` against its naive twin."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import askance
from askance import Embedding
from askance.seeding import Draws
from tests.naive import clusters as naive

SEEDS = st.integers(0, 2**32 - 1)


def pool_of(classes, count=4):
    """Points whose predicted classes are these."""
    return Embedding(3.0 * torch.eye(count)[torch.as_tensor(classes)])


def known(labels, count=4):
    return Embedding(torch.zeros(len(labels), count)), labels


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=30),
    st.lists(st.integers(0, 3), min_size=1, max_size=9),
    SEEDS,
    st.data(),
)
def test_picks_are_those_of_the_twin(classes, labels, seed, data):
    n = data.draw(st.integers(1, len(classes)))
    picks = askance.select(None, known(labels), pool_of(classes), n, strategy="strata", seed=seed)
    keys = Draws(seed).uniform("strata", range(len(classes))).tolist()
    counts = np.bincount(labels, minlength=4).tolist()
    assert picks.indices.tolist() == naive.fill_up(classes, counts, keys, n)


def test_a_rare_class_gets_as_many_labels_as_the_others():
    """97 in 100 points are of one class, and 5 labels as well."""
    classes = np.array([0] * 970 + [1] * 10 + [2] * 10 + [3] * 10)
    picks = askance.select(None, known([0] * 5), pool_of(classes), 15, strategy="strata")
    assert np.bincount(classes[picks.indices]).tolist() == [0, 5, 5, 5]
    assert picks.scores.tolist() == [-0.0] * 3 + [-1.0] * 3 + [-2.0] * 3 + [-3.0] * 3 + [-4.0] * 3


def test_within_a_class_chance_decides():
    classes, counts = [0] * 8 + [1] * 4, np.zeros(12)
    for seed in range(800):
        picks = askance.select(
            None, known([2, 3]), pool_of(classes), 4, strategy="strata", seed=seed
        )
        counts[picks.indices] += 1
    assert counts[:8].sum() == counts[8:].sum() == 1_600
    assert chisquare(counts[:8]).pvalue > 1e-3
    assert chisquare(counts[8:]).pvalue > 1e-3


def test_under_a_quota_a_class_that_is_full_gives_no_more():
    classes = np.array([0] * 20 + [1] * 20)
    options = {"groups": classes, "at_most": {0: 2, 1: 20}}
    picks = askance.select(None, known([0]), pool_of(classes), 8, strategy="strata", **options)
    assert np.bincount(classes[picks.indices]).tolist() == [2, 6]
