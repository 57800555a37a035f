"""Runs of variants: experiments of the paper with one choice made otherwise, in a folder of their own.

`judging.toml` names the folder. A variant is called after the experiment that it varies:
`cifar10-lenet-100` is `cifar10-lenet` with another schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from askance.experiments.spec import differences, load, names
from askance.experiments.statistics import untrained
from askance.experiments.statistics.table import ExperimentResults
from askance.paper.claims.case import Case
from askance.paper.suite import RULES, SUITE
from askance.report.facts import StoreFacts, read

_AMOUNTS = ("name", "seeds", "strategies", "precision")  # how much was run, and how fast


@dataclass(frozen=True, eq=False)
class VariantRuns:
    """The runs of a variant.

    Args:
        base: the experiment that it varies.
        results: every round, those in which a network did not train flagged for all rules of the seed.
    """

    base: str
    results: ExperimentResults
    store: StoreFacts | None

    @property
    def name(self) -> str:
        """The variant's name."""
        return self.results.name

    @property
    def differs(self) -> str:
        """What its spec has that the experiment's has not, in words."""
        if self.store is None:
            return "a table of results alone"
        other = differences(load(self.base).to_dict(), self.store.spec)
        return "; ".join(words for key, words in other.items() if key not in _AMOUNTS)


def variant_names() -> list[str]:
    """The variants that come with askance, in the order of the experiments they vary."""
    return [
        name
        for base in SUITE.experiments
        for name in sorted(names())
        if name.startswith(f"{base}-")
    ]


def read_variants(folder: Path) -> list[VariantRuns]:
    """Those of a folder, in the order of the experiments they vary; none where there is no folder."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return []
    facts = read(folder, SUITE)
    stores = {store.name: store for store in facts.stores}
    return [
        VariantRuns(base, untrained.shared(one), stores.get(one.name))
        for base in SUITE.experiments
        for one in facts.every_round
        if one.name.startswith(f"{base}-")
    ]


def swapped(case: Case, variants: Sequence[VariantRuns]) -> Iterator[tuple[str, Case]]:
    """The case with a variant in place of its experiment, where it has every seed of that.

    A variant that has a rule of the paper with other options, such as "grad(parameters='all')", takes
    its place with that rule in place of the paper's.
    """
    by_name = {one.name: one for one in case.experiments}
    for variant in variants:
        base = by_name.get(variant.base)
        if base is None or not set(base.seeds) <= set(variant.results.seeds):
            continue
        results = replace(variant.results.of_seeds(base.seeds), name=base.name)
        for name, other in _with_options(variant.name, results):
            rest = [other if one.name == base.name else one for one in case.experiments]
            yield f"with {name}", replace(case, experiments=rest)


def _with_options(name: str, results: ExperimentResults) -> Iterator[tuple[str, ExperimentResults]]:
    """The results with a rule that has options in place of the rule; as they are without one."""
    optioned = [rule for rule in results.methods if rule.partition("(")[0] in RULES and "(" in rule]
    if not optioned:
        yield name, results
    for rule in optioned:
        plain = rule.partition("(")[0]
        part = results.only(set(results.methods) - set(optioned) - {plain} | {rule})
        methods = tuple(plain if one == rule else one for one in part.methods)
        yield f"{name}: {rule}", replace(part, methods=methods)
