"""One file an item, in a folder for each class: CINIC-10, 20 Newsgroups and GTSRB."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from askance.data.archives import GIB, members
from askance.data.columns import column
from askance.data.record import Rows, SourceSplits
from askance.errors import DataError
from askance.images import SIDE, decode_image

# The largest official image of GTSRB is 266 pixels wide.
_MOST_PIXELS_OF_A_SIGN = 512 * 512


def cinic10(classes: Sequence[str], archive: Path) -> SourceSplits:
    """A tar of 32×32 PNG images in <split>/<class>; train and valid are one source."""

    # Decoded at once: 270,000 images are 830 MB as bytes of pixels.
    def decode(data: bytes, name: str) -> Any:
        return decode_image(data, name, most=SIDE * SIDE)

    form = "<split>/<class>/<image>.png of CINIC-10"
    splits = ("train", "valid", "test")
    train, valid, test = _class_folders(classes, archive, splits, form, decode, ending=".png")
    return SourceSplits(*(_rows(items, classes, archive) for items in (train | valid, test)))


def newsgroups(classes: Sequence[str], archive: Path) -> SourceSplits:
    """A tar of messages in <split>/<group>, split by date."""

    def decode(data: bytes, name: str) -> str:
        return _without_header_and_quotes(data.decode("latin-1"))

    form = "a message of 20news-bydate-<split>/<group>/<number>"
    splits = ("20news-bydate-train", "20news-bydate-test")
    messages = _class_folders(classes, archive, splits, form, decode, limit=GIB)
    return SourceSplits(*(_rows(items, classes, archive) for items in messages))


def newsgroups_column(table: Any, where: str) -> list[str]:
    """The column `text` of a compact copy, without headers, signatures and quoted lines."""
    return list(map(_without_header_and_quotes, column(table, "text", where).to_pylist()))


def _without_header_and_quotes(message: str) -> str:
    """A message without header, signature and quoted lines, as scikit-learn cuts them."""
    from sklearn.datasets import _twenty_newsgroups as newsgroups

    body = newsgroups.strip_newsgroup_footer(newsgroups.strip_newsgroup_header(message))
    return str(newsgroups.strip_newsgroup_quoting(body))


# An item with the place it is sorted by: its split, the number of its class, its name.
_Items = dict[tuple[str, int, str], Any]


def _class_folders(
    classes: Sequence[str],
    archive: Path,
    splits: Sequence[str],
    form: str,
    decode: Callable[[bytes, str], Any],
    *,
    ending: str = "",
    limit: int = 4 * GIB,
) -> list[_Items]:
    """The decoded files of each split; `form` says in an error where a file should be."""
    items: dict[str, _Items] = {split: {} for split in splits}
    for name, data in members(archive, lambda name: name.endswith(ending), limit=limit):
        split, label, _ = ("", "", *PurePosixPath(name).parts)[-3:]
        if split not in splits or label not in classes:
            raise DataError(f"{archive.name}: {name} is not {form}")
        items[split][split, classes.index(label), name] = decode(data, name)
    empty = [split for split in splits if not items[split]]
    if empty:
        raise DataError(f"{archive.name}: no files of {', '.join(empty)}")
    return list(items.values())


def _rows(items: _Items, classes: Sequence[str], archive: Path) -> Rows:
    order = sorted(items)
    decoded: Any = [items[key] for key in order]
    if isinstance(decoded[0], np.ndarray):
        decoded = np.stack(decoded)
    labels = [label for _, label, _ in order]
    return Rows.of(decoded, labels, classes=len(classes), where=archive.name)


def gtsrb(classes: Sequence[str], train: Path, test: Path, test_labels: Path) -> SourceSplits:
    """Zips of PPM images, with semicolon-separated tables of file names and classes.

    Training images lie in a folder for each class with a table; the classes of the test images are in
    a zip of their own. The whole image is used, not the sign's box in it.
    """
    images = {PurePosixPath(name).name: data for name, data in _files(test, ".ppm").items()}
    train_labels = {f"{folder}/{file}": label for folder, file, label in _labelled_files(train)}
    labels = {file: label for _, file, label in _labelled_files(test_labels)}
    return SourceSplits(
        _sign_rows(_files(train, ".ppm"), train_labels, classes, train),
        _sign_rows(images, labels, classes, test),
    )


def _files(archive: Path, ending: str) -> dict[str, bytes]:
    return dict(members(archive, lambda name: name.endswith(ending)))


def _labelled_files(archive: Path) -> Iterator[tuple[str, str, int]]:
    """Folder, file name and class of each line of the tables in an archive."""
    for name, table in _files(archive, ".csv").items():
        reader = csv.DictReader(io.StringIO(table.decode("latin-1")), delimiter=";")
        for row in reader:
            file, label = row.get("Filename"), row.get("ClassId")
            if label is None:
                break  # a table of boxes, which gives no class
            if not file or not label.strip().isdigit():
                raise DataError(f"{name}: line {reader.line_num} has no file name and class number")
            yield str(PurePosixPath(name).parent), file, int(label)


def _sign_rows(
    images: dict[str, bytes], labels: dict[str, int], classes: Sequence[str], archive: Path
) -> Rows:
    if not images:
        raise DataError(f"{archive.name}: no .ppm images in it")
    unlabelled = sorted(images.keys() - labels.keys())
    missing = sorted(labels.keys() - images.keys())
    if unlabelled or missing:
        raise DataError(
            f"{archive.name}: {len(unlabelled)} images without a class and {len(missing)} classes "
            f"without an image, first {(unlabelled + missing)[0]}"
        )
    pictures = np.empty((len(images), SIDE, SIDE, 3), dtype=np.uint8)
    order = sorted(images)
    for row, name in enumerate(order):
        pictures[row] = decode_image(images[name], name, most=_MOST_PIXELS_OF_A_SIGN)
    labels_N = [labels[name] for name in order]
    return Rows.of(pictures, labels_N, classes=len(classes), where=archive.name)
