"""Whether the models learned: their loss and accuracy on what they were trained on."""

from __future__ import annotations

from collections import Counter

import numpy as np

from askance.experiments.formats import ResultRow
from askance.experiments.statistics.untrained import flags
from askance.report.elements import Block, Section, Text, TextTable
from askance.report.facts import Facts
from askance.report.formatting import number, percent, plural

NOT_RECORDED = "not recorded"


def training_section(facts: Facts) -> Section:
    """Training accuracy and loss of each rule's models, and how many rounds are flagged."""
    text = Text(
        f"Accuracy and loss of each {facts.learner} on its own labelled set, mean over seeds. A "
        "round is flagged as untrained when its training accuracy is at most q + 2√(q(1 − q)/L), where "
        "q is the share of the largest class among its L labels: little better than always answering "
        "that class. Where any rule of a seed is flagged, that round is left out for all rules of the "
        "seed, in every mean, test and figure on this page but those of this section and of the runs."
    )
    blocks: list[Block] = [text]
    if all(row.train_accuracy is None for row in facts.rows):
        blocks = [Text(f"Training loss and accuracy were {NOT_RECORDED} in these runs.", "note")]
    else:
        rows = [
            [facts.marked(one.name), *_of_rule(one.name, rule, facts.rows)]
            for one in facts.experiments
            for rule in one.methods
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
    title = f"Did the {facts.learner}s learn their labels?"
    return Section("training", title, blocks)


def flagged_warnings(facts: Facts) -> list[str]:
    """One sentence for each experiment that has rounds flagged as untrained."""
    counts = Counter(row.experiment for row in facts.rows if row.flagged)
    out = {one.name: int(flags(one).sum()) for one in facts.every_round}
    return [
        f"In {name}, {plural(count, 'round')} of single runs {'is' if count == 1 else 'are'} flagged: "
        "the model learned no more than its most frequent label, so they say nothing about a rule. "
        f"{plural(out[name], 'round')} of a seed {'is' if out[name] == 1 else 'are'} left out for all "
        "its rules."
        for name, count in counts.items()
    ]


def _of_rule(name: str, rule: str, table: list[ResultRow]) -> list[str]:
    rows = [row for row in table if (row.experiment, row.strategy) == (name, rule)]
    recorded = [row for row in rows if row.train_accuracy is not None]
    if not recorded:
        return [rule, *[NOT_RECORDED] * 4]
    first, last = min(row.round for row in recorded), max(row.round for row in recorded)
    losses = [
        row.train_loss for row in recorded if row.round == last and row.train_loss is not None
    ]
    flagged = sum(bool(row.flagged) for row in recorded)
    partly = "" if len(recorded) == len(rows) else f"; {len(rows) - len(recorded)} {NOT_RECORDED}"
    return [
        rule,
        percent(_mean_accuracy(recorded, first)),
        percent(_mean_accuracy(recorded, last)),
        number(float(np.mean(losses)), 3) if losses else "not finite",
        f"{flagged} of {len(recorded)}{partly}",
    ]


def _mean_accuracy(rows: list[ResultRow], number: int) -> float:
    return float(np.mean([row.train_accuracy for row in rows if row.round == number]))
