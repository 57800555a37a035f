"""What a study says of its draws: a mean with Student's interval, and in words."""

from __future__ import annotations

import numpy as np

from askance.experiments.statistics.clusters import clustered
from askance.experiments.statistics.resample import Interval
from askance.paper.studies.measures import Floats
from askance.report.formatting import number


def over_draws(values_S: Floats) -> Interval:
    """The mean of one value a draw, with Student's interval at 95%; of one draw it has no ends."""
    if not len(values_S):
        return Interval(np.nan, np.nan, np.nan, 0)
    return clustered(values_S, range(len(values_S)))


def said(mean: Interval, unit: float = 1, digits: int = 1, *, sign: bool = False) -> str:
    """ "+1.5 [0.4, 2.6]": the mean and its ends in multiples of 1/unit; one draw has no ends."""
    value = number(unit * mean.value, digits, sign=sign)
    if np.isnan(mean.low):
        return value
    return f"{value} [{number(unit * mean.low, digits)}, {number(unit * mean.high, digits)}]"


def sided(mean: Interval, above: str, below: str, neither: str) -> str:
    """Which of three words an interval bears out: above 0, below it, or neither."""
    if np.isnan(mean.low):
        return "cannot be judged on one draw"
    return above if mean.low > 0 else below if mean.high < 0 else neither
