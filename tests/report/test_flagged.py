"""A round in which a network did not train is in no mean of a report, and the page says so."""

from dataclasses import replace

import numpy as np
import pytest

from askance.experiments import export
from askance.report import page
from askance.report.facts import read
from askance.report.markdown import render
from tests.experiments.statistics.worlds import noise, rows


@pytest.fixture
def table(tmp_path):
    """Two experiments of the same runs; in the second, grad's network of seed 1 did not train twice."""
    made = [
        replace(row, train_accuracy=0.99, train_loss=0.01, flagged=False, macro_f1=row.accuracy,
                balanced_accuracy=row.accuracy)
        for row in rows(noise(("random", "grad"), seeds=4, rounds=5), name="whole")
    ]  # fmt: skip
    for row in list(made):
        out = (row.strategy, row.seed) == ("grad", 1) and row.round in (2, 4)
        low = {"accuracy": 0.1, "train_accuracy": 0.1, "macro_f1": 0.1, "balanced_accuracy": 0.1}
        made.append(replace(row, experiment="part", flagged=out, **(low if out else {})))
    export.write(made, "csv", tmp_path / "a.csv")
    return tmp_path / "a.csv"


def test_a_flagged_round_is_left_out_for_all_rules_of_the_seed(table):
    facts = read(table)
    part, whole = facts.experiments
    assert (part.name, whole.name) == ("part", "whole")
    assert np.isnan(part.accuracy_MST[:, 1, [2, 4]]).all()
    assert np.isfinite(part.accuracy_MST).sum() == 2 * 4 * 5 - 2 * 2
    assert np.isfinite(facts.every_round[0].accuracy_MST).all()
    assert np.isfinite(whole.accuracy_MST).all()
    left = {(row.seed, row.round) for row in facts.trained_rows if row.experiment == "part"}
    assert left == {(s, r) for s in range(4) for r in range(5)} - {(1, 2), (1, 4)}
    # The mean that ends a curve is that of the seeds that are left.
    ends = facts.curves[0].accuracy_MST[:, [0, 2, 3], -1].mean(axis=1)
    np.testing.assert_allclose(np.nanmean(facts.curves[0].accuracy_MST[:, :, -1], axis=1), ends)


def test_the_page_says_what_is_left_out(table, tmp_path):
    made = page.make(read(table), "report.md")
    text = render(made, tmp_path / "files")
    assert "In part, 2 rounds of single runs are flagged" in text
    assert "2 rounds of a seed are left out for all its rules." in text
    assert "that round is left out for all rules of the seed" in text
    assert "10.0%" not in text.partition("Did the networks train?")[0]
