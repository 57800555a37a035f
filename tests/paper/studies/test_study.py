"""Tables of studies, and the rows they are made of."""

from dataclasses import dataclass

import numpy as np

from askance.paper.studies.study import StudyTable, column, from_to, rows_where


@dataclass(frozen=True)
class Row:
    rule: str
    seed: int
    loss: float


ROWS = [Row("grad", 0, 0.5), Row("badge", 0, 0.25), Row("grad", 1, 0.75)]


def test_rows_are_those_whose_fields_have_all_these_values():
    assert rows_where(ROWS, rule="grad") == [ROWS[0], ROWS[2]]
    assert rows_where(ROWS, rule="grad", seed=1) == [ROWS[2]]
    assert rows_where(ROWS, rule="entropy") == []
    np.testing.assert_array_equal(column(ROWS, "loss", rule="grad"), [0.5, 0.75])
    assert column(ROWS, "loss", rule="entropy").shape == (0,)


def test_a_table_has_a_row_for_each_item_and_may_repeat_a_column():
    loss = ("loss", lambda row: f"{row.loss:.2f}")
    made = StudyTable.of(ROWS[:2], ("rule", lambda row: row.rule), loss, loss)
    assert made.columns == ("rule", "loss", "loss")
    assert made.rows == (("grad", "0.50", "0.50"), ("badge", "0.25", "0.25"))
    assert made.markdown().splitlines() == [
        "| rule | loss | loss |",
        "| --- | ---: | ---: |",
        "| grad | 0.50 | 0.50 |",
        "| badge | 0.25 | 0.25 |",
    ]


def test_a_range_whose_ends_read_alike_is_one_number():
    assert from_to([0.14, 0.11], ".1f") == "0.1"
    assert from_to([0.3, 0.1, 0.2], ".1f") == "0.1 to 0.3"
