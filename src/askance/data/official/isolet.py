"""ISOLET, spoken letters: a zip of two files of 617 features and a class 1 to 26 a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.data.archives import GIB, base_name, needed, zip_members
from askance.data.columns import vectors
from askance.data.encode import standardised
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.data.official.lzw import uncompressed
from askance.data.official.numbers import UCI, UCI_CHECKSUMS, UCI_LICENCE, classes_from, table

_ARCHIVE = "isolet.zip"
_FILES = ("isolet1+2+3+4.data", "isolet5.data")
_FEATURES = 617


def parse(paths: Mapping[str, Path]) -> Parts:
    path = paths[_ARCHIVE]
    found: dict[str, bytes] = {}
    wanted = {*_FILES, *(f"{file}.Z" for file in _FILES)}
    for name, data in zip_members(path, lambda name: base_name(name) in wanted, limit=GIB):
        file = base_name(name)
        packed = file.endswith(".Z")
        found[file.removesuffix(".Z")] = uncompressed(data, file, limit=GIB) if packed else data
    rows = np.concatenate(
        [
            table(data, file, columns=618, delimiter=",")
            for file, data in zip(_FILES, needed(found, _FILES, path), strict=True)
        ]
    )
    labels = classes_from(rows[:, -1], path.name, first=1)
    return Parts(Rows.of(rows[:, :-1].astype(np.float32), labels, classes=26, where=path.name))


def _ten_thousandths(table: Any, where: str) -> NDArray[np.float32]:
    """The compact copy's column `x`: 617 whole numbers a row."""
    return (vectors(table, "x", where, _FEATURES) / 10_000).astype(np.float32)


ENTRY = Entry(
    name="isolet",
    kind="tabular",
    classes=tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    official=(6_238, 1_559),
    licence=UCI_LICENCE,
    citation="R. Cole, M. Fanty, ISOLET, UCI Machine Learning Repository, 1991",
    homepage="https://archive.ics.uci.edu/dataset/54/isolet",
    parse=parse,
    encode=standardised,
    files=(Remote(_ARCHIVE, f"{UCI}/54/isolet.zip", None),),
    checksums=UCI_CHECKSUMS,
    compact=Compact(_ten_thousandths, first=1),
    pooled=True,
)
