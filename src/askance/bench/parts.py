"""The parts of a spec, each read from its table and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from askance import oracles
from askance._io.filenames import LONGEST, is_path, is_safe
from askance.bench.check import Reader, is_integer, is_number, is_plain, shown
from askance.bench.seeds import as_written, parse_seeds
from askance.bench.strategy_spec import StrategySpec
from askance.errors import AskanceError, InputError, UnknownError

LEARNING_RATES = (1e-4, 5e-4, 1e-3, 5e-3, 1e-2)

Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Schedule:
    """`batch` points to start with and at every query; `rounds` queries."""

    batch: int
    rounds: int

    @classmethod
    def of(cls, table: Reader) -> Schedule:
        return cls(table.integer("batch", 1), table.integer("rounds", 0))


@dataclass(frozen=True)
class RecipeSpec:
    """How a model is trained; several learning rates are swept once and the best is kept."""

    epochs: int
    batch_size: int = 8
    momentum: float = 0.9
    learning_rates: tuple[float, ...] = LEARNING_RATES

    @classmethod
    def of(cls, table: Reader) -> RecipeSpec:
        momentum = table.take(
            "momentum", "a number in [0, 1)", lambda v: is_number(v) and 0 <= v < 1, cls.momentum
        )
        rates = table.take(
            "learning_rates",
            "a list of different numbers > 0",
            lambda v: (
                isinstance(v, list)
                and all(is_number(rate) and rate > 0 for rate in v)
                and 0 < len(v) == len(set(v))
            ),
            cls.learning_rates,
        )
        return cls(
            table.integer("epochs", 1),
            table.integer("batch_size", 1, cls.batch_size),
            float(momentum),
            tuple(map(float, rates)),
        )


# The keys of each table; those of a model and of an oracle are theirs to check.
KEYS = {
    "[schedule]": [field.name for field in fields(Schedule)],
    "[recipe]": [field.name for field in fields(RecipeSpec)],
}


def name(top: Reader) -> str:
    """Runs go to a folder of this name where no other is given, so it must be safe as one."""
    return top.take(
        "name",
        "a name of letters, digits, '-', '_' and '.' that can be a folder's: it begins with a letter "
        f"or digit, does not end in a dot, has at most {LONGEST} characters and is no device such as "
        "'con'",
        lambda v: isinstance(v, str) and is_safe(v),
    )


def seeds(top: Reader, default: int | str) -> int | str:
    """As they are written: how many, or which; "0-4" is written 5."""
    value = top.take(
        "seeds",
        'a whole number ≥ 1, or which seeds as in "5-24"',
        lambda v: isinstance(v, str) or (is_integer(v) and v >= 1),
        default,
    )
    if isinstance(value, int):
        return value
    try:
        return as_written(parse_seeds(value))
    except InputError as error:
        raise top.error("seeds", str(error)) from None


def dataset(top: Reader) -> str:
    value = top.text("dataset", "a dataset's name, or a path to your own data")
    if is_path(value):
        return value
    known = import_module("askance.data").names()
    if value not in known:
        error = UnknownError.of("dataset", value, known)
        raise top.error("dataset", f"{error}; or a path to your own data, as in './{value}'")
    return value


def label(top: Reader, data: str) -> str | None:
    value = top.text("label", "the name of a column", None)
    if value is not None and not is_path(data):
        raise top.error("label", f"label is for a table of your own; {data!r} knows its labels")
    return value


def model(top: Reader) -> str:
    value = top.text("model", "a model's name, or 'package.module:function'")
    if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", value):
        return value
    known = import_module("askance.models").names()
    if value not in known:
        error = UnknownError.of("model", value, known)
        raise top.error("model", f"{error}; or 'package.module:function'")
    return value


def rules(top: Reader) -> tuple[StrategySpec, ...]:
    entries = top.take(
        "strategies", "a list of one or more strategies", lambda v: isinstance(v, list) and v != []
    )
    found: dict[str, StrategySpec] = {}
    for index, entry in enumerate(entries):
        place = (*top.place, "strategies", index)
        rule = StrategySpec.of(entry, top.source, place)
        if rule.label in found:
            raise top.source.error(place, f"the strategy {rule.label!r} is there twice")
        found[rule.label] = rule
    return tuple(found.values())


def model_options(table: Reader) -> Pairs:
    for key, value in table.data.items():
        if not is_plain(value):
            raise table.error(
                key,
                f"{table.name_of(key)} must be text, a number, true, false or a list of them, "
                f"got {shown(value)}",
            )
    return tuple((key, _frozen(value)) for key, value in sorted(table.data.items()))


def oracle(table: Reader) -> Pairs:
    kind = table.text("kind", "the kind of oracle, such as 'truth'")
    others = {key: value for key, value in table.data.items() if key != "kind"}
    for key, value in others.items():
        if not is_number(value):
            raise table.error(key, f"{table.name_of(key)} must be a number, got {shown(value)}")
    options = {key: float(value) for key, value in sorted(others.items())}
    try:
        oracles.check(kind, options)
    except AskanceError as error:
        # At the option the refusal speaks of; where it names none, what is wrong is the kind.
        named = (key for key in options if re.search(rf"\b{re.escape(key)}\b", str(error)))
        raise table.error(next(named, "kind"), str(error)) from None
    return (("kind", kind), *options.items())


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
