"""The sections of one experiment after the other: verdict, curves, cost, runs."""

from __future__ import annotations

from itertools import product

import numpy as np

from askance import strategies
from askance.advice import reason
from askance.experiments.statistics.curves import Curves, Difference, labels_saved
from askance.experiments.statistics.resample import FEWEST
from askance.experiments.statistics.table import BASELINE, ExperimentResults, Floats
from askance.figures.timing import acquisition_seconds
from askance.report.elements import (
    Block,
    Bullets,
    Details,
    Pictures,
    Section,
    Text,
    TextTable,
    Tiles,
)
from askance.report.facts import OVERLAP, Facts, Seconds
from askance.report.formatting import format_interval, number, p_value, percent, plural, points
from askance.report.verdict import against, is_enough


def verdict_section(facts: Facts) -> Section:
    """How sure the page's answer is, and each experiment by itself."""
    result = facts.verdict
    blocks: list[Block] = [Tiles(result.tiles)] if result.tiles else []
    default = [reason().replace("`", "")] if strategies.default().name in facts.methods else []
    blocks.append(Bullets([*result.sentences, *default]))
    if len(facts.curves) > 1:
        blocks.append(_by_experiment(facts))
    return Section("verdict", "Verdict", blocks)


def _by_experiment(facts: Facts) -> TextTable:
    rows = []
    for one, curve in zip(facts.experiments, facts.curves, strict=True):
        best = curve.ranking()[0]
        d = against(curve).get(best)
        row = curve.methods.index(best)
        seeds = d.mean.n if d else int(np.isfinite(curve.area_MS[row]).sum())
        lead = format_interval(d.mean, share=True) if d else "–"
        p = p_value(d.adjusted) if d and is_enough(d) else "–"
        leader = best if curve.begun else "–"
        rows.append(
            [facts.marked(one.name), leader, percent(float(curve.mean_M[row])), lead, p, str(seeds)]
        )
    columns = ["experiment", "leader", "mean accuracy", f"points over {BASELINE} [95%]",
               "corrected p", "seeds"]  # fmt: skip
    return TextTable(columns, rows, left=2, caption="Each experiment by itself")


def curves_section(facts: Facts) -> Section:
    """Learning curves, and the numbers of every rule."""
    alone = len(facts.experiments) == 1
    text = "Test accuracy as labels are bought: mean over seeds, ± 1 standard deviation shaded."
    pictures = [
        facts.picture(
            f"curves-{one.name}",
            f"Learning curves of {one.name}: {', '.join(one.methods)}",
            _overlap(facts, one.name),
        )
        for one in facts.experiments
    ]
    blocks: list[Block] = [Text(text), Pictures(pictures, columns=1 if alone else 2)]
    for one, curve in zip(facts.experiments, facts.curves, strict=True):
        table = _rules_table(curve)
        blocks.append(table if alone else Details(f"Numbers of {facts.marked(one.name)}", [table]))
    left_out = [text for curve in facts.curves for text in curve.left_out]
    if left_out:
        blocks += [
            Text("Left out of the areas and of what rests on them:", "note"),
            Bullets(left_out),
        ]
    return Section("curves", "Learning curves", blocks)


def _overlap(facts: Facts, name: str) -> str:
    """The caption of a picture of one experiment."""
    if name not in facts.overlapping:
        return ""
    return (
        f"{OVERLAP} The encoder was trained on images that overlap with these, which flatters it."
    )


def _rules_table(one: Curves) -> TextTable:
    differences = against(one)
    rows = []
    for method in one.ranking():
        row = one.methods.index(method)
        area = one.area_MS[row][np.isfinite(one.area_MS[row])]
        ends = one.accuracy_MST[row, :, -1] if one.rounds else np.empty(0)
        ends = ends[np.isfinite(ends)]
        d = differences.get(method)
        saved = labels_saved(one, method) if method != BASELINE else None
        tested = d if d and is_enough(d) else None
        rows.append(
            [
                method,
                _mean_std(area),
                _mean_std(ends),
                format_interval(d.mean, share=True) if d else "–",
                p_value(tested.adjusted) if tested else "–",
                number(tested.effect, 1, sign=True) if tested else "–",
                format_interval(saved, share=False),
                _seeds(len(area), d),
            ]
        )
    columns = ["rule", "mean accuracy", "final accuracy", f"points over {BASELINE} [95%]",
               "corrected p", "effect (g)", "labels saved [95%]", "seeds"]  # fmt: skip
    caption = (
        "Mean accuracy is the area under the budget curve over the labels spent. p is of paired "
        "t-tests on it, corrected over all pairs of rules; intervals are bootstraps over seeds, not "
        f"corrected. Neither is given of fewer than {FEWEST} seeds."
    )
    return TextTable(columns, rows, caption=caption)


