"""German credit: a zip with a file of 24 numbers and a class, 1 or 2, a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from askance.data.archives import GIB, base_name, needed, zip_members
from askance.data.columns import features
from askance.data.encode import standardised
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.data.official.numbers import UCI, UCI_CHECKSUMS, UCI_LICENCE, classes_from, table

_ARCHIVE = "statlog+german+credit+data.zip"
_COLUMNS = [f"num{number}" for number in range(1, 25)]


def parse(paths: Mapping[str, Path]) -> Parts:
    path, file = paths[_ARCHIVE], "german.data-numeric"
    found = {
        base_name(name): data
        for name, data in zip_members(path, lambda name: base_name(name) == file, limit=GIB)
    }
    rows = table(needed(found, (file,), path)[0], file, columns=25)
    labels = classes_from(rows[:, -1], file, first=1)
    return Parts(Rows.of(rows[:, :-1].astype(np.float32), labels, classes=2, where=file))


ENTRY = Entry(
    name="german",
    kind="tabular",
    classes=("good", "bad"),
    official=(1_000, 0),
    licence=UCI_LICENCE,
    citation="H. Hofmann, Statlog (German Credit Data), UCI Machine Learning Repository, 1994",
    homepage="https://archive.ics.uci.edu/dataset/144/statlog+german+credit+data",
    parse=parse,
    encode=standardised,
    files=(Remote(_ARCHIVE, f"{UCI}/144/{_ARCHIVE}", None),),
    checksums=UCI_CHECKSUMS,
    compact=Compact(lambda table, where: features(table, _COLUMNS, where), label="class", first=1),
    pooled=True,
)
