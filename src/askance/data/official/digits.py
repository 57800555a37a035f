"""Handwritten digits of 8×8 pixels in 17 gray levels, which come inside scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from askance.data.encode import sixteenths
from askance.data.entry import Entry, Parts, Rows


def parse(paths: Mapping[str, Path]) -> Parts:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = digits.images.astype(np.uint8)
    return Parts(Rows.of(images, digits.target, classes=10, where="digits"))


ENTRY = Entry(
    name="digits",
    kind="image",
    classes=tuple("0123456789"),
    official=(1_797, 0),
    licence="CC BY 4.0",
    citation="E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998",
    homepage="https://archive.ics.uci.edu/dataset/80",
    parse=parse,
    encode=sixteenths,
    checksums="comes with scikit-learn",
    noun="images",
)
