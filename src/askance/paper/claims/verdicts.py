"""Claims as a table: what is judged, and beside it what the data said that were seen before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from askance.experiments.seeds import seed_ranges
from askance.experiments.statistics.blocks import whole
from askance.experiments.statistics.table import ExperimentResults
from askance.experiments.statistics.untrained import flags, is_recorded
from askance.paper.claims.case import Case
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.judge import CONFIRMED, DENIED, OPEN, UNJUDGED, Judged
from askance.paper.suite import RULES
from askance.report.formatting import join_names, plural
from askance.report.markdown import table

PLAN = "JUDGING.md"  # the rule in words, where a folder has it
Claims = Callable[[Case], list[Judged]]
Studied = Callable[[dict[str, Any]], list[Judged]]


def both(
    evidence: Evidence, claims: Claims, studied: Studied = lambda results: []
) -> tuple[list[Judged], list[Judged]]:
    """What is judged, claim by claim, and what the same rule says of the data that were seen before.

    Args:
        claims: from experiments.
        studied: from the results of studies.
    """
    later, earlier = _results(evidence)
    fresh = claims(evidence.fresh or Case([])) + studied(later)
    explored = (claims(evidence.explored) if evidence.explored else []) + studied(earlier)
    judged = {one.claim for one in fresh}
    absent = [
        Judged(one.claim, one.measure, "–", "–", UNJUDGED, one.source)
        for one in explored
        if one.claim not in judged
    ]
    return fresh + absent, explored


def _results(evidence: Evidence) -> tuple[dict[str, Any], dict[str, Any]]:
    """Results of studies that decide, and those whose draws were seen before."""
    start = evidence.judging.studies
    later = {name: r for name, r in evidence.studies.items() if r.options.seed >= start}
    seen = {name: r for name, r in evidence.studies.items() if name not in later}
    return later, evidence.earlier | seen


def verdicts(evidence: Evidence, found: tuple[Sequence[Judged], Sequence[Judged]]) -> str:
    """How many were judged, and one row a claim; a column for each kind of data there is."""
    fresh, explored = found
    columns = ["claim", "verdict", "figure [95%]", "n", "what was measured", "from"]
    if not explored:
        rows = [_row(one) for one in fresh]
    elif evidence.is_exploratory:
        columns[1] = "exploratory verdict"
        fresh = explored
        rows = [_row(one) for one in explored]
    else:
        columns.insert(5, "exploratory")
        earlier = {one.claim: f"{one.verdict}: {one.figure}, {one.n}" for one in explored}
        rows = [[*_row(one)[:5], earlier.get(one.claim, "–"), one.source] for one in fresh]
    count = Counter(one.verdict for one in fresh)
    said = [f"{count[verdict]} {verdict}" for verdict in (CONFIRMED, DENIED, OPEN, UNJUDGED)]
    return f"{plural(len(fresh), 'row')}: {join_names(said)}.\n\n" + table(
        columns, rows, left=len(columns)
    )


def _row(one: Judged) -> list[str]:
    return [one.claim, one.verdict, one.figure, one.n, one.measure, one.source]


def explained(evidence: Evidence) -> str:
    """Which seeds decide, what cannot be judged, and what was left out."""
    parts = [_deciding(evidence)] if evidence.judging.seeds is not None else []
    for entry in evidence.judging.unfit:
        seeds = seed_ranges(entry.seeds)
        parts.append(f"- {entry.experiment}, seeds {seeds}, cannot be judged: {entry.why}.")
    return "\n".join([*parts, *_incomplete(evidence), *_untrained(evidence.case.experiments)])


def _deciding(evidence: Evidence) -> str:
    decide = seed_ranges(evidence.judging.seeds or ())
    seen = seed_ranges(evidence.judging.exploratory)
    rule = ""
    if (evidence.folder / PLAN).is_file():
        rule = f" The rule is that of [{PLAN}]({PLAN})."
    if not evidence.is_exploratory:
        beside = f" What seeds {seen} say was seen before, is exploratory and stands beside it."
        return (
            f"**Seeds {decide} decide.**{rule}{beside if seen else ''} In the tables below, "
            f"experiments without these seeds are shown with those they have.\n"
        )
    later = f" Seeds {decide} decide, and none of them is here yet." if decide != seen else ""
    return f"**Exploratory (seeds {seen}).** They were seen before they were judged.{rule}{later}\n"


def _incomplete(evidence: Evidence) -> list[str]:
    """The seeds that should decide and lack runs or rounds of the paper's rules."""
    lines = []
    for one in evidence.fresh.experiments if evidence.fresh else ():
        lacking = set(evidence.judging.seeds or ()) - set(whole(one.only(RULES)).seeds)
        if lacking:
            lines.append(f"- {one.name}: seeds {seed_ranges(lacking)} are not complete.")
    return lines


def _untrained(found: Sequence[ExperimentResults]) -> list[str]:
    """Rounds that are left out because a network did not train, and where that is not known."""
    lines = [
        f"- {one.name}: {plural(int(flags(one).sum()), 'round')} of {flags(one).size} left out for "
        f"every rule of the seed: a network did not train."
        for one in found
        if flags(one).any()
    ]
    blind = [one.name for one in found if not is_recorded(one)]
    if blind:
        lines.append(
            f"- Training accuracy was not recorded, so that no round is left out: {join_names(blind)}."
        )
    return lines
