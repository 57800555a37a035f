"""CIFAR-10, from the binary archive: records of one label byte and 3,072 bytes of planes R, G, B."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askance.data.archives import GIB, base_name, needed, tar_members
from askance.data.columns import images
from askance.data.encode import pixels
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.errors import DataError

CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
_ARCHIVE = "cifar-10-binary.tar.gz"
_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_TEST = ("test_batch.bin",)
_RECORD = 1 + 3 * 32 * 32


def parse(paths: Mapping[str, Path]) -> Parts:
    path = paths[_ARCHIVE]
    wanted = {*_TRAIN, *_TEST}
    found = {
        base_name(name): data
        for name, data in tar_members(path, lambda name: base_name(name) in wanted, limit=GIB)
    }
    train = b"".join(_batch(data, path) for data in needed(found, _TRAIN, path))
    test = b"".join(_batch(data, path) for data in needed(found, _TEST, path))
    return Parts(_rows(train, path), _rows(test, path))


def _batch(data: bytes, path: Path) -> bytes:
    if len(data) % _RECORD:
        raise DataError(
            f"{path.name}: a batch of {len(data):,} bytes is not whole records of {_RECORD:,}"
        )
    return data


def _rows(data: bytes, path: Path) -> Rows:
    records = np.frombuffer(data, dtype=np.uint8).reshape(-1, _RECORD)
    planes: NDArray[np.uint8] = records[:, 1:].reshape(-1, 3, 32, 32)
    pictures = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
    return Rows.of(pictures, records[:, 0], classes=len(CLASSES), where=path.name)


ENTRY = Entry(
    name="cifar10",
    kind="image",
    classes=CLASSES,
    official=(50_000, 10_000),
    licence="research use with citation; no licence stated by the owners",
    citation="A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    parse=parse,
    encode=pixels,
    files=(
        Remote(
            _ARCHIVE,
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "md5:c32a1d4ab5d03f1284b67883e8d87530",
        ),
    ),
    checksums="the homepage's download table",
    compact=Compact(images),
    pool=25_000,
    noun="images",
)
