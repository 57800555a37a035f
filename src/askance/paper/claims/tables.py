"""The tables of RESULTS.md: gains over random, accuracies, labels, loss scores, data and commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from askance.experiments.statistics.blocks import block_penalty, blocks
from askance.experiments.statistics.curves import Curves, Difference, labels_saved
from askance.experiments.statistics.penalty import STAGES, penalty
from askance.experiments.statistics.resample import Interval
from askance.experiments.statistics.table import BASELINE, ExperimentResults
from askance.figures.lazy import LazyFigure
from askance.figures.penalty import penalty as draw_penalty
from askance.paper.claims.evidence import Evidence, counted
from askance.paper.claims.judge import shown
from askance.paper.claims.measures import differences, over_experiments
from askance.paper.suite import RULES, SUITE
from askance.report.formatting import format_interval, number, percent
from askance.report.markdown import table
from askance.report.repeat import command
from askance.report.verdict import against, is_loss, is_win

_TAKEN = (
    "Scoring and choosing one batch after the forward pass, mean over acquisitions, as the runs took "
    "it: the seeds of a rule together, which shares the time of a batch rule among them. The labelled "
    "set's pass is not counted. The study `cost` times one acquisition by itself."
)


SHOWN = ("grad", "badge", "powergrad", "entropy", "kcenter")  # in the picture to see first


def gain_table(evidence: Evidence) -> dict[str, dict[str, Interval]]:
    """By experiment and rule the gain over random; and the mean over experiments last."""
    found: dict[str, dict[str, Interval]] = {}
    overall: dict[str, Interval] = {}
    for rule in SHOWN:
        for one in evidence.curves:
            for d in differences([one], rule, BASELINE):
                found.setdefault(one.name, {})[rule] = d.mean
        mean = over_experiments(*_each(evidence, rule))
        if mean is not None:
            overall[rule] = mean
    models = {one.name: one.model for one in evidence.experiments}
    rows = {name: found[name] for name in sorted(found, key=lambda name: (models[name], name))}
    return {**rows, f"mean of {len(rows)} experiments": overall} if len(rows) > 1 else rows


def _each(evidence: Evidence, rule: str) -> tuple[list[Difference], list[str]]:
    """A rule's differences from random, and the dataset of each."""
    found = [(one.name, d) for one in evidence.curves for d in differences([one], rule, BASELINE)]
    return [d for _, d in found], [evidence.datasets[name] for name, _ in found]


def sections(evidence: Evidence) -> list[str]:
    """Titles and tables, one after the other."""
    return [
        "## Every rule against random",
        _against_random(evidence),
        "## Where rules help and where they fail",
        "Significantly above and below random in mean accuracy, by the corrected p.",
        _help(evidence),
        "## Points above random, by experiment",
        "A star where the corrected p of the paired t-test is below 0.05.",
        _by_experiment(evidence, _gain),
        "## Mean accuracy, by experiment",
        _by_experiment(evidence, _mean),
        "## Accuracy at the end, by experiment",
        _by_experiment(evidence, _end),
        "## Labels saved, by experiment",
        "Labels at which random's mean curve first has the accuracy it ends with, less the rule's.",
        _by_experiment(evidence, _saved, every=False),
        "## Loss scores",
        "Lower is better. The paper's five rules alone, then all that the experiments have.",
        _losses(evidence),
        *_in_blocks(evidence),
        "## Milliseconds to choose, by experiment",
        _TAKEN,
        _milliseconds(evidence),
        "## Data and commands",
        _data(evidence),
        _missing(evidence),
    ]


def _against_random(evidence: Evidence) -> str:
    rows = []
    for rule in evidence.rules:
        each, datasets = _each(evidence, rule) if rule != BASELINE else ([], [])
        found = over_experiments(each, datasets)
        if found is None:
            continue
        won, lost = ([d for d in each if test(d)] for test in (is_win, is_loss))
        rows.append((found.value, [rule, shown(found), str(len(won)), str(len(lost)),
                                   counted(each, "experiment", [d.mean.n for d in each])]))  # fmt: skip
    columns = ["rule", "points [95%]", "significantly above in", "below in", "n"]
    return table(columns, [row for _, row in sorted(rows, key=lambda r: -r[0])])


def _help(evidence: Evidence) -> str:
    rows = []
    for one in evidence.curves:
        found = against(one)
        ranked = [rule for rule in one.ranking() if rule in found]
        above, below = (
            ", ".join(rule for rule in ranked if test(found[rule])) or "none"
            for test in (is_win, is_loss)
        )
        rows.append([one.name, one.ranking()[0], above, below])
    return table(["experiment", "highest mean", "above random", "below random"], rows, left=4)


Cell = Callable[[Curves, str], str]


def _by_experiment(evidence: Evidence, cell: Cell, *, every: bool = True) -> str:
    rules = [rule for rule in evidence.rules if every or rule != BASELINE]
    rows = [
        [one.name, *(cell(one, rule) if rule in one.methods else "" for rule in rules)]
        for one in evidence.curves
    ]
    return table(["experiment", *rules], rows)


