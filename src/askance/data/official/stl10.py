"""STL-10: bytes of 96×96 images, planes R, G, B, each plane column by column; labels 1 to 10."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from askance.data.archives import GIB, base_name, needed, tar_members
from askance.data.columns import images
from askance.data.encode import pixels
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.data.images import SIDE, resized
from askance.errors import DataError

_ARCHIVE = "stl10_binary.tar.gz"
_FILES = ("train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin")
_IMAGE = 3 * 96 * 96


def parse(paths: Mapping[str, Path]) -> Parts:
    path = paths[_ARCHIVE]
    # The unlabelled images, 2.6 GB of the archive, are passed over.
    members = tar_members(path, lambda name: base_name(name) in _FILES, limit=4 * GIB)
    found = {base_name(name): data for name, data in members}
    train, train_labels, test, test_labels = needed(found, _FILES, path)
    return Parts(_rows(train, train_labels, path), _rows(test, test_labels, path))


def _rows(data: bytes, labels: bytes, path: Path) -> Rows:
    if len(data) % _IMAGE or len(data) // _IMAGE != len(labels):
        raise DataError(
            f"{path.name}: {len(data):,} bytes of images for {len(labels):,} labels; "
            f"an image is {_IMAGE:,} bytes"
        )
    planes = np.frombuffer(data, dtype=np.uint8).reshape(-1, 3, 96, 96)
    pictures = resized(np.ascontiguousarray(planes.transpose(0, 3, 2, 1)), SIDE)
    known = np.frombuffer(labels, dtype=np.uint8).astype(np.int64) - 1
    return Rows.of(pictures, known, classes=10, where=path.name)


ENTRY = Entry(
    name="stl10",
    kind="image",
    classes=(
        "airplane",
        "bird",
        "car",
        "cat",
        "deer",
        "dog",
        "horse",
        "monkey",
        "ship",
        "truck",
    ),
    official=(5_000, 8_000),
    licence="research use with citation; images are ImageNet's",
    citation="A. Coates, H. Lee, A. Y. Ng, An Analysis of Single-Layer Networks, AISTATS 2011",
    homepage="https://cs.stanford.edu/~acoates/stl10/",
    parse=parse,
    encode=pixels,
    files=(
        Remote(
            _ARCHIVE,
            "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
            "md5:91f7769df0f17e558f3565bffb0c7dfb",
        ),
    ),
    # The homepage gives none.
    checksums="torchvision/datasets/stl10.py",
    compact=Compact(images),
    noun="images",
)
