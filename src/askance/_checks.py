"""What options have in common, checked with one message."""

from __future__ import annotations

from askance.errors import InputError


def check_whole(name: str, value: object, least: int, *, or_none: bool = False) -> None:
    """Refuse an option that is no whole number, such as a bool, or is below `least`."""
    if or_none and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        expected = f"a whole number ≥ {least}{' or None' if or_none else ''}"
        raise InputError(f"{name} must be {expected}, got {value!r}")
