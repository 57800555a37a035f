"""The tables of RESULTS.md: gains over random, accuracies, labels, time, data and commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from askance.experiments.seeds import seed_ranges, seeds_of
from askance.experiments.statistics.curves import Curves, Difference, difference, labels_saved
from askance.experiments.statistics.resample import Interval
from askance.experiments.statistics.table import BASELINE
from askance.paper.claims.evidence import Evidence, counted
from askance.paper.claims.judge import shown
from askance.paper.claims.losses import in_blocks, loss_scores
from askance.paper.claims.measures import over_experiments
from askance.paper.suite import SUITE
from askance.report.facts import StoreFacts
from askance.report.formatting import format_interval, number, percent
from askance.report.markdown import table
from askance.report.repeat import repeat
from askance.report.verdict import against, is_loss, is_win

_TAKEN = (
    "Scoring and choosing one batch after the forward pass, mean over acquisitions, as the runs took "
    "it: the seeds of a rule together, which shares the time of a batch rule among them. The labelled "
    "set's pass is not counted. The study `cost` times one acquisition by itself."
)


SHOWN = ("grad", "badge", "powergrad", "entropy", "kcenter")  # in the picture to see first


def gain_table(evidence: Evidence) -> dict[str, dict[str, Interval]]:
    """By experiment and rule the gain over random; and the mean over experiments last."""
    models = {one.name: one.model for one in evidence.experiments}
    gains = {
        one.name: {rule: gain.mean for rule in SHOWN if (gain := over_random(one, rule))}
        for one in sorted(evidence.curves, key=lambda one: (models[one.name], one.name))
    }
    rows = {name: of_rules for name, of_rules in gains.items() if of_rules}
    if len(rows) < 2:
        return rows
    those = [one for one in evidence.deciding if one.name in rows]
    means = {rule: over_experiments(*_gains(evidence, those, rule)) for rule in SHOWN}
    overall = {rule: mean for rule, mean in means.items() if mean is not None}
    which = "experiments" if len(those) == len(rows) else "that decide"
    return {**rows, f"mean of {len(those)} {which}": overall}


def over_random(one: Curves, rule: str) -> Difference | None:
    """A rule's mean accuracy less random's in an experiment that has both, over its seeds."""
    if not {rule, BASELINE} <= set(one.methods):
        return None
    gain = difference(one, rule, BASELINE)
    return gain if gain.mean.n else None


def _gains(
    evidence: Evidence, those: Sequence[Curves], rule: str
) -> tuple[list[Difference], list[str]]:
    """A rule's gain over random in every experiment that has both, and the dataset of each."""
    each = {one.name: over_random(one, rule) for one in those}
    gains = {name: gain for name, gain in each.items() if gain}
    return list(gains.values()), [evidence.datasets[name] for name in gains]


def sections(evidence: Evidence) -> list[str]:
    """Titles and tables, one after the other."""
    return [
        "## Every rule against random",
        _against_random(evidence, evidence.deciding),
        *_seen_before(evidence),
        "## Where rules help and where they fail",
        "Significantly above and below random in mean accuracy, by the corrected p.",
        _help(evidence),
        "## Points above random, by experiment",
        "A star where the corrected p of the paired t-test is below 0.05.",
        _by_experiment(evidence, _gain),
        "## Mean accuracy, by experiment",
        _by_experiment(evidence, _mean),
        "## Final accuracy, by experiment",
        _by_experiment(evidence, _end),
        "## Labels saved, by experiment",
        "Labels that random needs for its final accuracy, minus those the rule needs for the same.",
        _by_experiment(evidence, _saved, every=False),
        "## Loss scores",
        "Lower is better. The paper's five rules alone, then all that the experiments have.",
        *in_blocks(evidence),
        loss_scores(evidence),
        "## Milliseconds to choose, by experiment",
        _TAKEN,
        _milliseconds(evidence),
        "## Data and commands",
        _data(evidence),
        _missing(evidence),
    ]


