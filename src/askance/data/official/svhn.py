"""Street View House Numbers, cropped digits: MATLAB files of X (32, 32, 3, N) and y (N, 1).

The label of the digit 0 is 10 in the files and 0 here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from askance.data.archives import damaged
from askance.data.columns import images
from askance.data.encode import pixels
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.errors import DataError

_TRAIN, _TEST = "train_32x32.mat", "test_32x32.mat"
_MOST = 1_000_000  # images; the header is believed only up to this


def parse(paths: Mapping[str, Path]) -> Parts:
    return Parts(_rows(paths[_TRAIN]), _rows(paths[_TEST]))


def _rows(path: Path) -> Rows:
    from scipy.io import loadmat, whosmat

    try:
        shapes = {name: shape for name, shape, _ in whosmat(path)}
        _check_shapes(shapes, path)
        content = loadmat(path, variable_names=["X", "y"])
    except DataError:
        raise
    # SciPy raises whatever its reader met first in a damaged file, KeyError and IndexError among them.
    except Exception as error:
        raise damaged(path, error) from error
    pictures, labels = np.asarray(content["X"]), np.asarray(content["y"]).ravel()
    if pictures.dtype != np.uint8 or labels.dtype.kind not in "iuf":
        raise DataError(
            f"{path.name}: X must be bytes and y numbers, got {pictures.dtype} and {labels.dtype}"
        )
    if labels.min() < 1 or labels.max() > 10:
        raise DataError(
            f"{path.name}: labels must be 1 to 10, found {labels.min()} to {labels.max()}"
        )
    images_NHWC = np.ascontiguousarray(pictures.transpose(3, 0, 1, 2))
    return Rows.of(images_NHWC, labels % 10, classes=10, where=path.name)


def _check_shapes(shapes: dict[str, tuple[int, ...]], path: Path) -> None:
    if not {"X", "y"} <= shapes.keys():
        raise DataError(f"{path.name}: expected variables X and y, found {sorted(shapes)}")
    pictures, labels = shapes["X"], shapes["y"]
    count = pictures[3] if len(pictures) == 4 else 0
    if pictures[:3] != (32, 32, 3) or not 0 < count <= _MOST:
        raise DataError(f"{path.name}: X must be (32, 32, 3, N), got {pictures}")
    if sorted(labels) != sorted((count, 1)):
        raise DataError(f"{path.name}: {labels} labels for {count} images")


ENTRY = Entry(
    name="svhn",
    kind="image",
    classes=tuple("0123456789"),
    official=(73_257, 26_032),
    licence="non-commercial use, with citation",
    citation="Y. Netzer et al., Reading Digits in Natural Images, NIPS workshop, 2011",
    homepage="http://ufldl.stanford.edu/housenumbers/",
    parse=parse,
    encode=pixels,
    files=(
        Remote(
            _TRAIN,
            "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
            "md5:e26dedcc434d2e4c54c9b2d4a06d8373",
        ),
        Remote(
            _TEST,
            "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
            "md5:eb5a983be6a315427106f1b164d9cef3",
        ),
    ),
    # The homepage gives none.
    checksums="torchvision/datasets/svhn.py",
    # The copies are cut anew from the full-number images; they are not the bytes of the .mat files.
    compact=Compact(images, other="re-cropped"),
    pool=25_000,
    noun="images",
)
