"""What hangs on a choice: verdicts over experiments under other readings. None of them decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from askance.experiments.statistics.untrained import flags
from askance.paper.claims.case import Case
from askance.paper.claims.judge import Judged
from askance.paper.claims.stored import overall
from askance.report.markdown import table

ABOUT = (
    "Verdicts of the paper's claims over experiments that would be others with one choice made "
    "otherwise: one dataset left out, each in turn; round 0 counted, the first three rounds then being "
    "0–2; rounds in which a network did not train counted; intervals of 90%, which is 5% one-sided; "
    "datasets resampled in place of Student's interval; one penalty matrix of all seeds in place of "
    "those of five. The verdicts above stand."
)


def variants(case: Case) -> Iterator[tuple[str, Case]]:
    """Each with a name that ends "… without svhn", "… with round 0"."""
    reading, found = case.reading, case.experiments
    fewer = replace(reading, datasets=reading.datasets - 1)
    for dataset in dict.fromkeys(one.dataset for one in found):
        yield (
            f"without {dataset}",
            Case([one for one in found if one.dataset != dataset], fewer),
        )
    yield "with round 0", Case(found, replace(reading, first=0))
    if any(flags(one).any() for one in found):
        yield "with untrained networks", Case(found, replace(reading, flagged=True))
    yield "at 90%", Case(found, replace(reading, level=0.9))
    yield "with datasets resampled", Case(found, replace(reading, resample=True))
    if any(len(one.seeds) > (reading.block or 0) for one in found):
        yield "with one matrix of all seeds", Case(found, replace(reading, block=None))


def changes(case: Case, said: list[Judged]) -> dict[str, dict[str, list[str]]]:
    """Of claims that would change: the other verdicts, each with the choices that lead to it."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, variant in variants(case):
        for here, there in zip(said, overall(variant), strict=True):
            if there.verdict != here.verdict:
                found.setdefault(here.claim, {}).setdefault(there.verdict, []).append(name)
    return found


def beside(case: Case) -> str:
    """The claims that would be judged otherwise, and by which choice."""
    said = overall(case)
    verdicts = {one.claim: one.verdict for one in said}
    rows = [
        [claim, verdicts[claim], "; ".join(f"{v} {', '.join(names)}" for v, names in other.items())]
        for claim, other in changes(case, said).items()
    ]
    if not rows:
        return f"{ABOUT} None would change."
    return f"{ABOUT}\n\n{table(['claim', 'verdict', 'would be'], rows, left=3)}"
