"""The rows of a run's pool: which were asked for, which are answered, and their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import sources
from askance.embedding.frames import is_frame, parted
from askance.embedding.items import check_labels
from askance.embedding.rows import is_table, row_count
from askance.errors import InputError, LabelError
from askance.loop.answers import PeopleAnswers, plain_labels
from askance.oracles import Answers
from askance.selection.classes import numbers_of

Rows = NDArray[np.int64]


class RowLabels:
    """What is known of each row of a pool.

    Args:
        size: how many rows there are.
        closed: rows that are never asked for.
        ids: an identifier for each row.
        classes: names of the classes; labels that are names are then kept as their numbers.
    """

    def __init__(self, size: int, closed: Rows, ids: Any, classes: tuple[str, ...] | None) -> None:
        self.size, self.closed, self.classes = size, closed, classes
        self.ids = None if ids is None else _checked_ids(ids, size)
        self._place = {} if self.ids is None else {name: row for row, name in enumerate(self.ids)}
        self.asked: Rows = np.empty(0, np.int64)
        self.people = PeopleAnswers()
        self.by_oracle: tuple[Rows, Tensor] = (
            np.empty(0, np.int64),
            torch.empty(0, dtype=torch.int64),
        )
        self.rows, self.labels = self.by_oracle[0], self.by_oracle[1]
        self._is_asked, self._is_closed, self._is_answered = np.zeros((3, size), dtype=bool)
        self._is_closed[closed] = True

    @property
    def free(self) -> int:
        """How many rows may still be asked for."""
        return self.size - int((self._is_asked | self._is_closed).sum())

    @property
    def waiting(self) -> Rows:
        """The rows that were asked for and are not answered yet."""
        return self.asked[~self._is_answered[self.asked]]

    def check(self, rows: Rows) -> None:
        """Raise where one of the rows may not be asked for."""
        for marked, problem in (
            (self._is_asked, "have been asked for before"),
            (self._is_closed, "are excluded"),
        ):
            wrong = np.sort(rows[marked[rows]])
            if len(wrong):
                raise InputError(f"rows {wrong.tolist()} {problem}")

    def ask(self, rows: Rows) -> None:
        """Note that these rows are asked for."""
        self.asked = np.concatenate([self.asked, rows])
        self._is_asked[rows] = True

    def answer(self, rows: Rows, answers: Answers) -> None:
        """Keep an oracle's answers to the rows it was asked for."""
        # The common case first: a run that is resumed asks for all its rounds again.
        valid = np.array_equal(answers.rows, rows) or (
            len(np.unique(answers.rows)) == len(answers.rows) and np.isin(answers.rows, rows).all()
        )
        if not valid:
            raise InputError("an oracle must answer rows it was asked for, each once")
        labels = sources.as_labels(answers.labels, len(answers.rows))
        self.ask(rows)
        self._is_answered[rows] = True
        said, known = self.by_oracle
        self.by_oracle = np.concatenate([said, answers.rows]), torch.cat([known, labels])
        self._agree()

    def tell(self, rows: list[int], labels: list[Any], by: str) -> None:
        """Keep a person's answers to any rows, and take what all answers come to for labels."""
        if len(set(rows)) < len(rows):
            raise InputError("a person answers a row once; some of these rows come twice")
        closed = [row for row in rows if self._is_closed[row]]
        if closed:
            raise InputError(f"rows {sorted(map(str, self.named(closed)))[:5]} are excluded")
        told = [label for label in labels if label is not None]
        names = [label for label in told if isinstance(label, str)]
        if self.classes is not None:
            numbers_of(names, self.classes)  # which refuses unknown ones
        elif len(names) not in (0, len(told)):
            raise LabelError(_BOTH)
        both_labels(self.labels, label_array(told, self.classes))  # which refuses both kinds
        self.people.tell(rows, labels, by)
        self.ask(np.array([row for row in rows if not self._is_asked[row]], dtype=np.int64))
        self._is_answered[rows] = True
        self._agree()

    def restore(self, asked: Rows, by_oracle: tuple[Rows, Tensor], people: PeopleAnswers) -> None:
        """Put back what a saved run knew; every row the oracle was asked for is answered."""
        self.ask(asked)
        self.by_oracle, self.people = by_oracle, people
        self._is_answered[by_oracle[0]] = True
        self._is_answered[[row for row, _, _ in people.rows()]] = True
        self._agree()

    def settle(self, rows: Rows) -> None:
        """Note that these rows need no answer any more."""
        self._is_answered[rows] = True

    def rows_of(self, named: Any) -> list[int]:
        """The rows of some ids, or rows as they are."""
        each = as_list(named)
        if self.ids is not None:
            unknown = [name for name in each if name not in self._place]
            if unknown:
                some = ", ".join(map(repr, unknown[:5]))
                raise InputError(
                    f"the pool has no id {some}; this run is told answers by their ids"
                )
            return [self._place[name] for name in each]
        for row in each:
            if isinstance(row, bool) or not isinstance(row, (int, np.integer)):
                raise InputError(f"rows must be whole numbers, got {row!r}; ids= gives rows names")
            if not 0 <= row < self.size:
                raise InputError(f"rows must be between 0 and {self.size - 1}, got {row}")
        return [int(row) for row in each]

    def named(self, rows: Any) -> list[Any]:
        """Some rows by their ids, where there are ids."""
        places = [int(row) for row in rows]
        return places if self.ids is None else [self.ids[row] for row in places]

    def _agree(self) -> None:
        """`rows` and `labels`: what the oracle said, then what people's answers come to."""
        rows, labels = self.by_oracle
        agreed = self.people.labels()
        if not agreed:
            self.rows, self.labels = rows, labels
            return
        told = label_array(list(agreed.values()), self.classes)
        kept = ~np.isin(rows, list(agreed))
        self.rows = np.concatenate([rows[kept], np.array(list(agreed), dtype=np.int64)])
        self.labels = both_labels(labels[torch.from_numpy(kept)], told)


