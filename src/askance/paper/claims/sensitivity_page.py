"""SENSITIVITY.md: every verdict with one choice after the other made otherwise, from stores alone."""

from __future__ import annotations

from collections.abc import Sequence

from askance.experiments.seeds import seed_ranges
from askance.paper.claims import variants
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.judge import CONFIRMED, DENIED, UNJUDGED
from askance.paper.claims.page import MARK
from askance.paper.claims.sensitivity import Choices, Tried
from askance.paper.claims.stores import OVERALL
from askance.report.formatting import plural
from askance.report.markdown import plain, table

SENSITIVITY = "SENSITIVITY.md"
_SAME, _NOT = "=", "–"
_INTRO = (
    "Every verdict that rests on the stores, judged again with one choice made otherwise. The verdicts "
    "of [RESULTS.md](RESULTS.md) stand. Rule and choices were fixed before the runs that decide "
    "([JUDGING.md](JUDGING.md), section 8), but for two: experiments as units, and what a win is."
)
_CELLS = (
    "In the tables `=` is the verdict as judged, and `–` a choice that changes no number of the claim: "
    "round 0 is not among the last three rounds, an interval over datasets has no part in a count of "
    "experiments, and where no network failed to train nothing was left out. As judged, intervals over "
    "experiments are already clustered by dataset."
)
_CHOICES = {
    "without a dataset, or an experiment": "it is left out, and one dataset fewer is needed",
    "with round 0": "round 0 is counted; the first three rounds are then 0–2",
    "with untrained networks": "rounds that are flagged are counted",
    "at 90%": "intervals of 90%, which is one-sided at 5%; as judged they are of 95%, 2.5% one-sided",
    "with datasets resampled": "a bootstrap over datasets in place of Student's interval",
    "with experiments as units": "each experiment is one observation; as judged each dataset is",
    "with one matrix of all seeds": "one penalty matrix of all seeds, not the mean of those of five",
}


def render(evidence: Evidence, choices: Choices | None = None) -> str:
    """The page; equal data give equal text.

    Args:
        choices: those of what decides, where they were tried before.
    """
    means = table(["choice", "means"], [[name, says] for name, says in _CHOICES.items()], left=2)
    choices = choices or Choices(evidence.case)
    parts = [MARK, "# What hangs on a choice", _INTRO]
    if evidence.case.experiments:
        parts += ["## In short", *_in_short(choices)]
    parts += ["## The choices", means, _CELLS]
    if evidence.case.experiments:
        seeds = evidence.judging.exploratory if evidence.is_exploratory else evidence.judging.seeds
        title = _seeds(seeds) + (", exploratory" if evidence.is_exploratory else "")
        parts += _case(title, choices)
    if evidence.explored and not evidence.is_exploratory:
        title = f"{_seeds(evidence.judging.exploratory)}, exploratory"
        parts += _case(title, Choices(evidence.explored))
    return "\n\n".join(parts) + "\n"


def _seeds(seeds: Sequence[int] | None) -> str:
    return f"Seeds {seed_ranges(seeds)}" if seeds else "All seeds"


def _in_short(choices: Choices) -> list[str]:
    """How many verdicts move at all, and each that does; then those that no choice moves."""
    wins = {one.judged.claim: one for one in choices.wins}
    every = [
        one.beside(wins[one.judged.claim]) if one.judged.claim in wins else one
        for one in [*choices.over_experiments, *choices.single]
    ]
    known = [one for one in every if one.judged.verdict != UNJUDGED]
    moved, same = [one for one in known if one.changed], [one for one in known if not one.changed]
    flipped = [one for one in moved if {one.judged.verdict, *one.changed} >= {CONFIRMED, DENIED}]
    parts = [
        f"Of {plural(len(known), 'verdict')} that were reached, **{len(same)} are the same with every "
        f"choice that can apply**, and {len(moved)} would be another with some choice. "
        + (
            "None goes from confirmed to denied or back: those that move go to *not shown* or come "
            "from it."
            if not flipped
            else f"{len(flipped)} go from confirmed to denied or back."
        )
    ]
    if moved:
        parts.append(
            table(
                ["claim that moves", "as judged", "would be"],
                [[one.judged.claim, one.judged.verdict, one.told] for one in moved],
                left=3,
            )
        )
    rows = [[one.judged.claim, one.judged.verdict, str(len(one.applied))] for one in same]
    if rows:
        parts.append(table(["claim that stays", "as judged", "choices that apply"], rows, left=2))
    return parts


def _case(title: str, choices: Choices) -> list[str]:
    """Everything that was tried on some seeds."""
    of = title[0].lower() + title[1:]
    parts = [f"## {title}"]
    kinds = {"a part left out": choices.without, "read otherwise": choices.read}
    for name, ours in (("The paper's claims over experiments", False), ("Our questions", True)):
        for kind, those in kinds.items():
            rows = [one for one in those if (one.judged.claim not in OVERALL) == ours]
            parts += [f"### {name}: {kind}, {of}", _verdicts(rows)]
    return [
        *parts,
        f"### Single learning curves: read otherwise, {of}",
        _verdicts(choices.single),
        f"### The figures, {of}",
        _figures(choices.over_experiments),
        f"### What a win is, {of}",
        variants.section(choices.case),
    ]


def _verdicts(those: Sequence[Tried]) -> str:
    """A row a claim that can be judged, a column a choice; the others by name."""
    choices = list(those[0].others)
    known = [one for one in those if one.judged.verdict != UNJUDGED]

    def cell(one: Tried, name: str) -> str:
        if name not in one.applied:
            return _NOT
        verdict = one.applied[name].verdict
        return _SAME if verdict == one.judged.verdict else verdict

    rows = [
        [one.judged.claim, one.judged.verdict, *(cell(one, n) for n in choices)] for one in known
    ]
    left = [one.judged.claim for one in those if one not in known]
    parts = [table(["claim", "as judged", *choices], rows, left=len(choices) + 2)] if rows else []
    if left:
        parts.append(f"Cannot be judged as it is, nor with any choice: {plain('; '.join(left))}.")
    return "\n\n".join(parts)


def _figures(those: Sequence[Tried]) -> str:
    choices = list(those[0].others)
    rows = [
        [
            one.judged.claim,
            one.judged.figure,
            *(one.applied[name].figure if name in one.applied else _NOT for name in choices),
        ]
        for one in those
        if one.judged.verdict != UNJUDGED
    ]
    return table(["claim", "as judged", *choices], rows, left=1)
