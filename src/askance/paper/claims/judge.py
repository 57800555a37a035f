"""How a claim is judged: an interval, and on which side of a limit it lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from askance.experiments.statistics.resample import Interval
from askance.report.formatting import number

CONFIRMED, DENIED, OPEN = "confirmed", "denied", "not shown"
UNJUDGED = "cannot be judged"
HALF = "half a point"
HALF_POINT = 0.005  # of accuracy: a rule that is no further behind has reached the other
RULE = (
    "Each claim is put as a difference that should be above a limit, which is 0 unless the claim says "
    "otherwise. It is **confirmed** where the 95% interval lies above the limit, **denied** where it "
    "lies below, and **not shown** where the limit is inside. It **cannot be judged** where the data "
    "are missing or are not the paper's, where networks did not train, or where too few seeds, "
    "rounds or datasets are left: then the recipe has failed, or is not here, and not the claim. "
    "Where each of some rules should be above each of others, the least of their differences is shown, "
    "with an interval that allows for every pair of them. What happens usually or typically is "
    "counted: in how many experiments the difference is above the limit, with at least those where it "
    "is significantly so (Holm's method over the experiments) and at most all but those where it is "
    "significantly below; confirmed where that is more than half of them whatever the rest are. There "
    "is no correction over claims: of twenty that are at their limit, expect one to be judged wrongly."
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


def verdict(found: Interval | None, limit: float = 0.0, least: int = 0) -> str:
    """What an interval says of a limit; nothing where there is none, or fewer than `least` values."""
    if found is None or np.isnan(found.low) or found.n < least:
        return UNJUDGED
    if not (found.low > limit or found.high < limit):
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
    least: int = 0,
    source: str = "stores",
) -> Judged:
    """A claim whose measure should be above `limit`; shown in `unit`s, percentage points by default.

    Args:
        least: of how many values the interval must be.
    """
    figure = "–" if found is None else shown(found, unit, digits)
    said = verdict(found, limit, least)
    if found is not None and found.n < least:
        measure += f"; {found.n} of the {least} that are needed"
    return Judged(claim, measure, figure, n if found else "–", said, source)


def counted_in(claim: str, measure: str, found: Interval | None, n: str, enough: bool) -> Judged:
    """A claim that should hold in more than half of the experiments.

    Args:
        found: in how many it holds.
        enough: whether there are enough of them to say so.
    """
    if found is None or not enough:
        return Judged(claim, measure, "–", "–", UNJUDGED)
    figure = f"{found.value:.0f} [{found.low:.0f}, {found.high:.0f}] of {found.n}"
    more = found.n // 2 + 1  # than half
    return Judged(claim, measure, figure, n, verdict(found, more - 0.5))


def shown(found: Interval, unit: float = 100, digits: int = 2) -> str:
    """ "+2.10 [0.30, 3.90]"; one observation has no interval."""
    value = number(unit * found.value, digits, sign=True)
    if np.isnan(found.low):
        return value
    return f"{value} [{number(unit * found.low, digits)}, {number(unit * found.high, digits)}]"
