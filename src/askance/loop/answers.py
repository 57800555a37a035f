"""What people said of the rows of a pool, and what that comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from askance.embedding.items import is_missing
from askance.errors import LabelError


class PeopleAnswers:
    """Answers of several people; each has one answer to a row, and may change it.

    A row's label is what most of its people say. Where two labels lead, the row is disputed and has no
    label until somebody else answers. None is the answer of who cannot tell; it does not count.
    """

    def __init__(self) -> None:
        self._said: dict[int, dict[str, Any]] = {}  # rows in the order of their first answers

    def tell(self, rows: Iterable[int], labels: Iterable[Any], by: str) -> None:
        """Keep one person's answers."""
        for row, label in zip(rows, labels, strict=True):
            self._said.setdefault(row, {})[by] = label

    def __len__(self) -> int:
        return len(self._said)

    def __contains__(self, row: int) -> bool:
        return row in self._said

    def labels(self) -> dict[int, Any]:
        """The label of each row that has one."""
        return {row: found[0] for row in self._said if len(found := self._leading(row)) == 1}

    @property
    def disputed(self) -> list[int]:
        """The rows for which two labels lead."""
        return [row for row in self._said if len(self._leading(row)) > 1]

    @property
    def skipped(self) -> list[int]:
        """The rows of which nobody can tell."""
        return [row for row in self._said if not self._leading(row)]

    def rows(self) -> list[list[Any]]:
        """[row, person, label] of each answer, as JSON can hold it."""
        return [[row, by, label] for row, said in self._said.items() for by, label in said.items()]

    @classmethod
    def of(cls, rows: Iterable[list[Any]]) -> PeopleAnswers:
        """What `rows` gave."""
        answers = cls()
        for row, by, label in rows:
            answers.tell([int(row)], [label], str(by))
        return answers

    def _leading(self, row: int) -> list[Any]:
        counts = Counter(label for label in self._said[row].values() if label is not None)
        most = max(counts.values(), default=0)
        return [label for label, count in counts.items() if count == most]


def plain_labels(labels: Any, count: int) -> list[Any]:
    """Labels as whole numbers, texts or None, one for each of `count` rows."""
    dated = isinstance(labels, np.ndarray) and labels.dtype.kind in "mM"  # NaT would become None
    each = labels.tolist() if hasattr(labels, "tolist") and not dated else labels
    each = each.to_list() if hasattr(each, "to_list") else each
    values = [each] * count if isinstance(each, (str, int)) and count == 1 else list(each)
    if len(values) != count:
        raise LabelError(f"{count} rows need as many labels, got {len(values)}")
    made = []
    for place, value in enumerate(values):
        if value is not None and is_missing(value):
            raise LabelError(
                f"the label at index {place} is missing ({str(value) or repr(value)}): give None where "
                f"nobody can tell, and leave out what is not answered yet"
            )
        number = value.item() if hasattr(value, "item") else value
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if number is not None and (isinstance(number, bool) or not isinstance(number, (int, str))):
            raise LabelError(
                f"a label is a whole number, the name of a class, or None where nobody can tell; got "
                f"{value!r}"
            )
        made.append(number)
    return made
