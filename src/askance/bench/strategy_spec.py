"""A rule as an experiment names it: its name, and the options that differ from its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from askance import strategies
from askance.bench.check import Reader, Source, is_integer, is_number, is_plain, shown
from askance.bench.dotted import dotted
from askance.bench.lines import Place
from askance.errors import AskanceError
from askance.strategies import Strategy


@dataclass(frozen=True)
class StrategySpec:
    """One rule of an experiment.

    An option that says the default is left out and numbers take the default's type, so that a rule has
    one label, however it was written. An option of a rule inside the rule is dotted: `grad.bias`.

    Example:
        >>> StrategySpec.of({"name": "powergrad", "beta": 1}).label
        'powergrad(beta=1.0)'
        >>> StrategySpec.of({"name": "powergrad", "beta": 2.0}).label
        'powergrad'
    """

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, value: object, source: Source | None = None, place: Place = ()) -> StrategySpec:
        """From a spec's entry: a name, or a table of a name and options."""
        source = source or Source("strategy")
        if isinstance(value, StrategySpec):
            return value
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, Mapping):
            raise source.error(
                place,
                "a strategy must be a name, or a table such as "
                f'{{name = "powergrad", beta = 1.0}}; got {shown(value)}',
            )
        reader = Reader(source, place, value)
        name = reader.text("name", "the name of a rule")
        spec = cls(name, tuple(_options(reader, name)))
        try:
            spec.build()
        except (AskanceError, TypeError) as error:
            raise source.error(place, f"{spec.label}: {error}") from None
        return spec

    @property
    def label(self) -> str:
        """The name, and its options where it has some: what a store and a table call the rule."""
        return label_of(self.to_dict())

    def build(self) -> Strategy:
        """The rule itself."""
        entry = self.to_dict()
        default = strategies.get(entry.pop("name"))
        for key, value in entry.items():
            if isinstance(value, dict):
                entry[key] = strategies.get(getattr(default, key).name, **value)
        return strategies.get(self.name, **entry)

    def to_dict(self) -> dict[str, Any]:
        """As a spec's entry; `of` gives the same rule back."""
        entry: dict[str, Any] = {"name": self.name}
        for key, value in self.options:
            outer, _, inner = key.rpartition(".")
            table = entry.setdefault(outer, {}) if outer else entry
            table[inner] = list(value) if isinstance(value, tuple) else value
        return entry


def label_of(entry: Mapping[str, Any]) -> str:
    """The label of a strategy's entry; a stored one need not be installed here."""
    options = [f"{key}={value!r}" for key, value in sorted(dotted(entry).items()) if key != "name"]
    return f"{entry['name']}({', '.join(options)})" if options else entry["name"]


def _options(reader: Reader, rule: str) -> list[tuple[str, Any]]:
    """The options beside `name` that differ from the rule's own, in alphabetical order."""
    try:
        default = strategies.get(rule)
    except AskanceError as error:
        raise reader.error("name", str(error)) from None
    options = {key: value for key, value in reader.data.items() if key != "name"}
    return _differing(replace(reader, data=options), default)


def _differing(reader: Reader, default: Strategy) -> list[tuple[str, Any]]:
    known = strategies.options_of(default)
    options: list[tuple[str, Any]] = []
    for key, value in sorted(reader.data.items()):
        if key not in known:
            try:
                strategies.get(default.name, **{key: value})  # the registry words the refusal
            except AskanceError as error:
                raise reader.error(key, str(error)) from None
        standard = getattr(default, key)
        if isinstance(standard, Strategy):
            inner = _differing(reader.table(key), standard)
            options += [(f"{key}.{name}", option) for name, option in inner]
        else:
            option = _option(reader, key, standard)
            if option != standard:
                options.append((key, option))
    return options


def _option(reader: Reader, key: str, default: object) -> Any:
    """The value of an option, of the type of its default where that settles it."""
    if isinstance(default, bool):
        return reader.take(key, "true or false", lambda v: isinstance(v, bool))
    if isinstance(default, int):
        return reader.take(key, "a whole number", is_integer)
    if isinstance(default, float):
        return float(reader.take(key, "a number", is_number))
    value = reader.take(key, "text, a number, true, false or a list of them", is_plain)
    return tuple(value) if isinstance(value, list) else value