def _gain(one: Curves, rule: str) -> str:
    if rule == BASELINE:
        return "0"
    found = differences([one], rule, BASELINE)
    return "".join(shown(d.mean) + ("*" if is_win(d) or is_loss(d) else "") for d in found) or "–"


def _mean(one: Curves, rule: str) -> str:
    return percent(float(one.mean_M[one.methods.index(rule)]), 2)


def _end(one: Curves, rule: str) -> str:
    ends = one.accuracy_MST[one.methods.index(rule), :, -1] if one.rounds else np.empty(0)
    ends = ends[np.isfinite(ends)]
    return percent(float(ends.mean()), 2) if len(ends) else "–"


def _saved(one: Curves, rule: str) -> str:
    return format_interval(labels_saved(one, rule), share=False)


def _losses(evidence: Evidence) -> str:
    """The paper's rules; those that every experiment has; and all, of the experiments that have all."""
    have = [set(one.methods) for one in evidence.experiments]
    kinds = [set(RULES), set.intersection(*have), set.union(*have)]
    found = {}
    for rules in map(SUITE.sort, kinds):
        those = [
            one
            for one in evidence.experiments
            if set(rules) <= set(one.methods) and penalty([one], methods=rules).rounds
        ]
        if those and len(rules) > 1:
            found[rules] = _loss_table(those, rules)
    return "\n\n".join(found.values()) or "No experiment here has two rules to compare."


def _loss_table(found: Sequence[ExperimentResults], rules: Sequence[str]) -> str:
    loss = [penalty(found, stage, methods=rules).loss_M for stage in STAGES.values()]
    rows = [[rule, *(number(view[i], 3) for view in loss)] for i, rule in enumerate(rules)]
    said = f"{len(rules)} rules, {counted(found, 'experiment')}"
    return table([said, *STAGES], sorted(rows, key=lambda row: float(row[1])))


def _in_blocks(evidence: Evidence) -> list[str]:
    """Of five seeds at a time, where there are more: those above are of all seeds together."""
    found = _paper(evidence)
    if not _has_blocks(found):
        return []
    views = [block_penalty(found, stage, methods=RULES) for stage in STAGES.values()]
    loss = [dict(zip(view.methods, view.loss_M, strict=True)) for view in views]
    rows = [[rule, *(number(view[rule], 3) for view in loss)] for rule in RULES]
    said = f"5 rules, {counted(found, 'experiment')}, five seeds at a time"
    return [
        "The same of matrices of five seeds each, as the paper's are, and the mean of them: the claims "
        "are judged by these.",
        table([said, *STAGES], sorted(rows, key=lambda row: float(row[1]))),
    ]


def block_figures(evidence: Evidence) -> dict[str, LazyFigure]:
    """The paper's matrices of five seeds at a time, by name; none where there are no more."""
    found = _paper(evidence)
    if not _has_blocks(found):
        return {}
    views = {title: block_penalty(found, stage, methods=RULES) for title, stage in STAGES.items()}
    return {"blocks-penalty-rounds": LazyFigure(draw_penalty, views)}


def _paper(evidence: Evidence) -> list[ExperimentResults]:
    """What is judged and has all of the paper's rules."""
    return [one for one in evidence.case.experiments if set(RULES) <= set(one.methods)]


def _has_blocks(found: Sequence[ExperimentResults]) -> bool:
    return any(len(blocks(one.only(RULES))) > 1 for one in found)


def _milliseconds(evidence: Evidence) -> str:
    rows = []
    for one in evidence.experiments:
        taken = evidence.facts.seconds.get(one.name, {})
        cells = []
        for rule in evidence.rules:
            each = [s.get("score", 0.0) + s.get("select", 0.0) for s in taken.get(rule, [])]
            cells.append(number(1000 * float(np.mean(each)), 1) if each else "–")
        rows.append([one.name, *cells])
    return table(["experiment", *evidence.rules], rows)


def _data(evidence: Evidence) -> str:
    rows = []
    for one in evidence.experiments:
        store = evidence.store(one.name)
        if store is None:
            rows.append([one.name, "a table of results alone", *[""] * 5])
            continue
        batch, rounds = (store.spec["schedule"][key] for key in ("batch", "rounds"))
        rate = store.info["learning_rate"]
        devices = {
            gpu for m in store.machines for gpu in m["hardware"]["gpus"] if m["device"] != "cpu"
        }
        line, file = command(store)
        rows.append(
            [
                one.name,
                store.info["subset"] or "the official set",
                f"{batch:,} to {batch * (rounds + 1):,}, by {batch:,}",
                str(store.spec["seeds"]),
                f"{rate:g}" if rate else "–",
                ", ".join(sorted(devices)) or "CPU",
                line if file is None else f"{line} (the spec is in the store)",
            ]
        )
    columns = ["experiment", "data", "labels", "seeds", "learning rate", "device", "command"]
    return table(columns, rows, left=len(columns))


def _missing(evidence: Evidence) -> str:
    if not evidence.missing:
        return f"All {len(SUITE.experiments)} experiments of the paper are here."
    return f"Not here: {', '.join(evidence.missing)}."
