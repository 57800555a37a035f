"""Gisette: a zip of files of 5,000 numbers a line, with the labels −1 and 1 in files of their own.

The labels of the test split were never published: the official validation split is the test here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from askance.data.archives import GIB, base_name, needed, zip_members
from askance.data.encode import standardised
from askance.data.entry import Entry, Parts, Remote, Rows
from askance.data.official.numbers import UCI, UCI_CHECKSUMS, UCI_LICENCE, table
from askance.errors import DataError

_ARCHIVE = "gisette.zip"
_FILES = tuple(
    f"gisette_{split}.{part}" for split in ("train", "valid") for part in ("data", "labels")
)


def parse(paths: Mapping[str, Path]) -> Parts:
    path = paths[_ARCHIVE]
    members = zip_members(path, lambda name: base_name(name) in _FILES, limit=GIB)
    found = {base_name(name): data for name, data in members}
    data, labels, valid, valid_labels = needed(found, _FILES, path)
    return Parts(_rows(data, labels, "train"), _rows(valid, valid_labels, "valid"))


def _rows(data: bytes, labels: bytes, split: str) -> Rows:
    where = f"gisette_{split}"
    rows = table(data, f"{where}.data", columns=5_000).astype(np.float32)
    signs = table(labels, f"{where}.labels", columns=1)[:, 0]
    if not np.isin(signs, (-1, 1)).all():
        raise DataError(f"{where}.labels: the labels must be −1 or 1")
    return Rows.of(rows, (signs + 1) / 2, classes=2, where=where)


ENTRY = Entry(
    name="gisette",
    kind="tabular",
    classes=("-1", "+1"),
    official=(6_000, 1_000),
    licence=UCI_LICENCE,
    citation="I. Guyon et al., Result Analysis of the NIPS 2003 Feature Selection Challenge, 2004",
    homepage="https://archive.ics.uci.edu/dataset/170/gisette",
    parse=parse,
    encode=standardised,
    files=(Remote(_ARCHIVE, f"{UCI}/170/gisette.zip", None),),
    checksums=UCI_CHECKSUMS,
)
