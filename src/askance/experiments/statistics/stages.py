"""Stages of a run: all of its rounds, or three of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

EDGE = 3  # rounds that are early, and rounds that are late

Stage = Literal["all", "early", "late"]
Rounds = Stage | Literal["mid"]
"""All of them, or three: the first, those in the middle, the last."""


def positions(rounds: Sequence[int], stage: Rounds, first: int = 1) -> list[int]:
    """Where the rounds of a stage are. Rounds before `first` belong to none."""
    counted = [i for i, number in enumerate(rounds) if number >= first]
    if stage == "all":
        return counted
    if stage == "early":
        return [i for i in counted if rounds[i] < first + EDGE]
    middle = max(len(counted) - EDGE, 0) // 2
    return counted[-EDGE:] if stage == "late" else counted[middle : middle + EDGE]


def is_enough(kept: int, of: int) -> bool:
    """Whether at least half is left, and something."""
    return kept > 0 and 2 * kept >= of
