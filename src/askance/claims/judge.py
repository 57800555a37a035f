"""How a claim is judged: an interval, and on which side of a limit it lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from askance.bench.stats.resample import Interval
from askance.report.words import number

CONFIRMED, DENIED, OPEN = "confirmed", "denied", "not shown"
HALF = "half a point"
HALF_POINT = 0.005  # of accuracy: a rule that is no further behind has reached the other
RULE = (
    "Each claim is put as a difference that should be above a limit, which is 0 unless the claim says "
    "otherwise. It is **confirmed** where the 95% interval lies above the limit, **denied** where it "
    "lies below, and **not shown** where the limit is inside or there is no interval. Where each of "
    "some rules should be above each of others, the least of their differences is shown, with an "
    "interval that allows for every pair of them. There is no correction over claims: of twenty that "
    "are at their limit, expect one to be judged wrongly."
)


@dataclass(frozen=True)
class Judged:
    """One claim.

    Args:
        claim: in a sentence.
        measure: what was measured.
        figure: it, with its interval; "–" where there is nothing to measure it from.
        n: of what the interval is.
        source: "stores", or the study's name.
    """

    claim: str
    measure: str
    figure: str
    n: str
    verdict: str
    source: str = "stores"


def verdict(found: Interval | None, limit: float = 0.0) -> str:
    if found is None or not (found.low > limit or found.high < limit):
        return OPEN
    return CONFIRMED if found.low > limit else DENIED


def judged(
    claim: str,
    measure: str,
    found: Interval | None,
    n: str,
    *,
    unit: float = 100,
    digits: int = 2,
    limit: float = 0.0,
    source: str = "stores",
) -> Judged:
    """A claim whose measure should be above `limit`; shown in `unit`s, percentage points by default."""
    figure = "–" if found is None else shown(found, unit, digits)
    return Judged(claim, measure, figure, n if found else "–", verdict(found, limit), source)


def shown(found: Interval, unit: float = 100, digits: int = 2) -> str:
    """ "+2.10 [0.30, 3.90]"; one observation has no interval."""
    value = number(unit * found.value, digits, sign=True)
    if np.isnan(found.low):
        return value
    return f"{value} [{number(unit * found.low, digits)}, {number(unit * found.high, digits)}]"
