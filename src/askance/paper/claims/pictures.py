"""The figures of REPRODUCTION.md, each with a caption that says what is not in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from askance.experiments.statistics.table import ExperimentResults
from askance.paper import studies
from askance.paper.claims.contents import PaperItem
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.losses import BLOCKS, judging, with_rules
from askance.paper.suite import SUITE
from askance.report.formatting import join_names, plural
from askance.report.markdown import plain

_GROUPS: dict[str, tuple[Sequence[str], Callable[[ExperimentResults], str]]] = {
    f"{BLOCKS}-backbone": (SUITE.backbones, lambda one: one.model),
    f"{BLOCKS}-dataset": (SUITE.datasets, lambda one: one.dataset),
}


def picture(evidence: Evidence, item: PaperItem) -> Iterator[str]:
    """The figure of an item and its caption; nothing where there is none."""
    if not item.figure or not (evidence.folder / item.figure).is_file():
        return
    about, lacking = plain(item.about), lacks(evidence, item)
    yield f"![{plain(item.number)}: {about}]({item.figure})"
    yield f"*{plain(item.number)}, ours: {about}.{' ' if lacking else ''}{plain(lacking)}*"


def panels(evidence: Evidence, item: PaperItem) -> str:
    """How many of an item's panels are here, and which are not."""
    names = SUITE.panels[item.panels]
    gone = [name for name in names if name in evidence.missing]
    lacking = f"; not here: {join_names(gone)}" if gone else ""
    return f"{len(names) - len(gone)} of {plural(len(names), 'panel')}{lacking}"


def lacks(evidence: Evidence, item: PaperItem) -> str:
    """In sentences, what the paper's figure has and ours has not; "" where it has everything."""
    name = Path(item.figure).stem
    if item.panels:
        drawn = SUITE.panels[item.panels]
        gone = [one for one in drawn if one in evidence.missing]
        return " ".join(filter(None, [_empty(gone), _seen(evidence, drawn)]))
    if name == f"{BLOCKS}-rounds":
        those = judging(evidence)
        names = join_names([one.name for one in those])
        return f"Of {len(those)} of the {len(SUITE.experiments)} experiments: {names}."
    if name in _GROUPS:
        return _groups(evidence, *_GROUPS[name])
    if name in evidence.studies and hasattr(evidence.studies[name].options, "datasets"):
        wanted = asdict(studies.get(name).full)["datasets"]
        result = evidence.studies[name]
        absent = set(getattr(result, "absent", ()))
        here = [one for one in result.options.datasets if one not in absent]
        gone = [one for one in wanted if one not in here]
        return f"Not in it: {join_names(gone)}." if gone else ""
    return ""


def _groups(
    evidence: Evidence, first: Sequence[str], of: Callable[[ExperimentResults], str]
) -> str:
    """Of the paper's panels those that are empty, and the experiments that are in none."""
    there = with_rules(evidence.every_round)
    empty = [name for name in first if not any(of(one) == name for one in there)]
    here = {one.name for one in there}
    gone = [
        name
        for name in SUITE.experiments
        if name not in here and set(name.split("-")) & (set(first) - set(empty))
    ]
    parts = [_empty(empty)] if empty else []
    if gone:
        parts.append(f"Not in the others: {join_names(gone)}.")
    parts.append(_seen(evidence, [one.name for one in there]))
    return " ".join(filter(None, parts))


def _seen(evidence: Evidence, names: Sequence[str]) -> str:
    """Which of some experiments are shown with seeds that decide nothing."""
    decide = {one.name for one in evidence.case.experiments}
    here = {one.name for one in evidence.experiments}
    those = [name for name in names if name in here - decide]
    return f"Of exploratory seeds alone: {join_names(those)}." if those else ""


def _empty(those: list[str]) -> str:
    if not those:
        return ""
    noun, verb = ("panel", "is") if len(those) == 1 else ("panels", "are")
    return f"The {noun} of {join_names(those)} {verb} empty."
