"""The paper's claims, judged from a folder of stores and studies, and published in it.

    askance report results/paper --publish

A published folder holds one store an experiment, the studies in `studies/`, and what is made of them:
`RESULTS.md`, and every figure in `figures/`. `notes.txt` beside it, where there is one, ends the page.
"""

from __future__ import annotations

from pathlib import Path

from askance import studies
from askance.bench import export
from askance.bench.stats.resample import Interval
from askance.bench.stats.table import BASELINE
from askance.claims.evidence import STUDIES, Evidence, gather
from askance.claims.measures import differences, over_experiments
from askance.claims.page import MARK, PICTURE, render
from askance.errors import StoreError
from askance.figures import style
from askance.figures.gains import gains
from askance.report.facts import Facts

RESULTS = "RESULTS.md"
SHOWN = ("grad", "badge", "powergrad", "entropy", "kcenter")  # in the picture to see first


def is_published(folder: Path) -> bool:
    """Whether a folder's RESULTS.md is one of ours."""
    page = folder / RESULTS
    return page.is_file() and page.read_text(encoding="utf-8").startswith(MARK)


def publish(folder: Path, facts: Facts | None = None) -> Evidence:
    """Write RESULTS.md and every figure of a folder from what is in it.

    Args:
        facts: of the folder's stores, where they have been read already; their figures are not drawn
            again.
    """
    if not folder.is_dir():
        raise StoreError(
            f"{folder} is no folder: a folder of stores can be published, a file cannot"
        )
    page = folder / RESULTS
    if page.exists() and not is_published(folder):
        raise StoreError(f"{page} was not written by askance and is left as it is; move it away")
    evidence = gather(folder, facts)
    if not evidence.experiments:
        raise StoreError(
            f"{folder} holds none of the paper's experiments: there is nothing to judge"
        )
    export.replace(page, render(evidence).encode())
    draw(evidence)
    return evidence


def draw(evidence: Evidence) -> list[Path]:
    """Every figure: SVG, and PNG for the one that is to be seen first; a study's as they are there."""
    folder, facts = evidence.folder, evidence.facts
    base = (folder / PICTURE).with_suffix("")
    base.parent.mkdir(parents=True, exist_ok=True)
    written = []
    first = gain_table(evidence)
    if first:
        written += style.save(gains(first, "What each rule gains over random"), base, ("png",))
    for name, result in evidence.studies.items():
        stem = folder / STUDIES / name
        there = [kind for kind in style.FORMATS if stem.with_suffix(f".{kind}").exists()]
        if there:
            written += style.save(studies.get(name).draw(result), stem, there)
    for name, drawing in facts.figures.items():
        written.append(base.with_name(f"{name}.svg"))
        written[-1].write_bytes(drawing.svg)
    return written


def gain_table(evidence: Evidence) -> dict[str, dict[str, Interval]]:
    """By experiment and rule the gain over random; and the mean over experiments last."""
    found: dict[str, dict[str, Interval]] = {}
    overall: dict[str, Interval] = {}
    for rule in SHOWN:
        for one in evidence.curves:
            for d in differences([one], rule, BASELINE):
                found.setdefault(one.name, {})[rule] = d.mean
        mean = over_experiments(differences(evidence.curves, rule, BASELINE))
        if mean is not None:
            overall[rule] = mean
    models = {one.name: one.model for one in evidence.experiments}
    rows = {name: found[name] for name in sorted(found, key=lambda name: (models[name], name))}
    return {**rows, f"mean of {len(rows)} experiments": overall} if len(rows) > 1 else rows
