"""What one model says of every item, at hand while the server runs and in a file for the next start."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askance.bench.export import replace
from askance.label.records import Guess

NONE = -1  # an item the model was not asked about


@dataclass(frozen=True, eq=False)
class Known:
    """A version's guesses, in the order of items."""

    version: int
    guesses: NDArray[np.int64]
    confidence: NDArray[np.float32]

    def guess(self, row: int) -> Guess | None:
        return None if self.guesses[row] == NONE else self.told(row)

    def told(self, row: int) -> Guess:
        return Guess(int(self.guesses[row]), float(self.confidence[row]))

    def save(self, path: Path, ids: Sequence[str]) -> None:
        """Write the file, whole or not at all."""
        # Ids as UTF-8 with lengths: NumPy's own strings would drop trailing zeros.
        names = [item.encode() for item in ids]
        content = io.BytesIO()
        np.savez(
            content,
            names=np.frombuffer(b"".join(names), np.uint8),
            lengths=np.asarray([len(name) for name in names], np.int64),
            guesses=self.guesses,
            confidence=self.confidence,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, content.getvalue())

    @classmethod
    def load(cls, path: Path, version: int, ids: Sequence[str]) -> Known | None:
        """The guesses on these items; None where the file is gone."""
        try:
            with np.load(path, allow_pickle=False) as found:
                names, lengths = found["names"].tobytes(), found["lengths"]
                guesses, confidence = found["guesses"], found["confidence"]
        except (OSError, ValueError, KeyError):
            return None
        ends = np.cumsum(lengths)
        starts = ends - lengths
        row = {names[a:b].decode(): i for i, (a, b) in enumerate(zip(starts, ends, strict=True))}
        where = np.asarray([row.get(item, NONE) for item in ids], np.int64)
        there = where != NONE
        own = np.full(len(ids), NONE, np.int64)
        own[there] = guesses[where[there]]
        sure = np.zeros(len(ids), np.float32)
        sure[there] = confidence[where[there]]
        return cls(version, own, sure)
