"""SENSITIVITY.md: every verdict with one choice after the other made otherwise, from stores alone."""

from __future__ import annotations

from collections.abc import Sequence

from askance.experiments.seeds import seed_ranges
from askance.paper.claims import variants
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.page import MARK
from askance.paper.claims.sensitivity import Choices, Tried
from askance.paper.claims.stores import OVERALL
from askance.report.markdown import table

SENSITIVITY = "SENSITIVITY.md"
_SAME = "="
_INTRO = (
    "Every verdict that rests on the stores, judged again with one choice made otherwise. The rule was "
    "fixed beforehand, and so were the choices ([JUDGING.md](JUDGING.md), section 8), but for "
    "experiments as units and what a win is. The verdicts of [RESULTS.md](RESULTS.md) stand. `=` is "
    "the verdict as judged."
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
    parts = [MARK, "# What hangs on a choice", _INTRO, means]
    if evidence.case.experiments:
        seeds = evidence.judging.exploratory if evidence.is_exploratory else evidence.judging.seeds
        title = _seeds(seeds) + (", exploratory" if evidence.is_exploratory else "")
        parts += _case(title, choices or Choices(evidence.case))
    if evidence.explored and not evidence.is_exploratory:
        title = f"{_seeds(evidence.judging.exploratory)}, exploratory"
        parts += _case(title, Choices(evidence.explored))
    return "\n\n".join(parts) + "\n"


def _seeds(seeds: Sequence[int] | None) -> str:
    return f"Seeds {seed_ranges(seeds)}" if seeds else "All seeds"


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
    choices = list(those[0].others)
    rows = [
        [
            one.judged.claim,
            one.judged.verdict,
            *(
                _SAME if other.verdict == one.judged.verdict else other.verdict
                for other in one.others.values()
            ),
        ]
        for one in those
    ]
    return table(["claim", "as judged", *choices], rows, left=len(choices) + 2)


def _figures(those: Sequence[Tried]) -> str:
    choices = list(those[0].others)
    rows = [
        [one.judged.claim, one.judged.figure, *(other.figure for other in one.others.values())]
        for one in those
    ]
    return table(["claim", "as judged", *choices], rows, left=1)
