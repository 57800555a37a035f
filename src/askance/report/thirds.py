"""How a rule's gain moves with the budget."""

from __future__ import annotations

from collections.abc import Sequence

from askance.experiments.statistics.resample import Interval
from askance.experiments.statistics.table import BASELINE, ExperimentResults
from askance.experiments.statistics.thirds import NAMES, gains, mean_gains, thirds
from askance.report.elements import Block, Heading, Section, Text, TextTable
from askance.report.facts import Facts
from askance.report.formatting import format_interval, plural

_FEWEST_ROUNDS = 3  # one a third


def thirds_section(facts: Facts) -> Section | None:
    """Points over random in each third of the budget; None where no experiment has so many rounds."""
    long = [
        one
        for one in facts.experiments
        if len(one.methods) > 1
        and BASELINE in one.methods
        and sum(map(len, thirds(one.rounds))) >= _FEWEST_ROUNDS
    ]
    if not long:
        return None
    text = (
        f"Points of test accuracy over {BASELINE}, mean over the rounds of each third of the queries, "
        "with Student's 95% interval over the seeds. Round 0 comes before any query and does not "
        "count. A rule may help while labels are few and not later, or the other way round. These are "
        "means over rounds, each counted alike; elsewhere on this page a mean accuracy is the area "
        "under the budget curve, in which round 0 has a part, so that gains differ a little."
    )
    blocks: list[Block] = [Text(text)]
    counted = [one for one in long if one.name not in facts.aside]
    if len(counted) > 1:
        blocks.append(_over_experiments(counted))
    for one in long:
        rows = [(rule, gains(one, rule)) for rule in one.methods if rule != BASELINE]
        if len(long) > 1:
            blocks.append(Heading(facts.marked(one.name)))
        blocks.append(_table(rows))
    return Section("thirds", "By thirds of the budget", blocks)


def _over_experiments(counted: Sequence[ExperimentResults]) -> TextTable:
    shared = [
        rule
        for rule in counted[0].methods
        if rule != BASELINE and all(rule in one.methods for one in counted)
    ]
    datasets = plural(len({one.dataset for one in counted}), "dataset")
    return _table(
        [(rule, mean_gains(counted, rule)) for rule in shared],
        f"In the mean over {plural(len(counted), 'experiment')}; the interval is over {datasets}",
    )


def _table(rows: Sequence[tuple[str, Sequence[Interval | None]]], caption: str = "") -> TextTable:
    """The rules by their gain in all rounds."""

    def first(row: tuple[str, Sequence[Interval | None]]) -> float:
        return -row[1][0].value if row[1][0] else float("inf")

    cells = [
        [rule, *(format_interval(gain, share=True) for gain in each)]
        for rule, each in sorted(rows, key=first)
    ]
    return TextTable(["rule", *NAMES], cells, caption=caption)
