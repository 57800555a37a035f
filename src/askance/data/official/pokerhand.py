"""Poker hands, OpenML 155: UCI's test file with the cards of every hand sorted, and no hand twice.

A hand is five cards, each a suit 1 to 4 and a rank 1 (ace) to 13 (king), in ascending order of rank,
then suit. With the cards as they were dealt, as UCI publishes them, it is another and much harder
problem. Copies of a sorted hand have the same class, so it does not matter which of them is kept.

OpenML's file is ARFF: ten numbers and a class 0 to 9 a line. Its columns are scaled, each linearly, and
are made whole numbers again here. No checksum of the file is known to us, so the hands themselves are
checked, here and in a compact copy: sorted, none twice, classes by the rules of poker, and as many of
each class as OpenML 155 has.

Shapes: N hands; D = 10 columns S1, C1, S2, … C5 (suit and rank of each card).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.data.archives import damaged
from askance.data.columns import features, integers
from askance.data.official.tables import numbers, whole_numbers
from askance.data.record import Rows, SourceSplits
from askance.errors import DataError

# How many hands of each class OpenML 155 has.
COUNTS = (415_526, 350_426, 39_432, 17_541, 3_225, 1_657, 1_186, 195, 11, 2)

_COLUMNS = [f"{kind}{card}" for card in range(1, 6) for kind in "SC"]
# The least and greatest value of each column. Four kings cannot be followed by a fifth, so the first
# card is at most a queen; likewise the last is at least a 2.
_LEAST = np.asarray([1, 1, 1, 1, 1, 1, 1, 1, 1, 2])
_GREATEST = np.asarray([4, 12, 4, 13, 4, 13, 4, 13, 4, 13])
_INSTEAD = (
    "pokerhand must be OpenML 155. Delete this file and run `askance data fetch pokerhand`, or put a "
    "copy of OpenML 155 in its place"
)


def parse(classes: Sequence[str], path: Path) -> SourceSplits:
    """An ARFF file of ten scaled columns and a class, 0 to 9, a line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise damaged(path, error) from error
    # Keywords of ARFF are in any case; the numbers start after the line @data.
    header, *body = re.split(rb"@data", data, maxsplit=1, flags=re.IGNORECASE)
    attributes = header.lower().count(b"\n@attribute")
    if not body or attributes != 11:
        raise DataError(f"{path.name}: expected an ARFF file of 11 attributes, found {attributes}")
    table = numbers(body[0].strip(), path.name, columns=11, delimiter=",")
    hands = unscaled(table[:, :-1], path.name)
    labels = whole_numbers(table[:, -1], path.name)
    rows = Rows.of(hands.astype(np.float32), labels, classes=len(classes), where=path.name)
    check(hands, rows.labels, path.name)
    return SourceSplits(rows)


def unscaled(values_ND: NDArray[np.float64], where: str) -> NDArray[np.int64]:
    """Suits and ranks as whole numbers (N, D), of columns each on an increasing linear scale.

    All hands together reach both ends of every column, and these ends are known.
    """
    low, high = values_ND.min(axis=0), values_ND.max(axis=0)
    if (low == high).any():
        name = _COLUMNS[int(np.argmax(low == high))]
        raise DataError(f"{where}: column {name} holds a single value; {_INSTEAD}")
    hands = _LEAST + (values_ND - low) / (high - low) * (_GREATEST - _LEAST)
    whole = np.round(hands)
    far = np.abs(hands - whole) > 0.02
    if far.any():
        row, column = np.argwhere(far)[0]
        raise DataError(
            f"{where}: row {row} holds {values_ND[row, column]} in column {_COLUMNS[column]}, which is "
            f"no suit or rank on a linear scale; {_INSTEAD}"
        )
    return whole.astype(np.int64)


def check(hands_ND: NDArray[np.int64], labels_N: NDArray[np.int64], where: str) -> None:
    """Refuse hands that are not those of OpenML 155."""
    suits, ranks = hands_ND[:, 0::2], hands_ND[:, 1::2]
    _refuse(
        np.any((suits < 1) | (suits > 4) | (ranks < 1) | (ranks > 13), axis=1),
        hands_ND,
        f"{where}: suits must be 1 to 4 and ranks 1 to 13",
    )
    cards = 4 * (ranks - 1) + suits - 1  # 0 to 51, in order of rank, then suit
    _refuse(
        np.any(np.diff(cards, axis=1) <= 0, axis=1),
        hands_ND,
        f"{where}: the cards of a hand must differ and be in ascending order of rank, then suit (UCI's "
        "own files have them as they were dealt, which is another problem)",
    )
    counts = tuple(np.bincount(labels_N, minlength=len(COUNTS)).tolist())
    if counts != COUNTS:
        raise DataError(
            f"{where}: expected {sum(COUNTS):,} hands, of the classes {COUNTS}, got {sum(counts):,}, "
            f"of {counts}; {_INSTEAD}"
        )
    _, first = np.unique(cards @ 52 ** np.arange(5), return_index=True)
    copies = np.ones(len(cards), dtype=bool)
    copies[first] = False
    _refuse(copies, hands_ND, f"{where}: no hand may be there twice")
    _refuse(
        labels_N != ranking(hands_ND),
        hands_ND,
        f"{where}: the class must be the one the rules of poker give",
    )


def ranking(hands_ND: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class of each hand by the rules of poker (N,), whatever the order of its cards."""
    suits, ranks = hands_ND[:, 0::2], np.sort(hands_ND[:, 1::2], axis=1)
    # Σ n² over the ranks of a hand, n cards having the rank: 4·1 + 1 = 7 with a pair, and so on.
    squares = (ranks[:, :, None] == ranks[:, None, :]).sum(axis=(1, 2))
    of_squares = np.zeros(18, dtype=np.int64)
    of_squares[[5, 7, 9, 11, 13, 17]] = 0, 1, 2, 3, 6, 7
    labels = of_squares[squares]
    royal = (ranks == [1, 10, 11, 12, 13]).all(axis=1)  # the ace also counts as the highest
    straight = (labels == 0) & ((ranks[:, 4] - ranks[:, 0] == 4) | royal)
    flush = (suits == suits[:, :1]).all(axis=1)
    labels[straight] = 4
    labels[flush] = 5
    labels[straight & flush] = 8
    labels[royal & flush] = 9
    return labels


def _refuse(wrong_N: NDArray[np.bool_], hands_ND: NDArray[np.int64], rule: str) -> None:
    if wrong_N.any():
        row = int(np.argmax(wrong_N))
        hand = ", ".join(
            f"{name} {value}" for name, value in zip(_COLUMNS, hands_ND[row], strict=True)
        )
        raise DataError(
            f"{rule}; {int(wrong_N.sum()):,} rows are not so, the first is row {row} ({hand}). "
            f"{_INSTEAD}"
        )


def checked_columns(table: Any, where: str) -> NDArray[np.float32]:
    """The hands of a compact copy: ten columns of whole numbers, and `class`."""
    hands = features(table, _COLUMNS, where)
    labels = integers(table, "class", where)
    if ((labels >= 0) & (labels < 10)).all():  # other labels are refused with the rows
        check(hands.astype(np.int64), labels, where)
    return hands