def _against_random(evidence: Evidence, those: Sequence[Curves]) -> str:
    rows = []
    for rule in SUITE.sort({rule for one in those for rule in one.methods} - {BASELINE}):
        each, datasets = _gains(evidence, those, rule)
        mean = over_experiments(each, datasets)
        if mean is None:
            continue
        won, lost = (str(sum(map(test, each))) for test in (is_win, is_loss))
        n = counted(each, "experiment", [gain.mean.n for gain in each])
        rows.append((mean.value, [rule, shown(mean), won, lost, n]))
    columns = ["rule", "points [95%]", "significantly above in", "significantly below in", "n"]
    return table(columns, [row for _, row in sorted(rows, key=lambda row: -row[0])])


def _seen_before(evidence: Evidence) -> list[str]:
    """The same of the seeds that decide nothing, which may have more rules."""
    if not evidence.seen_before:
        return []
    return [
        f"### Seeds {seed_ranges(evidence.judging.exploratory)}, which are exploratory",
        _against_random(evidence, evidence.seen_before),
    ]


def _help(evidence: Evidence) -> str:
    rows = []
    for one in evidence.curves:
        gains = against(one)
        ranked = [rule for rule in one.ranking() if rule in gains]
        above, below = (
            ", ".join(rule for rule in ranked if test(gains[rule])) or "none"
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
    gain = over_random(one, rule)
    return shown(gain.mean) + "*" * (is_win(gain) or is_loss(gain)) if gain else "–"


def _mean(one: Curves, rule: str) -> str:
    return percent(float(one.mean_M[one.methods.index(rule)]), 2)


def _end(one: Curves, rule: str) -> str:
    ends = one.accuracy_MST[one.methods.index(rule), :, -1] if one.rounds else np.empty(0)
    ends = ends[np.isfinite(ends)]
    return percent(float(ends.mean()), 2) if len(ends) else "–"


def _saved(one: Curves, rule: str) -> str:
    return format_interval(labels_saved(one, rule), share=False)


def _milliseconds(evidence: Evidence) -> str:
    rows = []
    for one in evidence.experiments:
        taken = evidence.all_seeds.seconds.get(one.name, {})
        cells = []
        for rule in evidence.rules:
            each = [s.get("score", 0.0) + s.get("select", 0.0) for s in taken.get(rule, [])]
            cells.append(number(1000 * float(np.mean(each)), 1) if each else "–")
        rows.append([one.name, *cells])
    return table(["experiment", *evidence.rules], rows)


def _data(evidence: Evidence) -> str:
    rows = []
    for one in evidence.experiments:
        stores = evidence.stores(one.name)
        rows += [_data_of(store) for store in stores] or [
            [one.name, "a table of results alone", *[""] * 5]
        ]
    columns = ["experiment", "data", "labels", "seeds", "learning rate", "device", "command"]
    return table(columns, rows, left=len(columns))


def _data_of(store: StoreFacts) -> list[str]:
    batch, rounds = (store.spec["schedule"][key] for key in ("batch", "rounds"))
    rate, seeds = store.info["learning_rate"], seeds_of(store.spec["seeds"])
    devices = {gpu for m in store.machines for gpu in m["hardware"]["gpus"] if m["device"] != "cpu"}
    again = repeat(store)
    return [
        store.name,
        store.info["subset"] or "the official set",
        f"{batch:,} to {batch * (rounds + 1):,}, by {batch:,}",
        seed_ranges(seeds),
        f"{rate:g}" if rate else "–",
        ", ".join(sorted(devices)) or "CPU",
        again.command + ("" if again.file is None else " (the spec is in the store)"),
    ]


def _missing(evidence: Evidence) -> str:
    if not evidence.missing:
        return f"All {len(SUITE.experiments)} experiments of the paper are here."
    return f"Not here: {', '.join(evidence.missing)}."
