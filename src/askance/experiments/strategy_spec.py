"""A rule in a spec: its name, and the options that differ from its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from askance import strategies
from askance.errors import AskanceError
from askance.experiments.dotted import dotted
from askance.experiments.reader import Expected, Node, read
from askance.strategies import Strategy
from askance.strategies.base import check_one_model


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
    def of(cls, value: object) -> StrategySpec:
        """From a spec's entry: a name, or a table of a name and options."""
        return cls.read(Node("strategy", value))

    @classmethod
    def read(cls, node: Node) -> StrategySpec:
        """From a spec's entry and where it is."""
        if isinstance(node.data, StrategySpec):
            return node.data
        if isinstance(node.data, str):
            node = replace(node, data={"name": node.data})
        if not isinstance(node.data, Mapping):
            raise node.wrong(
                'a strategy\'s name, or a table such as {name = "powergrad", beta = 1.0}'
            )
        name = read(Annotated[str, Expected("the name of a rule", bool)], node["name"])
        try:
            default = strategies.get(name)
        except AskanceError as error:
            raise node["name"].error(str(error)) from None
        options = {key: value for key, value in node.data.items() if key != "name"}
        spec = cls(name, tuple(_differing(replace(node, data=options), default)))
        try:
            check_one_model(spec.build())
        except (AskanceError, TypeError) as error:
            raise node.error(f"{spec.label}: {error}") from None
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
            table[inner] = _listed(value)
        return entry


def label_of(entry: Mapping[str, Any]) -> str:
    """The label of a strategy's entry. The rule need not be installed."""
    options = [f"{key}={value!r}" for key, value in sorted(dotted(entry).items()) if key != "name"]
    return f"{entry['name']}({', '.join(options)})" if options else entry["name"]


def _differing(node: Node, default: Strategy) -> list[tuple[str, Any]]:
    """The options that differ from the rule's own, in alphabetical order."""
    names = strategies.options_of(default)
    options: list[tuple[str, Any]] = []
    for key, value in sorted(node.table().items()):
        if key not in names:
            try:
                strategies.get(default.name, **{key: value.data})  # the registry words the refusal
            except AskanceError as error:
                raise value.error(str(error)) from None
        standard = getattr(default, key)
        if isinstance(standard, Strategy):
            options += [(f"{key}.{name}", option) for name, option in _differing(value, standard)]
            continue
        # The type of its default, where that settles it.
        option = read(type(standard) if isinstance(standard, (int, float)) else Any, value)
        if option != standard:
            options.append((key, option))
    return options


def _listed(value: Any) -> Any:
    """As TOML or JSON holds it."""
    return list(map(_listed, value)) if isinstance(value, tuple) else value