_BOTH = "labels must be all numbers or all names of classes, got both"


def both_labels(first: Any, second: Any) -> Any:
    """Labels one after the other: numbers as a tensor, names as an array."""
    if not len(first) or not len(second):
        return first if len(first) else second
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return torch.cat([first, second])
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        raise LabelError(_BOTH)
    return np.concatenate([first, second])


def label_array(values: list[Any], classes: tuple[str, ...] | None) -> Any:
    """Labels as a tensor of numbers, or an array of names where nobody said their order."""
    if classes is not None:
        values = [classes.index(value) if isinstance(value, str) else value for value in values]
    if any(isinstance(value, str) for value in values):
        return np.array(values)
    return torch.tensor(values, dtype=torch.int64)


def labels_that_exist(
    labeled: Any, rows: RowLabels
) -> tuple[tuple[Any, Any] | None, dict[int, Any]]:
    """(X, y) of items outside the pool, or None; and the labels of rows of the pool."""
    if labeled is None:
        return None, {}
    if is_frame(labeled):
        labeled = parted(labeled)
    if isinstance(labeled, Mapping):
        places = rows.rows_of(list(labeled))
        return None, dict(
            zip(places, plain_labels(list(labeled.values()), len(places)), strict=True)
        )
    if not isinstance(labeled, tuple) or len(labeled) != 2:
        raise LabelError(
            f"labeled must be (X, y) or a frame with a column of labels, of items outside the pool, or "
            f"a mapping from rows of the pool to labels; got a {type(labeled).__name__}"
        )
    X, y = labeled
    size = row_count(X) if is_table(X) else sources.size(X)
    check_labels(y)
    values = plain_labels(y, size or 0)
    if not values:
        return None, {}
    if rows.classes is not None:
        numbers_of([value for value in values if isinstance(value, str)], rows.classes)
    return (X, label_array(values, rows.classes)), {}


def as_list(ids: Any) -> list[Any]:
    """The identifiers in a list, an array, an index or a series."""
    return list(ids.tolist() if hasattr(ids, "tolist") else ids)


def _checked_ids(ids: Any, size: int) -> list[Any]:
    """An identifier for each row, each once."""
    each = as_list(ids)
    if len(each) != size or len(set(each)) != size:
        raise InputError(
            f"ids must be {size} different identifiers, one for each row of the pool; got {len(each)}, "
            f"{len(set(each))} of them different"
        )
    return each
