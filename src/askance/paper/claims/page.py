"""RESULTS.md: every claim with its figure and verdict, and the tables behind them, from data alone."""

from __future__ import annotations

from pathlib import Path

from askance._io.filenames import file_name
from askance.errors import StoreError
from askance.paper import studies
from askance.paper.claims import guard, of_studies, sensitivity, tables
from askance.paper.claims.evidence import STUDIES, Evidence
from askance.paper.claims.judge import RULE
from askance.paper.claims.losses import block_figures
from askance.paper.claims.sensitivity import Choices
from askance.paper.claims.stores import OURS, OVERALL, PANELS
from askance.paper.claims.verdicts import explained, verdicts
from askance.paper.suite import SUITE
from askance.report.formatting import join_names, plural
from askance.report.markdown import plain

MARK = (
    "<!-- Written by `askance paper publish`: change the data, the code or notes.txt, not this "
    "page. -->"
)
FIGURES = "figures"
PICTURE = f"{FIGURES}/gains.png"
NOTES = "notes.txt"
SAME_DATA = (
    "Pool, validation set and test set are drawn once for a dataset and are the same for all seeds. So "
    "an interval over seeds is of initial labels and weights; none here covers another draw of pool "
    "and test set."
)
_HOW = (
    "Differences are in points of test accuracy, with 95% intervals. Claims are judged by mean "
    "accuracy over rounds, round 0 not counted, on seeds of which every rule that is compared has "
    "every round. The tables' mean accuracy is the area under the budget curve over the labels spent.",
    SAME_DATA,
    "Over experiments an interval is Student's with datasets as the units, since experiments that "
    "share one are not independent; it ignores that experiments may share a network. Over the seeds of "
    "an experiment, or the networks, starts, draws or rounds of a study, it is Student's, as the "
    "paper's t-tests have. Intervals in tables by experiment are bootstraps over seeds: with five of "
    "them they hold the truth 92% of the time.",
    "Significant in those tables is what a paired t-test on mean accuracy gives after Benjamini and "
    "Hochberg's correction over all pairs of an experiment's rules, 45 pairs of ten rules, 15 of six: "
    "stricter than an interval that leaves out 0. Loss scores are the paper's, from its five rules and "
    "five seeds a matrix.",
)


def render(evidence: Evidence, choices: Choices | None = None) -> str:
    """The page; equal data give equal text.

    Args:
        choices: those of what decides, where they were tried before.
    """
    choices = choices or Choices(evidence.case)
    parts = [
        MARK,
        "# The paper's claims on real data",
        _intro(evidence),
        f"![Points above random, by experiment and rule]({PICTURE})"
        if tables.gain_table(evidence)
        else "",
        "## How it is judged",
        RULE,
        *_HOW,
        explained(evidence),
        "## The paper's claims",
        verdicts(evidence, OVERALL, of_studies.of_the_paper),
        "## What hangs on a choice",
        sensitivity.section(choices.of_the_paper(choices.over_experiments)),
        "## Single learning curves",
        verdicts(evidence, PANELS),
        "## Our questions",
        verdicts(evidence, OURS, of_studies.of_ours),
        "## Did the networks train?",
        guard.section(evidence),
        *tables.sections(evidence),
        *_studies(evidence),
        "## Figures",
        _figures(evidence),
        *_notes(evidence.folder),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _intro(evidence: Evidence) -> str:
    names = {one.name for one in evidence.experiments}
    runs = {
        (r.strategy, r.seed, r.experiment) for r in evidence.facts.rows if r.experiment in names
    }
    text = (
        f"{len(names)} of {len(SUITE.experiments)} experiments: those the paper shows, and our reading "
        "of the panels of its appendix that have no name; "
        f"{plural(len(runs), 'run')}, rules: {', '.join(evidence.rules)}. Everything below is "
        f"made by `askance paper publish {evidence.folder.as_posix()}` from the stores and studies in "
        "this folder."
    )
    stores = [store for store in evidence.facts.stores if store.name in names]
    unfinished = [store.name for store in stores if store.unfinished]
    if unfinished:
        text += f" **Unfinished, so that all of it may change: {join_names(unfinished)}.**"
    left_out = [line for one in evidence.curves for line in one.left_out]
    if left_out:
        text += " **Left out, so that like is compared with like:**\n\n"
        text += "\n".join(f"- {line}" for line in left_out)
    return text


def _studies(evidence: Evidence) -> list[str]:
    if not evidence.studies:
        return [
            "## Studies",
            "None in this folder: `askance paper study NAME --out FOLDER/studies`.",
        ]
    parts = ["## Studies"]
    for name, result in evidence.studies.items():
        study = studies.get(name)
        parts += [f"### {name}: {study.about}", studies.findings(study, result)]
        if name == "cost":
            parts.append(study.table(result).markdown())
        picture = f"{STUDIES}/{name}.png"
        if (evidence.folder / picture).is_file():
            parts.append(f"![{name}]({picture})")
        parts.append(f"`askance paper study {name}` · [data]({STUDIES}/{name}.json)")
    return parts


def _figures(evidence: Evidence) -> str:
    names = [*evidence.facts.figures, *block_figures(evidence)]
    return " · ".join(f"[{plain(name)}]({FIGURES}/{file_name(name)}.svg)" for name in names)


def _notes(folder: Path) -> list[str]:
    """What no store knows, in words of the folder's owner."""
    notes = folder / NOTES
    if not notes.is_file():
        return []
    try:
        return [notes.read_text(encoding="utf-8").strip()]
    except UnicodeDecodeError as error:
        raise StoreError(f"{notes} must be text in UTF-8, which it is not: {error}") from error
