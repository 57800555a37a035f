"""The claims of the study `contraction`: every cell of the grid is judged, and then each dataset.

A claim is confirmed or denied for a dataset where all cells that can be judged agree, and not shown
otherwise. A cell whose networks did not train cannot be judged.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from askance.paper.claims.judge import (
    CONFIRMED,
    DENIED,
    OPEN,
    UNJUDGED,
    JudgedClaim,
    Measurement,
    judged,
)
from askance.paper.studies.contraction import WORDS, mean, training
from askance.paper.studies.contraction_run import Cell, ContractionResult, cells
from askance.report.formatting import plural

SOURCE = "contraction"
CLAIMS = {
    "falls": "DF decreases over training",
    "rarely rises": "DF rises only now and then",
    "levels off": "DF levels off",
}
MEASURES = {
    "falls": "1 less the last ‖DF‖ over the first",
    "rarely rises": "½ less the share of epochs in which it rises",
    "levels off": "change in the first third of epochs less that in the last",
}
_IDLE = "; the loss on S fell by less than a tenth: the network did not train"


@dataclass(frozen=True)
class JudgedCell:
    """One cell and its verdicts, by word."""

    cell: Cell
    verdicts: dict[str, JudgedClaim]


def judged_cells(result: ContractionResult) -> list[JudgedCell]:
    """Every cell of the grid, judged by itself."""
    return [
        JudgedCell(cell, {word: _judged(cell, word) for word in WORDS}) for cell in cells(result)
    ]


def _judged(cell: Cell, word: str) -> JudgedClaim:
    where = (
        f"{cell.choice.dataset}: {training(cell.choice)}, {cell.gradient}, S_J {cell.share:g} of S"
    )
    measurement = Measurement(
        MEASURES[word] + ("" if cell.trained else _IDLE),
        mean(cell, word),
        plural(len(cell.series), "draw"),
        unit=1,
        digits=3,
        valid=cell.trained,
    )
    return judged(f"{CLAIMS[word]}: {where}", measurement, SOURCE)


def claims(result: ContractionResult) -> list[JudgedClaim]:
    """Of each dataset whether ‖DF‖ falls, seldom rises and levels off, if the dataset is at hand."""
    by_dataset: dict[str, list[JudgedCell]] = {name: [] for name in result.options.datasets}
    for one in judged_cells(result):
        by_dataset[one.cell.choice.dataset].append(one)
    return [
        _together(f"{claim}: {name}", MEASURES[word], [one.verdicts[word] for one in found])
        for name, found in by_dataset.items()
        for word, claim in CLAIMS.items()
    ]


def _together(claim: str, measure: str, of_cells: list[JudgedClaim]) -> JudgedClaim:
    if not of_cells:
        return JudgedClaim(claim, "the dataset is not here", "–", "–", UNJUDGED, SOURCE)
    draws = of_cells[0].n
    if len(of_cells) == 1:
        (only,) = of_cells
        return JudgedClaim(claim, only.measure, only.figure, draws, only.verdict, SOURCE)
    count = Counter(one.verdict for one in of_cells)
    known = len(of_cells) - count[UNJUDGED]
    agreed = [verdict for verdict in (CONFIRMED, DENIED) if known and count[verdict] == known]
    verdict = agreed[0] if agreed else OPEN if known else UNJUDGED
    parts = (f"{count[one]} {one}" for one in (CONFIRMED, DENIED, OPEN, UNJUDGED) if count[one])
    n = f"{plural(len(of_cells), 'cell')} of {draws}"
    return JudgedClaim(claim, f"{measure}, cell by cell", ", ".join(parts), n, verdict, SOURCE)
