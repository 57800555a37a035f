"""Test accuracy where every class counts alike: balanced accuracy and macro-F1."""

from __future__ import annotations

import numpy as np

from askance.experiments.formats import ResultRow
from askance.experiments.statistics.curves import areas
from askance.report.elements import Section, Text, TextTable
from askance.report.facts import Facts
from askance.report.formatting import percent, points
from askance.report.training import NOT_RECORDED


def by_class_section(facts: Facts) -> Section:
    """Accuracy, balanced accuracy and macro-F1 of each rule in its last round."""
    title = "Every class alike"
    if all(row.macro_f1 is None for row in facts.rows):
        text = f"Balanced accuracy and macro-F1 were {NOT_RECORDED} in these runs."
        return Section("classes", title, [Text(text, "note")])
    text = (
        "Where classes differ in size, accuracy is mostly that of the large ones. Balanced accuracy is "
        "the mean over classes of the share of right answers; macro-F1 is the mean over classes of F1, "
        "which wrong answers of a class lower too. Classes that the test set does not have are left "
        "out of both. On the test set in the last round, and for the means over the labels spent; mean "
        "over seeds ± 1 standard deviation."
    )
    rows = [
        [facts.marked(one.name), *_of_rule(one.name, rule, facts.trained_rows)]
        for one in facts.experiments
        for rule in one.methods
    ]
    columns = ["experiment", "rule", "labels", "accuracy", "balanced accuracy", "macro-F1",
               "mean balanced accuracy", "mean macro-F1", "seeds"]  # fmt: skip
    return Section("classes", title, [Text(text), TextTable(columns, rows, left=2)])


def _of_rule(name: str, rule: str, table: list[ResultRow]) -> list[str]:
    rows = [row for row in table if (row.experiment, row.strategy) == (name, rule)]
    recorded = [row for row in rows if row.macro_f1 is not None]
    if not recorded:
        return [rule, *[NOT_RECORDED] * 7]
    last = max(row.round for row in recorded)
    ends = [row for row in recorded if row.round == last]
    means = [
        _mean_std([getattr(row, value) for row in ends])
        for value in ("accuracy", "balanced_accuracy", "macro_f1")
    ]
    finished = {row.seed for row in ends}
    for value in ("balanced_accuracy", "macro_f1"):
        means.append(_mean_std([_area(recorded, seed, value) for seed in sorted(finished)]))
    return [rule, f"{ends[0].labels:,}", *means, str(len(ends))]


def _area(rows: list[ResultRow], seed: int, value: str) -> float:
    """A value over the labels spent, as `areas` has it."""
    of_seed = sorted((row for row in rows if row.seed == seed), key=lambda row: row.labels)
    labels, values = (
        np.array([getattr(row, key) for row in of_seed], dtype=np.float64)
        for key in ("labels", value)
    )
    return float(areas(labels, values))


def _mean_std(values: list[float]) -> str:
    spread = f" ± {points(float(np.std(values, ddof=1)))}" if len(values) > 1 else ""
    return f"{percent(float(np.mean(values)))}{spread}"