def _seeds(count: int, d: Difference | None) -> str:
    """How many seeds a rule has; and how many the comparison beside it, where those are fewer."""
    return str(count) if d is None or d.mean.n == count else f"{count}, {d.mean.n} in common"


def _mean_std(values: Floats) -> str:
    if not len(values):
        return "–"
    spread = f" ± {points(values.std(ddof=1))}" if len(values) > 1 else ""
    return f"{percent(values.mean())}{spread}"


def cost_section(facts: Facts) -> Section:
    """How long each rule takes to choose a batch."""
    title = "What choosing costs"
    if not facts.seconds:
        return Section("cost", title, [Text("There are no times: an export has none.", "note")])
    pictures = [
        facts.picture(f"timing-{name}", f"Seconds an acquisition in {name}")
        for name in facts.seconds
    ]
    tables = [
        Details(f"Seconds in {name}", [_seconds_table(seconds)])
        for name, seconds in facts.seconds.items()
    ]
    text = Text(
        "Choosing a batch, without training: the pass over the pool, the scores and the choice, mean "
        "± 1 standard deviation. The labelled set's own pass stands apart. Times were taken while the "
        "experiment ran, next to whatever else the machine did."
    )
    shown: list[Block] = [Pictures(pictures, min(len(pictures), 2)), *tables]
    if len(pictures) > 2:
        shown = [Details(f"Seconds in {len(pictures)} experiments", shown)]
    return Section("cost", title, [text, *shown])


def _seconds_table(seconds: Seconds) -> TextTable:
    rows = []
    for rule in sorted(seconds, key=lambda rule: acquisition_seconds(seconds[rule]).mean()):
        whole = acquisition_seconds(seconds[rule])
        labeled, train = (
            np.mean([one.get(stage, 0.0) for one in seconds[rule]])
            for stage in ("labeled", "train")
        )
        spread = f" ± {whole.std(ddof=1):.3f}" if len(whole) > 1 else ""
        rows.append([rule, f"{whole.mean():.3f}{spread}", f"{labeled:.3f}", f"{train:.2f}",
                     str(len(whole))])  # fmt: skip
    columns = [
        "rule",
        "seconds per query",
        "seconds for the labelled set",
        "training",
        "acquisitions",
    ]
    return TextTable(columns, rows)


def runs_section(facts: Facts) -> Section:
    """Every run in a row of a table."""
    blocks: list[Block] = []
    columns = ["rule", "seed", "rounds", "labels", "final accuracy", "mean accuracy"]
    for one, curve in zip(facts.every_round, facts.curves, strict=True):
        rows = _run_rows(one, curve)
        blocks.append(
            Details(
                f"{facts.marked(one.name)}: {plural(len(rows), 'run')}", [TextTable(columns, rows)]
            )
        )
    return Section("runs", "Table of runs", blocks)


def _run_rows(one: ExperimentResults, curve: Curves) -> list[list[str]]:
    rows = []
    for (m, method), (s, seed) in product(enumerate(one.methods), enumerate(one.seeds)):
        done = np.flatnonzero(np.isfinite(one.accuracy_MST[m, s]))
        if len(done):
            labels, accuracy = one.labels_MST[m, s, done[-1]], one.accuracy_MST[m, s, done[-1]]
            area = percent(float(curve.area_MS[m, s]), 2)
            rows.append([method, str(seed), str(len(done)), number(float(labels)),
                         percent(float(accuracy), 2), area])  # fmt: skip
    return rows
