"""How verdicts over experiments depend on a choice: the same claims under other readings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from askance.experiments.statistics.untrained import flags
from askance.paper.claims.case import Case
from askance.paper.claims.judge import judge
from askance.paper.claims.stores import OVERALL
from askance.report.markdown import table

ABOUT = (
    "Verdicts of the paper's claims over experiments that would be others with one choice made "
    "otherwise: one dataset left out, each in turn; round 0 counted, the first three rounds then being "
    "0–2; rounds in which a network did not train counted; intervals of 90%, which is 5% one-sided; "
    "datasets resampled in place of Student's interval; one penalty matrix of all seeds in place of "
    "those of five. The verdicts above stand."
)


def variants(case: Case) -> Iterator[tuple[str, Case]]:
    """The case with one choice made otherwise, and a name such as "without svhn" or "with round 0"."""
    reading, experiments = case.reading, case.experiments
    fewer = replace(reading, datasets=reading.datasets - 1)
    for dataset in dict.fromkeys(one.dataset for one in experiments):
        rest = [one for one in experiments if one.dataset != dataset]
        yield f"without {dataset}", Case(rest, fewer)
    readings = {"with round 0": replace(reading, first=0)}
    if any(flags(one).any() for one in experiments):
        readings["with untrained networks"] = replace(reading, flagged=True)
    readings["at 90%"] = replace(reading, level=0.9)
    readings["with datasets resampled"] = replace(reading, resample=True)
    if any(len(one.seeds) > (reading.block or 0) for one in experiments):
        readings["with one matrix of all seeds"] = replace(reading, block=None)
    for name, other in readings.items():
        yield name, Case(experiments, other)


def changes(case: Case) -> dict[tuple[str, str], dict[str, list[str]]]:
    """By claim and verdict: what the verdict would be instead, and with which choices."""
    before = judge(OVERALL, case)
    changed: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name, variant in variants(case):
        for here, there in zip(before, judge(OVERALL, variant), strict=True):
            if there.verdict != here.verdict:
                others = changed.setdefault((here.claim, here.verdict), defaultdict(list))
                others[there.verdict].append(name)
    return changed


def section(case: Case) -> str:
    """The claims that would be judged otherwise, and by which choice."""
    rows = [
        [claim, verdict, "; ".join(f"{v} {', '.join(names)}" for v, names in other.items())]
        for (claim, verdict), other in changes(case).items()
    ]
    if not rows:
        return f"{ABOUT} None would change."
    return f"{ABOUT}\n\n{table(['claim', 'verdict', 'would be'], rows, left=3)}"
