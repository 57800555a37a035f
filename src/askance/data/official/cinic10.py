"""CINIC-10: a tar of 32×32 PNG images in folders <split>/<class>; train and valid are one source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np

from askance.data.archives import GIB, tar_members
from askance.data.columns import images as image_column
from askance.data.encode import pixels
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.data.images import SIDE, decode_image
from askance.data.official.cifar10 import CLASSES
from askance.errors import DataError

_ARCHIVE = "CINIC-10.tar.gz"
_SPLITS = ("train", "valid", "test")


def parse(paths: Mapping[str, Path]) -> Parts:
    path = paths[_ARCHIVE]
    images: dict[str, dict[str, np.ndarray]] = {split: {} for split in _SPLITS}
    for name, data in tar_members(path, lambda name: name.endswith(".png"), limit=4 * GIB):
        split, label, _ = _place(name, path)
        # Decoded at once: 270,000 images are 830 MB as bytes of pixels.
        images[split][f"{split}/{label}/{name}"] = decode_image(data, name, most=SIDE * SIDE)
    empty = [split for split in _SPLITS if not images[split]]
    if empty:
        raise DataError(f"{path.name}: no images of {', '.join(empty)}")
    return Parts(_rows(images["train"] | images["valid"], path), _rows(images["test"], path))


def _place(name: str, path: Path) -> tuple[str, str, str]:
    parts = PurePosixPath(name).parts[-3:]
    if len(parts) < 3 or parts[0] not in _SPLITS or parts[1] not in CLASSES:
        raise DataError(f"{path.name}: {name} is not <split>/<class>/<image>.png of CINIC-10")
    return parts[0], parts[1], parts[2]


def _rows(images: dict[str, np.ndarray], path: Path) -> Rows:
    order = sorted(images)
    labels = [CLASSES.index(key.split("/", 2)[1]) for key in order]
    return Rows.of(
        np.stack([images[key] for key in order]), labels, classes=len(CLASSES), where=path.name
    )


ENTRY = Entry(
    name="cinic10",
    kind="image",
    classes=CLASSES,
    official=(180_000, 90_000),
    licence="CC BY 4.0",
    citation="L. N. Darlow et al., CINIC-10 Is Not ImageNet or CIFAR-10, arXiv:1810.03505, 2018",
    homepage="https://datashare.ed.ac.uk/handle/10283/3192",
    parse=parse,
    encode=pixels,
    files=(
        Remote(
            _ARCHIVE,
            "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz",
            "md5:6ee4d0c996905fe93221de577967a372",
        ),
    ),
    # Ten public loaders of this archive agree on it; we have not been able to read the owners' page.
    checksums="public loaders",
    compact=Compact(image_column),
    pool=100_000,
    noun="images",
)
