"""Did the networks train? Round 0, training loss and accuracy by experiment, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from askance.experiments.formats import ResultRow
from askance.experiments.seeds import seed_ranges
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.judge import shown
from askance.paper.claims.measures import student
from askance.paper.suite import SUITE
from askance.report.formatting import number, percent
from askance.report.markdown import table
from askance.report.training import NOT_RECORDED

ABOUT = (
    "A network must have trained to be judged. A round of a run is flagged where accuracy on its own "
    "labelled set is at most q + 2√(q(1 − q)/L), q the share of the largest class among its L labels. "
    "Where any rule of a seed is flagged, that round of that seed is left out for all of its rules, in "
    "every mean, test and figure on this page, but for the two columns of round 0 here. Intervals are "
    "Student's over seeds; the other columns are means over rules and seeds."
)
_COLUMNS = (
    "experiment",
    "seeds",
    "test accuracy in %, round 0 [95%]",
    "training accuracy, round 0",
    "training accuracy, last round",
    "training loss, last round",
    "rounds of runs flagged",
    "rounds of seeds left out",
)


def section(evidence: Evidence) -> str:
    """One row for the seeds of an experiment that decide, and one for those that were seen before."""
    everything = evidence.all_seeds.rows
    chosen = evidence.judging.seeds
    rows = []
    for name in SUITE.experiments:
        of_it = [row for row in everything if row.experiment == name]
        deciding = [row for row in of_it if chosen is None or row.seed in chosen]
        earlier = [row for row in of_it if chosen is not None and row.seed not in chosen]
        rows += [_row(name, part) for part in (deciding, earlier) if part]
    return f"{ABOUT}\n\n{table(_COLUMNS, rows, left=2)}"


def _row(name: str, rows: Sequence[ResultRow]) -> list[str]:
    seeds = sorted({row.seed for row in rows})
    first, last = min(row.round for row in rows), max(row.round for row in rows)
    starts = [_mean([r.accuracy for r in rows if (r.seed, r.round) == (s, first)]) for s in seeds]
    start = shown(student(np.array(starts)), digits=1).removeprefix("+")
    return [name, seed_ranges(seeds), start, *_training(rows, first, last)]


def _training(rows: Sequence[ResultRow], first: int, last: int) -> list[str]:
    recorded = [row for row in rows if row.train_accuracy is not None]
    if not recorded:
        return [NOT_RECORDED] * 5
    accuracy = [
        [
            row.train_accuracy
            for row in recorded
            if row.round == at and row.train_accuracy is not None
        ]
        for at in (first, last)
    ]
    losses = [r.train_loss for r in recorded if r.round == last and r.train_loss is not None]
    out = {(row.seed, row.round) for row in recorded if row.flagged}
    rounds = {(row.seed, row.round) for row in rows}
    partly = "" if len(recorded) == len(rows) else f"; {len(rows) - len(recorded):,} {NOT_RECORDED}"
    return [
        *(percent(_mean(part)) if part else NOT_RECORDED for part in accuracy),
        number(_mean(losses), 4) if losses else NOT_RECORDED,
        f"{sum(bool(row.flagged) for row in recorded):,} of {len(recorded):,}{partly}",
        f"{len(out):,} of {len(rounds):,}",
    ]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
