"""The datasets by name: what `datasets.toml` says of each, and the functions that read it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from torch import Tensor

from askance.data.columns import byte_images, image_files, images, texts
from askance.data.encode import (
    file_pixels,
    flat_pixels,
    pixels,
    shown_image,
    sixteenths,
    standardised,
    weighted_words,
)
from askance.data.official import arrays, folders, pokerhand, tables
from askance.data.record import Items, Kind, SourceSplits
from askance.errors import UnknownError

Encode = Callable[[Items, Sequence[Items]], list[Tensor]]


@dataclass(frozen=True)
class OfficialFile:
    """An official file. `checksum` as pooch writes it (`md5:…`), None where none is published.

    Without one, the sha256 of the first copy that was parsed whole is recorded and held to afterwards.
    """

    name: str
    url: str
    checksum: str | None = None


@dataclass(frozen=True)
class Compact:
    """How a compact Parquet copy is read: its items, and the column of labels counted from `first`.

    `other` says how such a copy is other than the official files.
    """

    items: Callable[[Any, str], Items]
    label: str = "label"
    first: int = 0
    other: str | None = None


@dataclass(frozen=True)
class Entry:
    """What is known of a dataset before it is read.

    Args:
        official: how many training and test items the official set has; `noun` is what they are called.
        parse: from the classes and the official files, in their order, to rows. None where no official
            file is read, so that there are compact copies alone.
        checksums: where the checksums of `files` are published.
        compact: how a compact copy is read; None where no such form is known.
        pool: the protocol's uniform subsample of the training source after validation has left it;
            None keeps all.
        shrunk: how the images at hand are smaller than the official ones, which matters to an encoder.
        overlaps: the encoders whose training images overlap with these, by name: accuracies on their
            features flatter them.
        read: shows an item that is kept otherwise than it is shown. Image files stay files: an
            encoder whose features are in its cache need not decode them.
        pooled: put the official splits together; the protocol cuts its own test split.
    """

    name: str
    kind: Kind
    classes: tuple[str, ...]
    official: tuple[int, int]
    licence: str
    citation: str
    homepage: str
    parse: Callable[..., SourceSplits] | None
    encode: Encode
    files: tuple[OfficialFile, ...] = ()
    checksums: str = "none published"
    compact: Compact | None = None
    pool: int | None = None
    pooled: bool = False
    noun: str = "rows"
    shrunk: str | None = None
    overlaps: tuple[str, ...] = ()
    read: Callable[[Any], Any] | None = None

    @property
    def is_bundled(self) -> bool:
        """Whether it is in an installed library, so that no file is needed."""
        return self.parse is not None and not self.files


# How the official files are parsed, how items are encoded, and how those of a compact copy are read.
_FUNCTIONS: dict[
    str, tuple[Callable[..., SourceSplits] | None, Encode, Callable[[Any, str], Items] | None]
] = {
    "20newsgroups": (folders.newsgroups, weighted_words, folders.newsgroups_column),
    "isolet": (tables.isolet, standardised, tables.isolet_column),
    "pokerhand": (pokerhand.parse, standardised, pokerhand.checked_columns),
    "cifar10": (arrays.cifar10, pixels, images),
    "svhn": (arrays.svhn, pixels, images),
    "stl10": (arrays.stl10, pixels, images),
    "gtsrb": (folders.gtsrb, pixels, images),
    "cinic10": (folders.cinic10, pixels, images),
    "mnist": (arrays.mnist, flat_pixels, byte_images),
    "german": (tables.german, standardised, tables.german_columns),
    "gisette": (tables.gisette, standardised, None),
    "digits": (arrays.digits, sixteenths, None),
    "fashion-mnist": (arrays.mnist, pixels, byte_images),
    "banking77": (None, weighted_words, texts),
    "clinc150": (None, weighted_words, texts),
    "trec": (None, weighted_words, texts),
    "sst2": (None, weighted_words, texts),
    "pets": (None, file_pixels, image_files),
}


def _entry(name: str, table: dict[str, Any]) -> Entry:
    parse, encode, items = _FUNCTIONS[name]
    official_files = tuple(
        OfficialFile(**{"name": file["url"].rpartition("/")[2], **file})
        for file in table.pop("files", ())
    )
    options = table.pop("compact", {})
    compact = None if items is None else Compact(items, **options)
    overlaps = tuple(table.pop("overlaps", ()))
    classes, official = tuple(table.pop("classes")), tuple(table.pop("official"))
    return Entry(
        name,
        classes=classes,
        official=official,
        parse=parse,
        encode=encode,
        files=official_files,
        compact=compact,
        overlaps=overlaps,
        read=shown_image if items is image_files else None,
        **table,
    )


_CATALOG = tomllib.loads(files("askance.data").joinpath("datasets.toml").read_text("utf-8"))
ENTRIES: dict[str, Entry] = {name: _entry(name, table) for name, table in _CATALOG.items()}


def names() -> list[str]:
    """The names of all datasets, in the protocol's order."""
    return list(ENTRIES)


def overlaps(name: str, encoder: str | None) -> bool:
    """Whether an encoder was trained on images that overlap with those of a dataset.

    False for what is not in the catalogue: of your own data and encoders nothing is known.
    """
    return name in ENTRIES and encoder in ENTRIES[name].overlaps


def entry(name: str) -> Entry:
    """The entry of a dataset."""
    if name not in ENTRIES:
        raise UnknownError.of("dataset", name, ENTRIES)
    return ENTRIES[name]
