"""The sections that compare: who beats whom, and rules across experiments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from askance.experiments.statistics.penalty import BYS, Penalty, views
from askance.experiments.statistics.ranks import profile, ranks, wilcoxon
from askance.experiments.statistics.resample import FEWEST
from askance.experiments.statistics.table import BASELINE
from askance.figures.lazy import LazyFigure
from askance.figures.penalty import penalty as draw_penalty
from askance.report.elements import (
    Block,
    Bullets,
    Details,
    Heading,
    Picture,
    Pictures,
    Section,
    Text,
    TextTable,
)
from askance.report.facts import Facts
from askance.report.formatting import join_names, p_value, plural, points
from askance.report.verdict import n_pairs

_WINS = (
    "A row's wins over a column: the share of rounds in which a paired t-test over seeds says so after "
    "Benjamini–Hochberg over the round's pairs (adjusted p < 0.05), summed over experiments. The loss "
    "score is the mean of a rule's column: how often it is beaten, lower is better. Round 0 comes "
    "before any acquisition and is not counted."
)


def penalty_section(facts: Facts) -> Section | None:
    """The suite's rules alone, then all of them, each: all, early, late; backbones; datasets."""
    methods, suite = facts.methods, facts.suite
    if len(methods) < 2:
        return None
    of_suite = [m for m in methods if m in suite.rules]
    sets: dict[str, Sequence[str]] = {}
    if len(of_suite) > 1:
        sets[suite.title] = of_suite
    if len(of_suite) < len(methods):
        sets["All rules"] = methods
    tested = [one for one in facts.counted if len(one.seeds) >= FEWEST]
    few = [one.name for one in facts.counted if one not in tested]
    too_few = f"Too few seeds for tests, which need {FEWEST}, in {join_names(few)}." if few else ""
    if not tested:
        return Section("wins", "Who beats whom", [Text(too_few, "note")])
    citation = suite.citation if suite.title in sets else ""
    blocks: list[Block] = [
        Text(" ".join(filter(None, (_WINS, citation, too_few, *facts.left_out))))
    ]
    for title, names in sets.items():
        pairs = plural(n_pairs(names), "pair")
        blocks.append(Heading(f"{title}: {pairs} in the correction"))
        stages = views(tested, methods=names)
        blocks.append(_matrices(title, stages))
        blocks += _remarks(stages["All rounds"])
        for by in BYS[1:]:
            groups = views(tested, by, suite, methods=names)
            if len(groups) > 1:
                blocks.append(Details(f"{title} by {by}", [_matrices(f"{title} {by}", groups)]))
    return Section("wins", "Who beats whom", blocks)


def _matrices(title: str, matrices: dict[str, Penalty]) -> Pictures:
    slug = title.lower().replace("'", "").replace(" ", "-")
    return Pictures(
        [
            Picture(
                f"penalty-{slug}-{place}",
                LazyFigure(draw_penalty, {name: view}),
                f"{name}: penalty matrix and loss scores. " + _in_words(view),
            )
            for place, (name, view) in enumerate(matrices.items())
        ],
        columns=3,
    )


def _in_words(view: Penalty) -> str:
    order = np.argsort(view.loss_M, kind="stable")
    return "Loss scores: " + ", ".join(f"{view.methods[i]} {view.loss_M[i]:.3f}" for i in order)


def _remarks(view: Penalty) -> list[Block]:
    remarks = list(view.left_out)
    if view.infinite:
        rest = "rests" if view.infinite == 1 else "rest"
        remarks.append(
            f"{plural(view.infinite, 'win')} over all rounds {rest} on a difference that was the same "
            "in every seed: the t statistic is infinite and p is 0, which few seeds and a small test "
            "set can bring about by chance."
        )
    return [Bullets(remarks)] if remarks else []


def across_section(facts: Facts) -> Section | None:
    """Profiles; and ranks and Wilcoxon where there are several experiments."""
    pictures, blocks = [], []
    left_out = " ".join(facts.left_out)
    solved = profile(facts.counted_curves)
    if solved.problems and len(solved.methods) > 1:
        # The goal `profile` takes without random.
        goal = (
            "random's final accuracy"
            if BASELINE in solved.methods
            else "the lowest of the rules' final accuracies"
        )
        pictures.append(
            facts.picture(
                "profile",
                f"Performance profile of {', '.join(solved.methods)}",
                "Higher is better: the share of runs (experiment and seed) in which a rule reaches "
                f"{goal} within a factor of the labels the best rule needs. {left_out}".strip(),
            )
        )
    ranking = ranks(facts.counted_curves)
    if len(ranking.experiments) > 1:
        order = [f"{m} {r:.2f}" for m, r in zip(ranking.methods, ranking.mean_M, strict=True)]
        pictures.append(
            facts.picture(
                "ranks",
                "Mean ranks: " + ", ".join(order),
                f"Mean rank over {len(ranking.experiments)} experiments, 1 the best. A bar joins rules "
                f"that Nemenyi's test does not tell apart. {left_out}".strip(),
            )
        )
        blocks.append(_wilcoxon_table(facts))
    if not pictures:
        return None
    title = "Across experiments" if len(facts.experiments) > 1 else "Labels needed"
    return Section("across", title, [Pictures(pictures, columns=len(pictures)), *blocks])


def _wilcoxon_table(facts: Facts) -> TextTable:
    signed = wilcoxon(facts.counted_curves)
    rows = [
        [
            signed.methods[i],
            signed.methods[j],
            points(float(signed.median[at]), sign=True),
            p_value(float(signed.p[at])),
            p_value(float(signed.adjusted[at])),
        ]
        for at, (i, j) in enumerate(zip(signed.first, signed.second, strict=True))
    ]
    return TextTable(
        ["rule", "against", "median points", "p", "corrected p"],
        rows,
        left=2,
        caption=f"Wilcoxon signed-rank tests on mean accuracy over {signed.experiments} experiments",
    )
