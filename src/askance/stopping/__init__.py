"""When to stop asking: rules that look at the models of a run so far.

    rule = stopping.StablePredictions() | stopping.Budget(500)

`askance.loop(…, stop=rule)` ends the loop when the rule says so. An experiment says where each rule of
its `stop = […]` would have stopped. The labelling page uses the same rules.
"""

from dataclasses import fields
from typing import Any

from askance.errors import InputError, UnknownError
from askance.stopping.measures import Estimate, Gain, cohen_kappa, paired_gain, wilson
from askance.stopping.rules import (
    AllOf,
    AnyOf,
    Budget,
    Checkpoint,
    History,
    Plateau,
    StablePredictions,
    StoppingRule,
    TargetAccuracy,
    earlier,
    of,
)

__all__ = [
    "AllOf",
    "AnyOf",
    "Budget",
    "Checkpoint",
    "Estimate",
    "Gain",
    "History",
    "Plateau",
    "StablePredictions",
    "StoppingRule",
    "TargetAccuracy",
    "cohen_kappa",
    "earlier",
    "get",
    "names",
    "of",
    "paired_gain",
    "wilson",
]

_RULES: dict[str, type[StoppingRule]] = {
    rule.name: rule for rule in (StablePredictions, Plateau, Budget, TargetAccuracy)
}


def names() -> list[str]:
    """The rules that have a name."""
    return sorted(_RULES)


def get(name: str, **options: Any) -> StoppingRule:
    """The rule of that name, with its options.

    Example:
        >>> get("budget", labels=500)
        Budget(labels=500)
    """
    if name not in _RULES:
        raise UnknownError.of("stopping rule", name, names())
    rule = _RULES[name]
    known = [field.name for field in fields(rule)]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            raise UnknownError.of(f"option of {name}", option, known)
    try:
        return rule(**options)
    except TypeError as error:
        raise InputError(f"{name}: {error}; its options are {', '.join(known)}") from None
