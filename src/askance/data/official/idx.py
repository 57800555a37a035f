"""MNIST and Fashion-MNIST: gzipped idx files, a magic number, the sizes, then the bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askance.data.archives import gunzipped
from askance.data.columns import fixed
from askance.data.encode import flat_pixels, pixels
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.errors import DataError

_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_UNSIGNED_BYTE = 0x08
_LIMIT = 256 * 2**20


def parse(paths: Mapping[str, Path]) -> Parts:
    train, train_labels, test, test_labels = (paths[name] for name in _FILES)
    return Parts(_rows(train, train_labels), _rows(test, test_labels))


def _rows(images: Path, labels: Path) -> Rows:
    pictures, known = _array(images, 3), _array(labels, 1)
    if pictures.shape[1:] != (28, 28):
        raise DataError(f"{images.name}: images must be 28×28, got {pictures.shape[1:]}")
    return Rows.of(pictures, known, classes=10, where=labels.name)


def _array(path: Path, dimensions: int) -> NDArray[np.uint8]:
    data = gunzipped(path, limit=_LIMIT)
    header = 4 + 4 * dimensions
    if data[:4] != bytes((0, 0, _UNSIGNED_BYTE, dimensions)) or len(data) < header:
        raise DataError(f"{path.name}: not an idx file of bytes in {dimensions} dimensions")
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    if len(data) - header != math.prod(shape):
        raise DataError(f"{path.name}: {len(data) - header:,} bytes of data for a shape of {shape}")
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(shape)


_COMPACT = Compact(lambda table, where: fixed(table, "image", where, np.dtype(np.uint8), (28, 28)))

_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"

# The owner's page no longer serves the files; torchvision's copy holds the same bytes.
MNIST = Entry(
    name="mnist",
    kind="image",
    classes=tuple("0123456789"),
    official=(60_000, 10_000),
    licence="CC BY-SA 3.0",
    citation="Y. LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998",
    homepage="http://yann.lecun.com/exdb/mnist/",
    parse=parse,
    encode=flat_pixels,
    files=tuple(
        Remote(file, f"{_MNIST}/{file}", f"md5:{md5}")
        for file, md5 in zip(
            _FILES,
            (
                "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                "d53e105ee54ea40749a09fcbcd1e9432",
                "9fb629c4189551a2d022fa330f9573f3",
                "ec29112dd5afa0611ce80d1b7f02629c",
            ),
            strict=True,
        )
    ),
    checksums="torchvision/datasets/mnist.py",
    compact=_COMPACT,
    pool=3_000,
    noun="images",
)

FASHION_MNIST = Entry(
    name="fashion-mnist",
    kind="image",
    classes=(
        "T-shirt/top",
        "trouser",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle boot",
    ),
    official=(60_000, 10_000),
    licence="MIT",
    citation="H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST, arXiv:1708.07747, 2017",
    homepage="https://github.com/zalandoresearch/fashion-mnist",
    parse=parse,
    encode=pixels,
    files=tuple(
        Remote(file, f"{_FASHION}/{file}", f"md5:{md5}")
        for file, md5 in zip(
            _FILES,
            (
                "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "25c81989df183df01b3e8a0aad5dffbe",
                "bef4ecab320f06d8554ea6380940ec79",
                "bb300cfdad3c16e7a12a480ee83cd310",
            ),
            strict=True,
        )
    ),
    checksums="the homepage's README",
    compact=_COMPACT,
    noun="images",
)
