"""German Traffic Sign Recognition Benchmark: zips of PPM images, with semicolon-separated tables.

Training images lie in a folder for each class, whose table `GT-<class>.csv` lists them; the test
images' classes are in a zip of their own. The whole image is used, not the sign's box in it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from askance.data.archives import base_name, zip_members
from askance.data.columns import images as image_column
from askance.data.encode import pixels
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.data.images import stacked
from askance.errors import DataError

_TRAIN = "GTSRB_Final_Training_Images.zip"
_TEST = "GTSRB_Final_Test_Images.zip"
_TEST_LABELS = "GTSRB_Final_Test_GT.zip"
_CLASSES = 43
_MOST_PIXELS = 512 * 512  # the largest official image is 266 pixels wide

_URL = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370"


def parse(paths: Mapping[str, Path]) -> Parts:
    tables, images = _read(paths[_TRAIN])
    labels: dict[str, int] = {}
    for name, table in tables.items():
        folder = name.rpartition("/")[0]
        for file, label in _labelled(table, name):
            labels[f"{folder}/{file}"] = label
    train = _rows(images, labels, paths[_TRAIN])

    _, images = _read(paths[_TEST])
    tables, _ = _read(paths[_TEST_LABELS])
    known = {
        file: label for name, table in tables.items() for file, label in _labelled(table, name)
    }
    by_file = {base_name(name): data for name, data in images.items()}
    return Parts(train, _rows(by_file, known, paths[_TEST]))


def _read(path: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    found = dict(zip_members(path, lambda name: name.endswith((".ppm", ".csv"))))
    tables = {name: data for name, data in found.items() if name.endswith(".csv")}
    return tables, {name: data for name, data in found.items() if name.endswith(".ppm")}


def _labelled(table: bytes, name: str) -> Iterable[tuple[str, int]]:
    reader = csv.DictReader(io.StringIO(table.decode("latin-1")), delimiter=";")
    for row in reader:
        file, label = row.get("Filename"), row.get("ClassId")
        if label is None:
            return  # the test images come with a table of boxes that gives no class
        if not file or not label.strip().isdigit():
            raise DataError(f"{name}: line {reader.line_num} has no file name and class number")
        yield file, int(label)


def _rows(images: dict[str, bytes], labels: dict[str, int], path: Path) -> Rows:
    if not images:
        raise DataError(f"{path.name}: no .ppm images in it")
    unlabelled = sorted(images.keys() - labels.keys())
    missing = sorted(labels.keys() - images.keys())
    if unlabelled or missing:
        raise DataError(
            f"{path.name}: {len(unlabelled)} images without a class and {len(missing)} classes without "
            f"an image, first {(unlabelled + missing)[0]}"
        )
    order = sorted(images)
    pictures = stacked(((name, images[name]) for name in order), len(order), most=_MOST_PIXELS)
    return Rows.of(pictures, [labels[name] for name in order], classes=_CLASSES, where=path.name)


ENTRY = Entry(
    name="gtsrb",
    kind="image",
    # The archive numbers its classes and does not name them.
    classes=tuple(f"sign {number:02d}" for number in range(_CLASSES)),
    official=(39_209, 12_630),
    licence="research use with citation",
    citation="J. Stallkamp et al., Man vs. computer, Neural Networks 32, 2012",
    homepage="https://benchmark.ini.rub.de/gtsrb_news.html",
    parse=parse,
    encode=pixels,
    files=(
        Remote(_TRAIN, f"{_URL}/{_TRAIN}", "md5:f33fd80ac59bff73c82d25ab499e03a3"),
        Remote(_TEST, f"{_URL}/{_TEST}", "md5:c7e4e6327067d32654124b0fe9e82185"),
        Remote(_TEST_LABELS, f"{_URL}/{_TEST_LABELS}", "md5:fe31e9c9270bbcd7b84b7f21a9d9d9e5"),
    ),
    # The homepage gives none. torchvision takes its training images from another zip, of 26,640; the
    # md5 of the 39,209 training images stands beside torchvision's two in several public loaders.
    checksums="torchvision/datasets/gtsrb.py; training zip: public loaders",
    compact=Compact(image_column),
    noun="images",
)
