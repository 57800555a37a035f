"""What was picked from a source, and what came of reading it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.pools.leaders import Leaders, Skipped
from askance.pools.resume import forget
from askance.selection.selection import Explanation, explainer
from askance.strategies import Strategy


@dataclass(frozen=True, eq=False)
class PoolSelection:
    """The rows to label next.

    Args:
        leaders: the picked rows, best first, and how many rows were read, excluded and skipped.
        strategy: the rule that picked.
        reference: what the labelled set came to.
        engine: who did the work.
        seconds: from the question to the answer.
        how: in words, what a batch rule was given to pick from; "" for one pass of a pointwise rule.
        resume: the file of what is done, which `finished` removes.
    """

    leaders: Leaders
    strategy: Strategy
    reference: Any
    engine: str
    seconds: float
    how: str = ""
    resume: Path | None = None

    def __len__(self) -> int:
        return len(self.leaders)

    @property
    def ids(self) -> tuple[str, ...]:
        return self.leaders.ids

    @property
    def positions(self) -> NDArray[np.int64]:
        return self.leaders.positions

    @property
    def scores(self) -> NDArray[np.float64]:
        return self.leaders.scores

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return self.leaders.skipped

    def finished(self) -> None:
        """The answer is safe: forget what it was put together from."""
        if self.resume is not None:
            forget(self.resume)

    def rows(self) -> list[dict[str, Any]]:
        """One mapping a pick, best first: id, position, rank, score, pseudo_label, confidence, why."""
        return [
            {"id": name, "position": why.index, "rank": rank, **_told(why)}
            for rank, (name, why) in enumerate(zip(self.ids, self.explain(), strict=True), start=1)
        ]

    def explain(self) -> list[Explanation]:
        """Why each row was picked, in the order of the picks."""
        return explainer(self.strategy, self.leaders.block, self.scores, self.reference)()


def _told(why: Explanation) -> dict[str, Any]:
    told = asdict(why)
    del told["index"]
    plain = {key: told.pop(key) for key in ("score", "pseudo_label", "confidence")}
    return {**plain, "why": told}
