"""Your own images: a folder with one folder of images for each class."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np

from askance.data.encode import OnEncode, encoded_by, pixels
from askance.data.prepare import check_classes, your_own
from askance.data.record import Dataset, Items, Rows
from askance.data.splits import Imbalance
from askance.encoders import Encoder
from askance.errors import DataError
from askance.images import SIDE, SUFFIXES, decode_image, thumbnail

logger = logging.getLogger(__name__)


def from_image_folder(
    path: str | os.PathLike[str],
    *,
    encoder: str | Encoder | None = None,
    imbalance: Imbalance | None = None,
    on_encode: OnEncode | None = None,
) -> Dataset:
    """The images of `path`/<class>/…, with a stratified test and validation split.

    They are resized to 32×32, or become the features of an encoder, which sees them as they are.
    Classes are the folders' names in alphabetical order; images may lie deeper in a class's folder.
    Hidden files and files that are not named like images are left out.
    """
    root = Path(path)
    if not root.is_dir():
        raise DataError(
            f"{root}: no such folder; expected one with a folder of images for each class"
        )
    children = _children(root, root)
    folders = sorted(child for child in children if child.is_dir())
    if not folders:
        loose = sum(child.suffix.lower() in SUFFIXES for child in children)
        what = f"{loose:,} images lie in it" if loose else "it is empty"
        raise DataError(
            f"{root}: {what}, with no folder for a class; expected a folder of images for each class, "
            f"such as {root.name}/cat and {root.name}/dog. An experiment needs to know all labels; to "
            f"label images, use askance label"
        )
    files: list[Path] = []
    labels: list[int] = []
    for label, folder in enumerate(folders):
        inside = images_in(folder, root)
        files += inside
        labels += [label] * len(inside)
    classes = tuple(folder.name for folder in folders)
    check_classes(np.asarray(labels, dtype=np.int64), classes, str(root))
    items: Items = files
    if encoder is None:
        items = np.empty((len(files), SIDE, SIDE, 3), dtype=np.uint8)
        for row, file in enumerate(files):
            items[row] = decode_image(file, str(file))
    rows = Rows.of(items, labels, classes=len(classes), where=str(root))
    how = pixels if encoder is None else encoded_by(encoder, "image", on_encode)
    name = root.resolve().name
    return your_own(
        name, "image", rows, classes, how, raw=files, read=thumbnail, imbalance=imbalance
    )


def images_in(folder: Path, root: Path, others: list[Path] | None = None) -> list[Path]:
    """The image files under a folder, in order; `root` is what no link may leave.

    Files that are not named like images are added to `others`.
    """
    files: list[Path] = []
    for child in _children(folder, root):
        if child.is_dir():
            files += images_in(child, root, others)
        elif child.suffix.lower() in SUFFIXES:
            files.append(child)
        else:
            logger.info("%s is not named like an image and is left out", child)
            if others is not None:
                others.append(child)
    return files


def _children(folder: Path, root: Path) -> list[Path]:
    """A folder's visible entries in order; a link out of `root`, or to a folder, is refused."""
    children = sorted(child for child in folder.iterdir() if not child.name.startswith("."))
    for child in children:
        if not child.is_symlink():
            continue
        if not child.resolve().is_relative_to(root.resolve()):
            raise DataError(f"{child}: a link that leaves {root}; copy the file there instead")
        if child.is_dir():
            raise DataError(f"{child}: a link to a folder; its images would be read twice")
    return children
