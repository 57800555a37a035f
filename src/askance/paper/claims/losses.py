"""Loss scores as tables and as the paper's matrices: of all seeds together, and of five at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from askance.experiments.statistics.blocks import block_penalty, blocks
from askance.experiments.statistics.penalty import STAGES, Penalty, penalty
from askance.experiments.statistics.table import ExperimentResults, in_order
from askance.experiments.statistics.untrained import leave_out
from askance.figures.lazy import LazyFigure
from askance.figures.penalty import penalty as draw_penalty
from askance.paper.claims.evidence import Evidence, counted
from askance.paper.suite import RULES, SUITE
from askance.report.formatting import number, plural
from askance.report.markdown import table

BLOCKS = "blocks-penalty"  # starts the names of the figures of five seeds at a time
ALL_SEEDS = "all-seeds-penalty-rounds"


def loss_scores(evidence: Evidence) -> str:
    """The paper's rules; those that every experiment has; and all, of the experiments that have all."""
    rules_of = [set(one.methods) for one in evidence.experiments]
    tables = {}
    for rules in map(SUITE.sort, (set(RULES), set.intersection(*rules_of), set.union(*rules_of))):
        those = [
            one
            for one in evidence.experiments
            if set(rules) <= set(one.methods) and penalty([one], methods=rules).rounds
        ]
        if those and len(rules) > 1:
            title = f"{len(rules)} rules, {counted(those, 'experiment')}"
            views = [penalty(those, stage, methods=rules) for stage in STAGES.values()]
            tables[rules] = _table(title, rules, views)
    return "\n\n".join(tables.values()) or "No experiment here has two rules to compare."


def in_blocks(evidence: Evidence) -> list[str]:
    """The same of five seeds at a time, where there are more: those above are of all seeds together."""
    those = judging(evidence)
    if not any(len(blocks(one.only(RULES))) > 1 for one in those):
        return []
    title = f"5 rules, {plural(len(those), 'experiment')}, five seeds at a time"
    return [
        "Of matrices of five seeds each, as the paper's are, the mean, summed over experiments: the "
        "claims are judged by these.",
        _table(title, RULES, list(_stages(those).values())),
        "Of all the seeds that an experiment has at once, so that more seeds win more rounds:",
    ]


def block_figures(evidence: Evidence) -> dict[str, LazyFigure]:
    """The paper's matrices in the paper's order, each experiment the mean of its blocks of five seeds.

    By rounds they are of the experiments that judge, and beside them the same of all seeds at once; by
    backbone and by dataset, which no claim is judged by, of all that are shown. What the paper has and
    is not here has a place that says so.
    """
    views = {}
    those = judging(evidence)
    if those:
        views[f"{BLOCKS}-rounds"] = _stages(those)
        views[ALL_SEEDS] = {
            title: penalty(list(map(leave_out, those)), stage, methods=RULES)
            for title, stage in STAGES.items()
        }
    present = with_rules(evidence.every_round)
    if present:
        views[f"{BLOCKS}-backbone"] = _groups(present, SUITE.backbones, lambda one: one.model)
        views[f"{BLOCKS}-dataset"] = _groups(present, SUITE.datasets, lambda one: one.dataset)
    return {name: LazyFigure(draw_penalty, those) for name, those in views.items()}


def judging(evidence: Evidence) -> list[ExperimentResults]:
    """The experiments that judge and have penalty matrices."""
    return with_rules(evidence.case.experiments)


def with_rules(experiments: Sequence[ExperimentResults]) -> list[ExperimentResults]:
    """Those that have all of the paper's rules, and five seeds of them."""
    those = [one for one in experiments if set(RULES) <= set(one.methods)]
    return [one for one in those if blocks(one.only(RULES))]


def _stages(those: Sequence[ExperimentResults]) -> dict[str, Penalty]:
    return {title: block_penalty(those, stage, methods=RULES) for title, stage in STAGES.items()}


def _groups(
    those: Sequence[ExperimentResults], first: Sequence[str], of: Callable[[ExperimentResults], str]
) -> dict[str, Penalty]:
    """One matrix a backbone or dataset, the paper's first, whether they are here or not."""
    views = {}
    for name in in_order({*first, *map(of, those)}, first):
        part = [one for one in those if of(one) == name]
        if part:
            title = f"{name}: {plural(len(part), 'experiment')}"
            views[title] = block_penalty(part, methods=RULES)
        else:
            size = len(RULES)
            none = np.zeros((size, size), dtype=np.int64)
            views[f"{name}: not here"] = Penalty(RULES, none.astype(np.float64), none, 0, 0, ())
    return views


def _table(title: str, rules: Sequence[str], views: Sequence[Penalty]) -> str:
    """Loss scores, a column each stage; the lowest of all rounds first."""
    losses = [dict(zip(view.methods, view.loss_M, strict=True)) for view in views]
    rows = [[rule, *(number(loss[rule], 3) for loss in losses)] for rule in rules]
    return table([title, *STAGES], sorted(rows, key=lambda row: float(row[1])))
