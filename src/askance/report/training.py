"""Whether the networks trained: their loss and accuracy on what they were trained on."""

from __future__ import annotations

import numpy as np

from askance.experiments.formats import ResultRow
from askance.report.elements import Block, Section, Text, TextTable
from askance.report.facts import Facts
from askance.report.formatting import number, percent, plural

NOT_RECORDED = "not recorded"


def training_section(facts: Facts) -> Section:
    text = Text(
        "Accuracy and loss of each network on its own labelled set after training, mean over seeds. A "
        "round is flagged as untrained when its training accuracy is at most q + 2√(q(1 − q)/L), where "
        "q is the share of the largest class among its L labels: little better than always answering "
        "that class."
    )
    blocks: list[Block] = [text]
    if all(row.train_accuracy is None for row in facts.rows):
        blocks = [Text(f"Training loss and accuracy were {NOT_RECORDED} in these runs.", "note")]
    else:
        rows = [
            _of_rule(
                name, rule, [r for r in facts.rows if (r.experiment, r.strategy) == (name, rule)]
            )
            for name, rule in _rules(facts)
        ]
        columns = [
            "experiment",
            "rule",
            "training accuracy, first round",
            "training accuracy, last round",
            "training loss, last round",
            "flagged rounds",
        ]
        blocks.append(TextTable(columns, rows, left=2))
    return Section("training", "Did the networks train?", blocks)


def _flagged_rounds(facts: Facts) -> dict[str, int]:
    """How many rounds of each experiment are flagged, where any is."""
    counts: dict[str, int] = {}
    for row in facts.rows:
        if row.flagged:
            counts[row.experiment] = counts.get(row.experiment, 0) + 1
    return counts


def flagged_warnings(facts: Facts) -> list[str]:
    return [
        f"In {name}, {plural(count, 'round')} of single runs {'is' if count == 1 else 'are'} flagged: "
        "the network learned no more than its most frequent label, so they say nothing about a rule."
        for name, count in _flagged_rounds(facts).items()
    ]


def _rules(facts: Facts) -> list[tuple[str, str]]:
    return [(one.name, rule) for one in facts.experiments for rule in one.methods]


def _of_rule(name: str, rule: str, rows: list[ResultRow]) -> list[str]:
    recorded = [row for row in rows if row.train_accuracy is not None]
    if not recorded:
        return [name, rule, *[NOT_RECORDED] * 4]
    first, last = min(row.round for row in recorded), max(row.round for row in recorded)
    losses = [
        row.train_loss for row in recorded if row.round == last and row.train_loss is not None
    ]
    flagged = sum(bool(row.flagged) for row in recorded)
    partly = "" if len(recorded) == len(rows) else f"; {len(rows) - len(recorded)} {NOT_RECORDED}"
    return [
        name,
        rule,
        percent(_mean_accuracy(recorded, first)),
        percent(_mean_accuracy(recorded, last)),
        number(float(np.mean(losses)), 3) if losses else "not finite",
        f"{flagged} of {len(recorded)}{partly}",
    ]


def _mean_accuracy(rows: list[ResultRow], number: int) -> float:
    return float(np.mean([row.train_accuracy for row in rows if row.round == number]))
