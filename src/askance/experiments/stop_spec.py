"""A stopping rule in a spec: its name, and its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from askance import stopping
from askance.errors import AskanceError
from askance.experiments.reader import Expected, Node, Pairs, read
from askance.stopping import StoppingRule


@dataclass(frozen=True)
class StopSpec:
    """One stopping rule of an experiment.

    Example:
        >>> StopSpec.read(Node("stop", {"name": "plateau", "gain": 0.02})).label
        'plateau(gain=0.02)'
    """

    name: str
    options: Pairs = ()

    @classmethod
    def read(cls, node: Node) -> StopSpec:
        """From a spec's entry, a name or a table of a name and options, and where it is."""
        if isinstance(node.data, str):
            node = replace(node, data={"name": node.data})
        if not isinstance(node.data, Mapping):
            raise node.wrong('a stopping rule\'s name, or a table such as {name = "plateau"}')
        name = read(Annotated[str, Expected("the name of a stopping rule", bool)], node["name"])
        options = {key: read(Any, node[key]) for key in sorted(node.data) if key != "name"}
        spec = cls(name, tuple(options.items()))
        try:
            rule = spec.build()
        except AskanceError as error:
            raise node.error(str(error)) from None
        if "correct" in rule.needs:
            raise node.error(
                f"{spec.label} looks at each held-out item, and a store keeps the accuracy of each "
                f"round: leave level out"
            )
        return spec

    @property
    def label(self) -> str:
        """The name, and its options where it has some."""
        options = ", ".join(f"{key}={value!r}" for key, value in self.options)
        return f"{self.name}({options})" if options else self.name

    def build(self) -> StoppingRule:
        """The rule itself."""
        return stopping.get(self.name, **dict(self.options))

    def to_dict(self) -> dict[str, Any]:
        """As a spec's entry; `read` gives the same rule back."""
        return {"name": self.name, **dict(self.options)}
