"""The paper's claims, judged from a folder of stores and studies, and published in it.

    askance paper publish results/paper

A published folder holds one store an experiment, the studies in `studies/`, and what is made of them:
`RESULTS.md` (every verdict, and the tables behind it), `SENSITIVITY.md` (every verdict with one choice
after the other made otherwise), `REPRODUCTION.md` (the paper item by item), and every figure in
`figures/`. `notes.txt` beside them, where there is one, ends RESULTS.md; `judging.toml` says which
seeds decide, and which experiments cannot be judged.
"""

from __future__ import annotations

import re
from pathlib import Path

from askance._io.atomic import atomic_write
from askance._io.filenames import file_name
from askance.errors import StoreError
from askance.figures import style
from askance.figures.gains import gains
from askance.paper import studies
from askance.paper.claims import reproduction, sensitivity_page
from askance.paper.claims.evidence import STUDIES, Evidence, gather
from askance.paper.claims.losses import block_figures
from askance.paper.claims.page import FIGURES, MARK, PICTURE, render
from askance.paper.claims.reproduction import REPRODUCTION
from askance.paper.claims.sensitivity import Choices
from askance.paper.claims.sensitivity_page import SENSITIVITY
from askance.paper.claims.tables import gain_table

RESULTS = "RESULTS.md"


def is_published(folder: Path) -> bool:
    """Whether a folder's RESULTS.md is one of ours."""
    return (_page(folder) or "").startswith(MARK)


def check(folder: Path) -> None:
    """Refuse what cannot be published, before anything is made."""
    if not folder.is_dir():
        raise StoreError(
            f"{folder} is no folder: a folder of stores can be published, a file cannot"
        )
    if (folder / RESULTS).exists() and not is_published(folder):
        raise StoreError(
            f"{folder / RESULTS} was not written by askance and is left as it is; move it away"
        )


def publish(folder: Path, seeds: tuple[int, ...] | None = None) -> Evidence:
    """Write RESULTS.md and every figure of a folder from what is in it.

    Args:
        seeds: those that decide, in place of what `judging.toml` in the folder says.
    """
    check(folder)
    evidence = gather(folder, seeds)
    if not evidence.experiments:
        raise StoreError(
            f"{folder} holds none of the paper's experiments: there is nothing to judge"
        )
    choices = Choices(evidence.case, evidence.variants)
    before, page = _page(folder) or "", render(evidence, choices)
    try:
        written = draw(evidence)
        for name in set(_FIGURE.findall(before)) - {path.name for path in written}:
            (folder / FIGURES / name).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write the figures of {folder}: {error}") from error
    atomic_write(folder / RESULTS, page.encode())
    # After the figures, which it links.
    atomic_write(folder / SENSITIVITY, sensitivity_page.render(evidence, choices).encode())
    atomic_write(folder / REPRODUCTION, reproduction.render(evidence, choices).encode())
    return evidence


_FIGURE = re.compile(rf"\({FIGURES}/([\w.-]+\.(?:svg|png))\)")


def _page(folder: Path) -> str | None:
    """What RESULTS.md says, be it ours or not; None where there is none."""
    try:
        return (folder / RESULTS).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def draw(evidence: Evidence) -> list[Path]:
    """Every figure: SVG, and PNG for the one that is to be seen first; a study's as they are there."""
    folder = evidence.folder
    (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    written = []
    first = gain_table(evidence)
    if first:
        base = (folder / PICTURE).with_suffix("")
        written += style.save(gains(first, "What each rule gains over random"), base, ("png",))
    for name in evidence.studies:
        written += studies.remake(folder / STUDIES / f"{name}.json")
    for name, drawing in (evidence.facts.figures | block_figures(evidence)).items():
        written.append(folder / FIGURES / f"{file_name(name)}.svg")
        written[-1].write_bytes(drawing.svg)
    return written
