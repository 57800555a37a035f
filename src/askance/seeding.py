"""All randomness, as a function of names.

Every draw is a function of (seed, round, purpose), and a draw for a row also of the row's position in
the pool. Nothing else in askance draws random numbers, and no global generator is read or advanced. So
a run that is resumed elsewhere, or a pool read in other blocks or shards, gets the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from askance._checks import check_whole

Positions = range | NDArray[np.int64]

# Philox gives four 64-bit words a counter step; row i owns word i of its stream.
_WORDS_PER_STEP = 4
_RUN = 1 << 20


def _key(seed: int, round: int, purpose: str) -> NDArray[np.uint64]:
    name = f"{seed}\x00{round}\x00{purpose}".encode()
    return np.frombuffer(blake2b(name, digest_size=16).digest(), dtype=np.uint64)


@dataclass(frozen=True)
class Draws:
    """All randomness of one (seed, round): independent named streams.

    Example:
        >>> draws = Draws(seed=0)
        >>> whole = draws.uniform("gumbel", range(10))
        >>> bool((draws.uniform("gumbel", range(4, 7)) == whole[4:7]).all())
        True
    """

    seed: int = 0
    round: int = 0

    def __post_init__(self) -> None:
        for name in ("seed", "round"):
            object.__setattr__(self, name, check_whole(name, getattr(self, name), 0))

    def generator(self, purpose: str) -> np.random.Generator:
        """A sequential generator for draws that belong to no row."""
        return np.random.Generator(np.random.Philox(key=_key(self.seed, self.round, purpose)))

    def uniform(self, purpose: str, positions: Positions) -> NDArray[np.float64]:
        """One number in (0, 1) for each row position, the same in whatever block it is asked for."""
        if not isinstance(positions, range) or positions.step != 1:
            positions = np.asarray(positions)
            if len(positions) == 0:
                return np.empty(0)
            return self._scattered(purpose, positions)
        philox = np.random.Philox(key=_key(self.seed, self.round, purpose))
        skipped = positions.start % _WORDS_PER_STEP
        philox.advance(positions.start // _WORDS_PER_STEP)
        words = philox.random_raw(skipped + len(positions))[skipped:]
        # 52 bits and a half step up: exact in float64, never 0 and never 1, so logarithms are finite.
        return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def _scattered(self, purpose: str, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Draws of rows that are no range: one part of the stream at a time, in bounded memory."""
        numbers, runs = np.empty(len(positions)), positions // _RUN
        for run in np.unique(runs):
            rows = np.flatnonzero(runs == run)
            first, last = int(positions[rows].min()), int(positions[rows].max())
            numbers[rows] = self.uniform(purpose, range(first, last + 1))[positions[rows] - first]
        return numbers

    def exponential(self, purpose: str, positions: Positions) -> NDArray[np.float64]:
        """One Exp(1) draw for each row position."""
        return -np.log(self.uniform(purpose, positions))

    def gumbel(self, purpose: str, positions: Positions) -> NDArray[np.float64]:
        """One standard Gumbel draw for each row position."""
        return -np.log(self.exponential(purpose, positions))
