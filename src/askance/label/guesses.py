"""What models say, in memory while the server runs: the newest of all items, each of the held-out."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askance._io.atomic import atomic_write
from askance.label.records import Guess, HeldOutGuess

log = logging.getLogger(__name__)

NONE = -1  # an item the model was not asked about


@dataclass(frozen=True, eq=False)
class ModelGuesses:
    """A version's guesses on the items there were, kept in a file for the next start.

    `support` is the probability of each item's answer, as `TrainingOutcome` has it; None in files of
    before it was kept.
    """

    version: int
    ids: Sequence[str]
    guesses: NDArray[np.int64]
    confidence: NDArray[np.float32]
    support: NDArray[np.float32] | None = None

    @cached_property
    def _row(self) -> dict[str, int]:
        return {item: row for row, item in enumerate(self.ids)}

    def guess(self, item: str) -> Guess | None:
        """What the version says of an item; None where it was not asked."""
        row = self._row.get(item)
        if row is None or self.guesses[row] == NONE:
            return None
        return Guess(int(self.guesses[row]), float(self.confidence[row]))

    def support_of(self, item: str) -> float | None:
        """The probability of the answer it was trained on; None where there was none."""
        row = self._row.get(item)
        if row is None or self.support is None or np.isnan(self.support[row]):
            return None
        return float(self.support[row])

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        # Ids as UTF-8 with lengths: NumPy's own strings would drop trailing zeros.
        names = [item.encode() for item in self.ids]
        content = io.BytesIO()
        np.savez(
            content,
            names=np.frombuffer(b"".join(names), np.uint8),
            lengths=np.asarray([len(name) for name in names], np.int64),
            guesses=self.guesses,
            confidence=self.confidence,
            support=np.full(len(names), np.nan) if self.support is None else self.support,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, content.getvalue())

    @classmethod
    def load(cls, path: Path, version: int) -> ModelGuesses | None:
        """The guesses in the file; None where it is gone or damaged, until the next training."""
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                names, lengths = arrays["names"].tobytes(), arrays["lengths"]
                guesses, confidence = arrays["guesses"], arrays["confidence"]
                support = arrays.get("support")
            ends = np.cumsum(lengths)
            ids = [names[end - n : end].decode() for n, end in zip(lengths, ends, strict=True)]
        except Exception as error:  # whatever a damaged file makes NumPy's reader of zips raise
            log.info("%s cannot be read (%s)", path, error)
            return None
        if not len(ids) == len(guesses) == len(confidence):
            return None
        return cls(version, ids, guesses, confidence, support)


class HeldOutGuesses:
    """What each version says of the held-out items, also of those that are missing now."""

    def __init__(
        self, column: Mapping[str, int] | None = None, versions: Sequence[NDArray[np.int32]] = ()
    ) -> None:
        self._column = column or {}
        self._versions = versions  # one a version; later columns are missing

    @classmethod
    def of_rows(cls, versions: Iterable[int], rows: Iterable[HeldOutGuess]) -> HeldOutGuesses:
        """Those that are stored."""
        by_version: dict[int, dict[str, int]] = {version: {} for version in versions}
        for row in rows:
            by_version[row.version][row.item] = row.guess.choice
        held = cls()
        for choices in by_version.values():
            held = held.with_version(choices)
        return held

    def with_version(self, guesses: Mapping[str, int]) -> HeldOutGuesses:
        """These and the next version's."""
        column = dict(self._column)
        for item in guesses:
            column.setdefault(item, len(column))
        row = np.full(len(column), NONE, np.int32)
        for item, choice in guesses.items():
            row[column[item]] = choice
        return HeldOutGuesses(column, [*self._versions, row])

    def of(self, items: Sequence[str]) -> NDArray[np.int64]:
        """(V, N): of every version and these items; NONE where it was not asked."""
        columns = np.asarray([self._column.get(item, NONE) for item in items], np.int64)
        said = np.full((len(self._versions), len(items)), NONE, np.int64)
        for row, guesses in zip(said, self._versions, strict=True):
            there = (columns != NONE) & (columns < len(guesses))
            row[there] = guesses[columns[there]]
        return said
