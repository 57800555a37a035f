"""Claims as a table: what is judged, and beside it what the data said that were seen before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from askance.experiments.seeds import seed_ranges
from askance.experiments.statistics.blocks import whole
from askance.experiments.statistics.table import ExperimentResults
from askance.experiments.statistics.untrained import flags, is_recorded
from askance.paper.claims.case import Case
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.judge import (
    CONFIRMED,
    DENIED,
    OPEN,
    UNJUDGED,
    Claims,
    JudgedClaim,
    judge,
)
from askance.paper.claims.of_studies import Results
from askance.paper.claims.single import ABSENT
from askance.paper.suite import RULES
from askance.report.formatting import join_names, plural
from askance.report.markdown import table

PLAN = "JUDGING.md"  # the rule in words, where a folder has it
OfStudies = Callable[[Results], list[JudgedClaim]]
_SEEN = "seen before the rule was written"


def both(
    evidence: Evidence, claims: Claims, of_studies: OfStudies = lambda results: []
) -> tuple[list[JudgedClaim], list[JudgedClaim]]:
    """The claims judged on the data that decide, and by the same rule on data that were seen before.

    Args:
        claims: over experiments.
        of_studies: judges those over the results of studies.
    """
    start = evidence.judging.studies
    later = {name: r for name, r in evidence.studies.items() if r.options.seed >= start}
    earlier = {name: r for name, r in evidence.studies.items() if name not in later}
    fresh = judge(claims, evidence.fresh or Case([])) + of_studies(later)
    explored = judge(claims, evidence.explored) if evidence.explored else []
    explored += of_studies(evidence.earlier | earlier)
    before, judged = {one.claim: one for one in explored}, {one.claim for one in fresh}
    told = [_explained(evidence, one, before.get(one.claim)) for one in fresh]
    absent = [
        _explained(evidence, replace(one, figure="–", n="–", verdict=UNJUDGED, basis=()), one)
        for one in explored
        if one.claim not in judged
    ]
    return told + absent, explored


def _explained(evidence: Evidence, one: JudgedClaim, seen: JudgedClaim | None) -> JudgedClaim:
    """The claim with the reason, where what decides is missing, and other data may be here."""
    if one.figure != "–" or seen is None:
        return one
    if one.source == "stores":
        only = f"only seeds {seed_ranges(evidence.judging.exploratory)} are here, {_SEEN}"
        why = only if seen.figure != "–" else "no run of it is here"
    elif seen.figure == "–":
        why = seen.measure
    else:
        first = (evidence.studies | evidence.earlier)[one.source].options.seed
        decide = f"those from seed {evidence.judging.studies} on decide"
        why = f"only draws from seed {first} on are here, {_SEEN}; {decide}"
    what = "" if one.measure in (ABSENT, why) else f"{one.measure}; "
    return replace(one, measure=what + why, why=why)


def verdicts(evidence: Evidence, claims: Claims, of_studies: OfStudies = lambda results: []) -> str:
    """How many were judged, and one row a claim; a column for each kind of data there is."""
    fresh, explored = both(evidence, claims, of_studies)
    columns = ["claim", "verdict", "figure [95%]", "n", "what was measured", "from"]
    if explored and evidence.is_exploratory:
        columns[1] = "exploratory verdict"
        fresh = explored
    rows = [[one.claim, one.verdict, one.figure, one.n, one.measure, one.source] for one in fresh]
    if explored and not evidence.is_exploratory:
        columns.insert(5, "exploratory")
        earlier = {one.claim: f"{one.verdict}: {one.figure}, {one.n}" for one in explored}
        for row in rows:
            row.insert(5, earlier.get(row[0], "–"))
    count = Counter(one.verdict for one in fresh)
    said = [f"{count[verdict]} {verdict}" for verdict in (CONFIRMED, DENIED, OPEN, UNJUDGED)]
    return f"{plural(len(fresh), 'row')}: {join_names(said)}.\n\n" + table(
        columns, rows, left=len(columns)
    )


def explained(evidence: Evidence) -> str:
    """Which seeds decide, what cannot be judged, and what was left out."""
    parts = [_deciding(evidence)] if evidence.judging.seeds is not None else []
    for entry in evidence.judging.unfit:
        seeds = seed_ranges(entry.seeds)
        parts.append(f"- {entry.experiment}, seeds {seeds}, cannot be judged: {entry.why}.")
    return "\n".join([*parts, *_incomplete(evidence), *_untrained(evidence.case.experiments)])


def _deciding(evidence: Evidence) -> str:
    decide = seed_ranges(evidence.judging.seeds or ())
    exploratory = seed_ranges(evidence.judging.exploratory)
    rule = ""
    if (evidence.folder / PLAN).is_file():
        rule = f" The rule is that of [{PLAN}]({PLAN})."
    if not evidence.is_exploratory:
        beside = (
            f" What seeds {exploratory} say was seen before, is exploratory and stands beside it."
        )
        return (
            f"**Seeds {decide} decide.**{rule}{beside if exploratory else ''} In the tables below, "
            f"experiments without these seeds are shown with those they have.\n"
        )
    later = ""
    if decide != exploratory:
        later = f" Seeds {decide} decide, and none of them is here yet."
    seen = "They were seen before they were judged."
    return f"**Exploratory (seeds {exploratory}).** {seen}{rule}{later}\n"


def _incomplete(evidence: Evidence) -> list[str]:
    """The seeds that should decide and lack runs or rounds of the paper's rules."""
    lines = []
    for one in evidence.fresh.experiments if evidence.fresh else ():
        lacking = set(evidence.judging.seeds or ()) - set(whole(one.only(RULES)).seeds)
        if lacking:
            lines.append(f"- {one.name}: seeds {seed_ranges(lacking)} are not complete.")
    return lines


def _untrained(experiments: Sequence[ExperimentResults]) -> list[str]:
    """Rounds that are left out because a network did not train, and where that is not known."""
    lines = [
        f"- {one.name}: {plural(int(flags(one).sum()), 'round')} of {flags(one).size} left out for "
        f"every rule of the seed: a network did not train."
        for one in experiments
        if flags(one).any()
    ]
    blind = [one.name for one in experiments if not is_recorded(one)]
    if blind:
        lines.append(
            f"- Training accuracy was not recorded, so that no round is left out: {join_names(blind)}."
        )
    return lines
