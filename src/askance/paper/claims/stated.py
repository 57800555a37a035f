"""Whether what was run is what the paper states: specs of stores, and options of studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from askance.experiments.dotted import dotted
from askance.paper.claims.contents import PaperItem
from askance.paper.claims.evidence import Evidence
from askance.paper.suite import SUITE
from askance.report.formatting import join_names, plural


def as_stated(evidence: Evidence, item: PaperItem) -> tuple[str, str]:
    """What was looked at, and whether it says what the paper says."""
    if item.study:
        return f"the options of the study {item.study}", _of_study(evidence, item)
    return "the specs in the stores", _of_experiments(evidence, item)


def _of_study(evidence: Evidence, item: PaperItem) -> str:
    result = evidence.studies.get(item.study)
    if result is None:
        return "the study is not here"
    options = dotted(asdict(result.options))
    odd = [key for key, wanted in item.spec if not _says(options, ((key, wanted),))]
    return f"differs in {join_names(odd)}" if odd else "as the paper says"


def _of_experiments(evidence: Evidence, item: PaperItem) -> str:
    """In how many experiments the store's spec says what the paper says, and which are not here."""
    wanted = item.of or SUITE.experiments
    here = [one.name for one in evidence.experiments if one.name in wanted]
    specs = {
        name: [dotted(store.spec) for store in stores]
        for name in here
        if (stores := evidence.stores(name))
    }
    odd = [name for name, those in specs.items() if not all(_says(s, item.spec) for s in those)]
    if any(key == "recipe.learning_rates" for key, _ in item.spec):
        odd += [name for name in specs if name not in odd and not _has_best_rate(evidence, name)]
    parts = []
    if specs:
        parts.append(
            f"as the paper says in {len(specs) - len(odd)} of {plural(len(specs), 'experiment')}"
        )
    if odd:
        parts.append(f"differs in {join_names(odd)}")
    gone = [name for name in item.of if name not in here]
    if gone:
        parts.append(f"not here: {join_names(gone)}")
    return "; ".join(parts) or "no store is here"


def _has_best_rate(evidence: Evidence, name: str) -> bool:
    """Whether each store has the rate that was the best on validation."""
    for store in evidence.stores(name):
        of_rate: dict[float, list[float]] = {}
        for one in store.sweep:
            of_rate.setdefault(one.learning_rate, []).append(one.accuracy)
        best = max((sum(each) / len(each) for each in of_rate.values()), default=None)
        taken = of_rate.get(store.info["learning_rate"], [])
        if best is not None and (not taken or sum(taken) / len(taken) < best):
            return False
    return True


def _says(spec: Mapping[str, Any], wanted: tuple[tuple[str, Any], ...]) -> bool:
    """Whether every key has the value, or one of the values at the same place of each list."""
    places = []
    for key, allowed in wanted:
        value = spec.get(key)
        value = tuple(value) if isinstance(value, list) else value
        if isinstance(allowed, tuple) and value != allowed:
            places.append({at for at, one in enumerate(allowed) if one == value})
        elif value != allowed:
            return False
    return not places or bool(set.intersection(*places))
