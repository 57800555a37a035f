"""How a claim is judged: an interval, and on which side of a limit it lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from askance.experiments.statistics.resample import Interval
from askance.paper.claims.case import LEAST_SEEDS, Case
from askance.report.formatting import number

CONFIRMED, DENIED, OPEN = "confirmed", "denied", "not shown"
UNJUDGED = "cannot be judged"
HALF = "half a point"
HALF_POINT = 0.005  # of accuracy: a rule that is no further behind has reached the other
RULE = """\
Each claim is put as a difference that should be above a limit, which is 0 unless the claim says
otherwise.

- **Confirmed**: the 95% interval lies above the limit. **Denied**: it lies below. **Not shown**: the
  limit is inside.
- **Cannot be judged**: the data are missing or are not the paper's, networks did not train, or too few
  seeds, rounds or datasets are left. Then the recipe has failed, or is not here, and not the claim.
- *Each of some rules above each of others*: the least of the differences is shown. The upper end of its
  interval allows for every pair. So to deny such a claim takes more than to deny one of its pairs.
- *Usually, typically*: in how many experiments the difference is above the limit. At least those count
  where it is significantly so (Holm's method over the experiments), and at most all but those where it
  is significantly below. Confirmed where that is more than half of them, whatever the rest are.
- There is no correction over claims: of twenty that are at their limit, expect one to be judged
  wrongly."""


@dataclass(frozen=True)
class Measurement:
    """What a claim is judged by.

    Args:
        what: what was measured, in words.
        interval: the number with its interval; None where there is nothing to measure it from.
        n: how many values it is the mean of, in words.
        limit: what it should be above.
        least: how many values it must be the mean of, so that the claim can be judged.
        unit, digits: how the number is shown; in percentage points by default.
        figure: the number in words, where it is shown in another way.
        valid: False where the recipe failed, so that the number says nothing of the claim.
        of_wins: whether it is made from penalty matrices, so that it depends on what counts as a win.
        rests_on: numbers behind the interval, where two kinds of data may give the same one.
    """

    what: str
    interval: Interval | None = None
    n: str = "–"
    limit: float = 0.0
    least: int = LEAST_SEEDS
    unit: float = 100
    digits: int = 2
    figure: str = ""
    valid: bool = True
    of_wins: bool = False
    rests_on: tuple[float, ...] = ()


Measure = Callable[[Case], Measurement]
Claims = Mapping[str, Measure]
"""Claims in words, each with what it is judged by: its number should be above the limit."""


@dataclass(frozen=True)
class JudgedClaim:
    """One claim with its verdict.

    Args:
        claim: in a sentence.
        measure: what was measured.
        figure: the number with its interval; "–" where there is nothing to measure it from.
        n: how many values it is the mean of.
        source: "stores", or the study's name.
        why: why it cannot be judged, where the data that decide are missing.
        basis: every number that the verdict rests on; none where there is nothing to measure.
    """

    claim: str
    measure: str
    figure: str
    n: str
    verdict: str
    source: str = "stores"
    why: str = ""
    basis: tuple[float, ...] = ()


def judge(claims: Claims, case: Case) -> list[JudgedClaim]:
    """Every claim over experiments, judged on the same case."""
    return [judged(claim, measure(case)) for claim, measure in claims.items()]


def judged(claim: str, measured: Measurement, source: str = "stores") -> JudgedClaim:
    """One claim, judged by what was measured."""
    interval, what = measured.interval, measured.what
    if interval is None:
        return JudgedClaim(claim, what, "–", "–", UNJUDGED, source)
    figure = measured.figure or shown(interval, measured.unit, measured.digits)
    basis = (interval.value, interval.low, interval.high, interval.n, *measured.rests_on)
    if not measured.valid:
        return JudgedClaim(claim, what, figure, measured.n, UNJUDGED, source, basis=basis)
    if interval.n < measured.least:
        what += f"; {interval.n} of the {measured.least} that are needed"
    said = verdict(interval, measured.limit, measured.least)
    return JudgedClaim(claim, what, figure, measured.n, said, source, basis=basis)


def verdict(interval: Interval, limit: float = 0.0, least: int = 0) -> str:
    """What an interval of at least `least` values says of a limit."""
    if np.isnan(interval.low) or interval.n < least:
        return UNJUDGED
    if not (interval.low > limit or interval.high < limit):
        return OPEN
    return CONFIRMED if interval.low > limit else DENIED


def shown(interval: Interval, unit: float = 100, digits: int = 2) -> str:
    """ "+2.10 [0.30, 3.90]"; one value has no interval."""
    value = number(unit * interval.value, digits, sign=True)
    if np.isnan(interval.low):
        return value
    return (
        f"{value} [{number(unit * interval.low, digits)}, {number(unit * interval.high, digits)}]"
    )
