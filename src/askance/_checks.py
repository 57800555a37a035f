"""Checks that the options of several packages share."""

from __future__ import annotations

import operator
from typing import Any

from askance.errors import InputError


def check_whole(name: str, value: Any, least: int, *, or_none: bool = False) -> int:
    """The option as an int; an error unless it is a whole number (no bool) that is ≥ `least`.

    With `or_none` the option may be None, and `least` is returned.
    """
    if or_none and value is None:
        return least
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        expected = f"a whole number ≥ {least}{' or None' if or_none else ''}"
        raise InputError(f"{name} must be {expected}, got {value!r}")
    return number
