"""What single sections of a report say."""

from dataclasses import replace

import numpy as np

from askance.experiments.statistics.resample import Interval
from askance.report import facts, formatting
from askance.report.by_class import by_class_section
from askance.report.comparisons import across_section, penalty_section
from askance.report.elements import Details
from askance.report.page import make
from askance.report.sections import curves_section, verdict_section
from askance.report.training import flagged_warnings, training_section
from tests.experiments.statistics.worlds import noise, rows


def test_an_interval_that_is_not_there_is_not_shown():
    alone = Interval(76.0, np.nan, np.nan, 1)
    assert formatting.format_interval(alone, share=False) == "+76"
    assert (
        formatting.format_interval(Interval(0.1, 0.05, 0.2, 5), share=True) == "+10.0 [5.0, 20.0]"
    )
    assert formatting.format_interval(Interval(0.1, 0.05, 0.2, 4), share=True) == "+10.0"
    assert (
        formatting.format_interval(Interval(7.0, -np.inf, 9.0, 5), share=False) == "+7 [never, 9]"
    )


def test_the_seeds_beside_an_interval_are_those_it_rests_on():
    tables = noise(("random", "grad"), lifts={"grad": 0.1})
    tables["random"][4, 2:] = np.nan  # grad has five seeds, of which random has four
    table = rows(tables, name="short") + rows(noise(("random", "grad")), name="whole")
    recorded = facts.Facts([], table, [])
    *_, shown = verdict_section(recorded).blocks
    assert [(row[0], row[-1]) for row in shown.rows] == [("short", "4"), ("whole", "5")]
    details = next(one for one in curves_section(recorded).blocks if isinstance(one, Details))
    assert [(row[0], row[-1]) for row in details.blocks[0].rows] == [
        ("grad", "5, 4 in common"),
        ("random", "4"),
    ]


def test_an_experiment_that_has_not_begun_has_no_leader():
    names = ("random", "grad")
    table = rows(noise(names, rounds=1), name="new") + rows(noise(names), name="old")
    *_, shown = verdict_section(facts.Facts([], table, [])).blocks
    assert shown.rows[0] == ["new", "–", shown.rows[0][2], "–", "–", "5"]
    assert shown.rows[1][1] in names


def test_the_goal_of_a_profile_is_named_for_what_it_is():
    def goal(*methods):
        (pictures,) = across_section(facts.Facts([], rows(noise(methods)), [])).blocks
        return pictures.pictures[0].caption

    assert "reaches random's final accuracy within" in goal("random", "grad")
    without = goal("badge", "grad")
    assert "random" not in without
    assert "reaches the lowest of the rules' final accuracies within" in without


def test_training_is_told_by_rule_with_what_is_flagged_and_what_was_not_recorded():
    table = rows(noise(("random", "grad"), seeds=2, rounds=2), name="new")
    table = [
        replace(
            row,
            train_loss=0.5 * (row.round + 1),
            train_accuracy=1 - 0.25 * row.round,
            flagged=False,
        )
        if row.strategy == "grad"
        else row
        for row in table
    ]
    poor = next(i for i, row in enumerate(table) if row.strategy == "grad" and row.round == 1)
    table[poor] = replace(table[poor], train_loss=None, train_accuracy=0.25, flagged=True)
    recorded = facts.Facts([], table, [])
    *_, shown = training_section(recorded).blocks
    assert shown.rows == [
        ["new", "random", *["not recorded"] * 4],
        ["new", "grad", "100.0%", "50.0%", "1.000", "1 of 4"],
    ]
    (warning,) = flagged_warnings(recorded)
    assert warning.startswith("In new, 1 round of single runs is flagged")


def test_a_report_of_older_stores_says_that_training_was_not_recorded():
    recorded = facts.Facts([], rows(noise(("random", "grad"))), [])
    (note,) = training_section(recorded).blocks
    assert "not recorded" in note.text
    assert flagged_warnings(recorded) == []


