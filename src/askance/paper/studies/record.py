"""A study's result from its JSON: what was measured once can be drawn and described again."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from askance.errors import DataError


def from_json(kind: Any, value: Any) -> Any:
    """`value`, parsed from JSON, as its type `kind`: a frozen dataclass, or what one may hold.

    Example:
        >>> from_json(tuple[float, ...] | None, [1.0, 2.0])
        (1.0, 2.0)
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (other,) = (one for one in inner if one is not types.NoneType)
        return None if value is None else from_json(other, value)
    if is_dataclass(kind) and isinstance(value, Mapping):
        hints = get_type_hints(kind)
        if set(hints) != set(value):
            odd = ", ".join(sorted(set(hints) ^ set(value)))
            raise DataError(f"not a result of this version of the study: {odd}")
        return kind(**{key: from_json(hints[key], one) for key, one in value.items()})  # type: ignore[operator]
    if origin is tuple and isinstance(value, (list, tuple)):
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else list(inner)
        return tuple(from_json(one, part) for one, part in zip(kinds, value, strict=True))
    if origin is dict and isinstance(value, Mapping):
        return {key: from_json(inner[1], one) for key, one in value.items()}
    allowed = (str,) if origin is Literal else (int, float) if kind is float else (kind,)
    if not isinstance(value, allowed):
        raise DataError(f"not a result of this version of the study: {value!r} is no {kind}")
    return value
