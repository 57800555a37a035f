"""A suite: experiments and rules that belong together, and how results are shown beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from askance.experiments.statistics.table import BASELINE, in_order


@dataclass(frozen=True)
class Suite:
    """Which rules and experiments belong together; `PLAIN` knows the baseline alone.

    Args:
        name: starts the names of the figures that have the suite's rules alone.
        title: what the suite's rules are called in a report.
        citation: a sentence on where the suite comes from.
        rules: shown first, in this order; two or more of them get penalty matrices of their own.
        panels: by the name of a figure, the experiments whose curves are its panels.
        backbones, datasets: shown first, in this order.
    """

    name: str = ""
    title: str = ""
    citation: str = ""
    rules: tuple[str, ...] = (BASELINE,)
    panels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    backbones: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()

    @property
    def experiments(self) -> tuple[str, ...]:
        """The names of all experiments, in the order of the panels."""
        return tuple(name for names in self.panels.values() for name in names)

    def covers(self, experiments: Iterable[str]) -> bool:
        """Whether any of these is of the suite: an experiment of it, or named as a variant of one."""
        return any(name.startswith(self.experiments) for name in experiments)

    def sort(self, rules: Iterable[str]) -> tuple[str, ...]:
        """The suite's rules first, in its order, then the others by name."""
        return in_order(rules, self.rules)


PLAIN = Suite()