def test_every_class_alike_is_shown_of_the_last_round_where_it_was_recorded():
    table = rows(noise(("random", "grad"), seeds=2, rounds=2), name="new")
    table = [
        replace(
            row,
            accuracy=0.5,
            balanced_accuracy=0.25 * (row.round + 1) + 0.1 * row.seed,
            macro_f1=0.125 * (row.round + 1),
        )
        if row.strategy == "grad"
        else row
        for row in table
    ]
    text, shown = by_class_section(facts.Facts([], table, [])).blocks
    assert "Classes that the test set does not have are left" in text.text
    labels = str(max(row.labels for row in table))
    assert shown.rows == [
        ["new", "random", *["not recorded"] * 7],
        [
            "new",
            "grad",
            labels,
            "50.0% ± 0.0",
            "55.0% ± 7.1",
            "25.0% ± 0.0",
            "42.5% ± 7.1",
            "18.8% ± 0.0",
            "2",
        ],
    ]


def test_a_report_of_older_stores_says_that_means_by_class_were_not_recorded():
    (note,) = by_class_section(facts.Facts([], rows(noise(("random", "grad"))), [])).blocks
    assert note.text == "Balanced accuracy and macro-F1 were not recorded in these runs."


def overlapping(*others, seeds=5):
    """Made-up results of pets and of other experiments."""
    lifts = {"grad": 0.1}
    table = rows(noise(("random", "grad"), seeds=seeds, lifts=lifts), name="pets-efficientnet",
                 dataset="pets", model="linear")  # fmt: skip
    for place, (name, dataset) in enumerate(others):
        lift = {"grad": -0.1}
        table += rows(noise(("random", "grad"), seeds=seeds, seed=place, lifts=lift), name=name,
                      dataset=dataset, model="linear")  # fmt: skip
    return facts.Facts([], table, [])


TEXTS = ("trec-minilm", "trec"), ("sst2-minilm", "sst2")


def test_experiments_whose_images_the_encoder_saw_are_marked_and_not_counted():
    recorded = overlapping(*TEXTS)
    assert recorded.overlapping == ["pets-efficientnet"]
    assert "over 2 experiments" in recorded.verdict.headline
    assert recorded.verdict.headline.startswith("Active learning did not help")
    assert "pets-efficientnet is not counted here" in recorded.verdict.sentences[0]
    for section in (verdict_section, by_class_section, training_section):
        tables = [one for one in section(recorded).blocks if hasattr(one, "rows")]
        named = {row[0] for one in tables for row in one.rows}
        assert named <= {"pets-efficientnet †", "trec-minilm", "sst2-minilm"}
    assert any("not counted" in one.text for one in penalty_section(recorded).blocks[:1])
    for picture in across_section(recorded).blocks[0].pictures:
        assert "pets-efficientnet is not counted here" in picture.caption
    captions = {one.name: one.caption for one in curves_section(recorded).blocks[1].pictures}
    assert captions["curves-pets-efficientnet"].startswith("† The encoder was trained on images")
    assert captions["curves-trec-minilm"] == ""
    assert any("† marks pets-efficientnet" in text for text in make(recorded, "r.html").warnings)


def test_where_all_overlap_all_are_counted_and_marked():
    recorded = overlapping()
    assert recorded.aside == []
    assert recorded.verdict.headline.startswith("Active learning helped")
    assert any("† marks pets-efficientnet" in text for text in make(recorded, "r.html").warnings)


def test_an_experiment_of_the_same_name_on_other_data_is_not_marked():
    table = rows(
        noise(("random", "grad")), name="pets-efficientnet", dataset="mine", model="linear"
    )
    assert facts.Facts([], table, []).overlapping == []


def test_the_figures_over_experiments_are_of_those_that_count():
    recorded = overlapping(*TEXTS)
    assert recorded.figures["ranks"]._draw.args[0].experiments == ("sst2-minilm", "trec-minilm")
    assert "curves-pets-efficientnet" in recorded.figures
