"""Numbers and lists of names as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from askance.experiments.statistics.resample import FEWEST, Interval


def percent(share: float, digits: int = 1) -> str:
    """A share in percent: "12.3%"."""
    return "–" if np.isnan(share) else f"{100 * share:.{digits}f}%"


def points(share: float, *, sign: bool = False) -> str:
    """A difference of accuracies in percentage points."""
    return number(100 * share, 1, sign=sign)


def number(value: float, digits: int = 0, *, sign: bool = False) -> str:
    """With a true minus; a rounded zero has no sign."""
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{abs(value):,.{digits}f}"
    if not text.strip("0.,"):
        return text
    return ("−" if value < 0 else "+" if sign else "") + text


def p_value(p: float) -> str:
    """To three digits; four where three would hide on which side of 0.05 it is."""
    if np.isnan(p):
        return "–"
    if p < 0.001:
        return "< 0.001"
    return f"{p:.4f}" if f"{p:.3f}" == "0.050" else f"{p:.3f}"


def p_equals(p: float) -> str:
    """As it stands in a sentence: "p = 0.012", "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p_value(p)}"


def range_of_points(interval: Interval) -> str:
    """The ends of an interval in percentage points: "0.3 to 3.9"."""
    return f"{points(interval.low)} to {points(interval.high)}"


def plural(count: int, noun: str) -> str:
    """ "1 seed", "5 seeds"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def join_names(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def format_interval(interval: Interval | None, *, share: bool) -> str:
    """ "+2.1 [0.3, 3.9]", in points or in labels; "+2.1" of too few seeds for an interval."""
    if interval is None or np.isnan(interval.value):
        return "–"
    if np.isinf(interval.value):
        return "never there"
    digits, unit = (1, 100) if share else (0, 1)
    value = number(unit * interval.value, digits, sign=True)
    if interval.n < FEWEST:
        return value
    low = "never" if np.isinf(interval.low) else number(unit * interval.low, digits)
    return f"{value} [{low}, {number(unit * interval.high, digits)}]"
