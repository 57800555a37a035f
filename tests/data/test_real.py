"""The real data, where ASKANCE_DATA names a folder that holds it."""

from __future__ import annotations

import os

import numpy as np
import pytest

from askance import data

pytestmark = pytest.mark.skipif(
    not os.environ.get("ASKANCE_DATA"),
    reason="REAL DATA NOT TESTED: set ASKANCE_DATA to a folder with the compact copies",
)

# pool, validation, test, classes, shape of an input
SIZES = {
    "20newsgroups": (10_183, 1_131, 7_532, 20, (10_000,)),
    "isolet": (5_615, 623, 1_559, 26, (617,)),
    "pokerhand": (660_861, 2_500, 165_840, 10, (10,)),
    "cifar10": (25_000, 2_500, 10_000, 10, (3, 32, 32)),
    "svhn": (25_000, 2_500, 10_000, 10, (3, 32, 32)),
    "stl10": (4_500, 500, 8_000, 10, (3, 32, 32)),
    "gtsrb": (10_800, 1_200, 4_000, 43, (3, 32, 32)),
    "mnist": (3_000, 1_200, 2_000, 10, (784,)),
    "german": (720, 80, 200, 2, (24,)),
    "banking77": (9_003, 1_000, 3_080, 77, (2_023,)),
    "clinc150": (15_000, 3_000, 4_500, 150, (4_802,)),
    "trec": (4_907, 545, 500, 6, (7_663,)),
    "sst2": (6_920, 872, 1_821, 2, (10_000,)),
    "pets": (3_312, 368, 3_669, 37, (3, 32, 32)),
}
SUBSET = {
    "20newsgroups": None,
    "isolet": None,
    "pokerhand": None,
    "cifar10": "27,500 of 50,000 official training images",
    "svhn": (
        "re-cropped, 27,500 of 73,257 official training images, 10,000 of 26,032 official test images"
    ),
    "stl10": None,
    "gtsrb": "12,000 of 39,209 official training images, 4,000 of 12,630 official test images",
    "mnist": "12,000 of 60,000 official training images, 2,000 of 10,000 official test images",
    "german": None,
    "banking77": None,
    "clinc150": None,
    "trec": None,
    "sst2": None,
    "pets": "centre squares at 160×160, lossy WebP",
}
QUICK = ("isolet", "pokerhand", "german", "mnist", "stl10", "trec", "banking77")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SIZES]
)
def test_real_data(name):
    if data.describe(name).available is None:
        pytest.skip(f"REAL DATA NOT TESTED: no {name} in ASKANCE_DATA")
    dataset = data.load(name, download=False)
    *sizes, classes, shape = SIZES[name]
    assert [len(dataset.train), len(dataset.val), len(dataset.test)] == sizes
    assert (len(dataset.classes), dataset.train.inputs.shape[1:]) == (classes, shape)
    assert dataset.subset == SUBSET[name]
    assert dataset.source.startswith("local file")
    assert not set(dataset.train.index) & set(dataset.val.index)
    train, val = (
        np.bincount(s.labels, minlength=classes) / len(s) for s in (dataset.train, dataset.val)
    )
    # The pool is what validation leaves, so its shares are the source's; MNIST's is a sample of it.
    np.testing.assert_allclose(train, val, atol=0.03 if name == "mnist" else 2 / len(dataset.val))
    if dataset.kind == "image":
        assert (dataset.test.inputs.min(), dataset.test.inputs.max()) == (-1, 1)
