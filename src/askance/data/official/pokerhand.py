"""Poker hands, OpenML 155: an ARFF file of ten numbers and a class 0 to 9 a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from askance.data.archives import damaged
from askance.data.columns import features
from askance.data.encode import standardised
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.data.official.numbers import UCI_LICENCE, classes_from, table
from askance.errors import DataError

_FILE = "pokerhand-normalized.arff"
_CARDS = [f"{kind}{card}" for card in range(1, 6) for kind in "SC"]


def parse(paths: Mapping[str, Path]) -> Parts:
    path = paths[_FILE]
    try:
        data = path.read_bytes()
    except OSError as error:
        raise damaged(path, error) from error
    # Keywords of ARFF are in any case; the numbers start after the line @data.
    header, keyword, body = data.partition(b"@data")
    if not keyword:
        header, keyword, body = data.partition(b"@DATA")
    attributes = header.lower().count(b"\n@attribute")
    if not keyword or attributes != 11:
        raise DataError(f"{path.name}: expected an ARFF file of 11 attributes, found {attributes}")
    rows = table(body.strip(), path.name, columns=11, delimiter=",")
    labels = classes_from(rows[:, -1], path.name)
    return Parts(Rows.of(rows[:, :-1].astype(np.float32), labels, classes=10, where=path.name))


ENTRY = Entry(
    name="pokerhand",
    kind="tabular",
    classes=(
        "nothing",
        "one pair",
        "two pairs",
        "three of a kind",
        "straight",
        "flush",
        "full house",
        "four of a kind",
        "straight flush",
        "royal flush",
    ),
    official=(829_201, 0),
    licence=UCI_LICENCE,
    citation="R. Cattral, F. Oppacher, Poker Hand, UCI Machine Learning Repository, 2007; OpenML 155",
    homepage="https://www.openml.org/d/155",
    parse=parse,
    encode=standardised,
    files=(
        Remote(_FILE, "https://www.openml.org/data/download/2423/pokerhand-normalized.arff", None),
    ),
    # OpenML gives an md5 in the description of dataset 155, which we have not been able to read.
    checksums="none known to us",
    compact=Compact(
        lambda table, where: features(table, _CARDS, where),
        label="class",
        other="UCI's whole numbers, not OpenML 155's scaled columns",
        whole=(1_025_010, 0),
    ),
    pooled=True,
)
