"""Nested options as one level of dotted keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def dotted(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The same values in the same order: `{"a": {"b": 1}}` is `{"a.b": 1}`."""
    flat: dict[str, Any] = {}
    for key, value in entry.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{inner}": each for inner, each in dotted(value).items()}
        else:
            flat[key] = value
    return flat
