"""What each key of a spec must be, as type hints that `experiments.reader` reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

from askance import oracles, strategies
from askance._io.filenames import LONGEST, is_path, is_safe
from askance.errors import InputError, UnknownError
from askance.experiments.reader import Expected, Node, Pairs, read
from askance.experiments.seeds import as_written, parse_seeds
from askance.experiments.stop_spec import StopSpec
from askance.experiments.strategy_spec import StrategySpec

Natural = Annotated[int, Expected("a whole number ≥ 0", lambda number: number >= 0)]
Positive = Annotated[int, Expected("a whole number ≥ 1", lambda number: number >= 1)]
Share = Annotated[float, Expected("a number between 0 and 1", lambda share: 0 < share < 1)]
Momentum = Annotated[float, Expected("a number in [0, 1)", lambda value: 0 <= value < 1)]
Rate = Annotated[float, Expected("a number > 0", lambda rate: rate > 0)]
Rates = Annotated[
    tuple[Rate, ...],
    Expected("a list of different numbers > 0", lambda rates: 0 < len(rates) == len(set(rates))),
]


def _first(value: str, _: Node) -> str:
    rule = strategies.get(value)
    if not rule.needs <= {"features"}:
        raise InputError(
            f"before there is a model and a label, {value} has not what it needs "
            f"({', '.join(sorted(rule.needs))}); begin with 'random' or 'maxherding'"
        )
    return value


FirstRule = Annotated[str, Expected("a rule that needs no model and no label", bool), _first]


@dataclass(frozen=True)
class Schedule:
    """`batch` points to start with, by the rule `first`, and at every query; `rounds` queries."""

    batch: Positive
    rounds: Natural
    first: FirstRule = "random"

    def to_dict(self) -> dict[str, Any]:
        """As TOML holds it; a random start is left out, so that it has one hash however written."""
        return {
            key: value for key, value in vars(self).items() if (key, value) != ("first", "random")
        }


@dataclass(frozen=True)
class RecipeSpec:
    """How a model is trained; several learning rates are swept once and the best is kept."""

    epochs: Positive
    batch_size: Positive = 8
    momentum: Momentum = 0.9
    learning_rates: Rates = (1e-4, 5e-4, 1e-3, 5e-3, 1e-2)


def _dataset(value: str, _: Node) -> str:
    names = import_module("askance.data").names()
    if not is_path(value) and value not in names:
        error = UnknownError.of("dataset", value, names)
        raise UnknownError(f"{error}; or a path to your own data, as in './{value}'")
    return value


def _model(value: str, _: Node) -> str:
    names = import_module("askance.models").names()
    is_function = re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", value)
    if not is_function and value not in names:
        error = UnknownError.of("model", value, names)
        raise UnknownError(f"{error}; or 'package.module:function'")
    return value


def _encoder(value: str, _: Node) -> str:
    import_module("askance.encoders").check_name(value)
    return value


def _imbalance(_: Pairs, node: Node) -> Pairs:
    for key, value in node.table().items():
        if key not in ("rare", "keep"):
            raise value.error(f"unknown key {value.key!r}; known: rare, keep")
    keep = read(Share, node["keep"]) if "keep" in node.data else 0.1
    return (("rare", read(Positive, node["rare"])), ("keep", keep))


def _seeds(value: int | str, _: Node) -> int | str:
    """In the shortest form: how many, or which. "0-4" becomes 5."""
    return value if isinstance(value, int) else as_written(parse_seeds(value))


def _strategies(rules: tuple[StrategySpec, ...], node: Node) -> tuple[StrategySpec, ...]:
    labels = [rule.label for rule in rules]
    for index, label in enumerate(labels):
        if label in labels[:index]:
            raise node[index].error(f"the strategy {label!r} is there twice")
    return rules


def _oracle(_: Pairs, node: Node) -> Pairs:
    kind = read(OracleKind, node["kind"])
    options = {key: read(float, node[key]) for key in sorted(node.data) if key != "kind"}
    for key, problem in oracles.problems(kind, options):
        raise node[key].error(str(problem))
    return (("kind", kind), *options.items())


# Runs go to a folder of this name where no other is given.
Name = Annotated[
    str,
    Expected(
        "a name of letters, digits, '-', '_' and '.' that can be a folder's: it begins with a letter "
        f"or digit, does not end in a dot, has at most {LONGEST} characters and is no device such as "
        "'con'",
        is_safe,
    ),
]
DatasetName = Annotated[
    str, Expected("a dataset's name, or a path to your own data", bool), _dataset
]
ModelName = Annotated[str, Expected("a model's name, or 'package.module:function'", bool), _model]
EncoderName = Annotated[str, Expected('an encoder\'s name, such as "minilm"', bool), _encoder]
Column = Annotated[str, Expected("the name of a column", bool)]
Columns = Annotated[
    str | tuple[Column, ...],
    Expected('the name of a column, several in a list, or "e*" for all that begin with e', bool),
]
Strategies = Annotated[
    tuple[StrategySpec, ...], Expected("a list of one or more strategies", bool), _strategies
]


def _stops(rules: tuple[StopSpec, ...], node: Node) -> tuple[StopSpec, ...]:
    labels = [rule.label for rule in rules]
    for index, label in enumerate(labels):
        if label in labels[:index]:
            raise node[index].error(f"the stopping rule {label!r} is there twice")
    return rules


Stops = Annotated[tuple[StopSpec, ...], Expected("a list of stopping rules"), _stops]
Seeds = Annotated[
    int | str,
    Expected(
        'a whole number ≥ 1, or which seeds as in "5-24"',
        lambda value: isinstance(value, str) or value >= 1,
    ),
    _seeds,
]
OracleKind = Annotated[str, Expected("the kind of oracle, such as 'truth'", bool)]
Rare = Annotated[Pairs, Expected("a table [imbalance]"), _imbalance]
Oracle = Annotated[Pairs, Expected("a table [oracle]"), _oracle]
