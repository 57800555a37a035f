"""Images published as arrays of bytes: CIFAR-10, STL-10, MNIST, Fashion-MNIST, SVHN and digits.

Shapes: N images; H and W pixels; C channels.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askance.data.archives import GIB, damaged, gunzipped, members_named
from askance.data.record import Rows, SourceSplits
from askance.errors import DataError
from askance.images import SIDE, resized

_UNSIGNED_BYTE = 0x08
_MOST_IMAGES = 1_000_000  # the header of a .mat file is believed only up to this


def cifar10(classes: Sequence[str], archive: Path) -> SourceSplits:
    """Records of a label byte and 3,072 bytes of planes R, G, B; five batches and one for testing."""
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    record = 1 + 3 * 32 * 32
    batches = members_named(archive, names, limit=GIB)
    for batch in batches:
        if len(batch) % record:
            raise DataError(
                f"{archive.name}: a batch of {len(batch):,} bytes is not whole records of {record:,}"
            )

    def rows(data: bytes) -> Rows:
        records = np.frombuffer(data, dtype=np.uint8).reshape(-1, record)
        images_NHWC = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        images = np.ascontiguousarray(images_NHWC)
        return Rows.of(images, records[:, 0], classes=len(classes), where=archive.name)

    return SourceSplits(rows(b"".join(batches[:-1])), rows(batches[-1]))


def stl10(classes: Sequence[str], archive: Path) -> SourceSplits:
    """Images of 96×96 as planes R, G, B, each column by column; labels 1 to 10.

    The unlabelled images, 2.6 GB of the archive, are passed over.
    """
    names = ["train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin"]
    size = 3 * 96 * 96

    def rows(data: bytes, labels: bytes) -> Rows:
        if len(data) != size * len(labels):
            raise DataError(
                f"{archive.name}: {len(data):,} bytes of images for {len(labels):,} labels; "
                f"an image is {size:,} bytes"
            )
        planes = np.frombuffer(data, dtype=np.uint8).reshape(-1, 3, 96, 96)
        images = resized(np.ascontiguousarray(planes.transpose(0, 3, 2, 1)), SIDE)
        labels_N = np.frombuffer(labels, dtype=np.uint8).astype(np.int64) - 1
        return Rows.of(images, labels_N, classes=len(classes), where=archive.name)

    members = members_named(archive, names, limit=4 * GIB)
    return SourceSplits(rows(*members[:2]), rows(*members[2:]))


def mnist(
    classes: Sequence[str], train: Path, train_labels: Path, test: Path, test_labels: Path
) -> SourceSplits:
    """Gzipped idx files: a magic number, the sizes, then the bytes."""

    def rows(images: Path, labels: Path) -> Rows:
        images_NHW, labels_N = _idx_array(images, 3), _idx_array(labels, 1)
        if images_NHW.shape[1:] != (28, 28):
            raise DataError(f"{images.name}: images must be 28×28, got {images_NHW.shape[1:]}")
        return Rows.of(images_NHW, labels_N, classes=len(classes), where=labels.name)

    return SourceSplits(rows(train, train_labels), rows(test, test_labels))


def _idx_array(path: Path, dimensions: int) -> NDArray[np.uint8]:
    data = gunzipped(path, limit=GIB // 4)
    header = 4 + 4 * dimensions
    if data[:4] != bytes((0, 0, _UNSIGNED_BYTE, dimensions)) or len(data) < header:
        raise DataError(f"{path.name}: not an idx file of bytes in {dimensions} dimensions")
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    if len(data) - header != math.prod(shape):
        raise DataError(f"{path.name}: {len(data) - header:,} bytes of data for a shape of {shape}")
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(shape)


def svhn(classes: Sequence[str], train: Path, test: Path) -> SourceSplits:
    """MATLAB files of X (32, 32, 3, N) and y (N, 1); the label of the digit 0 is 10 in them."""

    def rows(path: Path) -> Rows:
        images, labels_N = _mat_arrays(path)
        if images.dtype != np.uint8 or labels_N.dtype.kind not in "iuf":
            raise DataError(
                f"{path.name}: X must be bytes and y numbers, got {images.dtype} and {labels_N.dtype}"
            )
        if labels_N.min() < 1 or labels_N.max() > 10:
            raise DataError(
                f"{path.name}: labels must be 1 to 10, found {labels_N.min()} to {labels_N.max()}"
            )
        images_NHWC = np.ascontiguousarray(images.transpose(3, 0, 1, 2))
        return Rows.of(images_NHWC, labels_N % 10, classes=len(classes), where=path.name)

    return SourceSplits(rows(train), rows(test))


def _mat_arrays(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """X and the flat y of a MATLAB file, whose shapes are checked before anything is unpacked."""
    from scipy.io import loadmat, whosmat

    try:
        shapes = {name: shape for name, shape, _ in whosmat(path)}
        if not {"X", "y"} <= shapes.keys():
            raise DataError(f"{path.name}: expected variables X and y, found {sorted(shapes)}")
        count = shapes["X"][3] if len(shapes["X"]) == 4 else 0
        if shapes["X"][:3] != (32, 32, 3) or not 0 < count <= _MOST_IMAGES:
            raise DataError(f"{path.name}: X must be (32, 32, 3, N), got {shapes['X']}")
        if sorted(shapes["y"]) != sorted((count, 1)):
            raise DataError(f"{path.name}: {shapes['y']} labels for {count} images")
        content = loadmat(path, variable_names=["X", "y"])
    except DataError:
        raise
    # SciPy raises whatever its reader met first in a damaged file, KeyError and IndexError among them.
    except Exception as error:
        raise damaged(path, error) from error
    return np.asarray(content["X"]), np.asarray(content["y"]).ravel()


def digits(classes: Sequence[str]) -> SourceSplits:
    """Handwritten digits of 8×8 pixels in 17 gray levels, which come inside scikit-learn."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images_NHW = bunch.images.astype(np.uint8)
    return SourceSplits(Rows.of(images_NHW, bunch.target, classes=len(classes), where="digits"))
