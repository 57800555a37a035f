"""Would `grad` do better with true labels? DF of the pool under them, beside the paper's.

A rule cannot know the labels of the pool, so the paper scores x under the class that the network gives
it. Here runs of `grad` are played as ever. In every round DF is also taken under the true labels, with
the same network and the same reference: how alike both rank the pool, and how much of the batch they
share. Beside them runs of an oracle `grad` that picks by the true labels, and random ones.

It is a study and no rule: `askance.select` never sees a label of the pool.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from askance.experiments.statistics.resample import Interval
from askance.figures import style
from askance.paper.studies.intervals import over_draws, said, sided
from askance.paper.studies.labels_run import ORACLE, PATHS, LabelsOptions, LabelsResult, run
from askance.paper.studies.reference import Experiment
from askance.paper.studies.study import Study, StudyTable, column, listed, rows_where

Cell = Callable[[tuple[str, int]], str]  # of an experiment and a round


def gain(result: LabelsResult, experiment: str, path: str, other: str) -> Interval:
    """Mean test accuracy over rounds from 1 on, of one way to pick less another, over the draws."""
    points = [one for one in rows_where(result.curves, experiment=experiment) if one.round]
    seeds = sorted({one.seed for one in points})
    mean, mean_other = (
        np.array([column(points, "accuracy", path=each, seed=seed).mean() for seed in seeds])
        for each in (path, other)
    )
    return over_draws(mean - mean_other)


def by_draw(result: LabelsResult, experiment: str, field: str) -> Interval:
    """The mean of a field over rounds, over the draws."""
    rounds = rows_where(result.rounds, experiment=experiment)
    seeds = dict.fromkeys(one.seed for one in rounds)
    each = [
        [
            value
            for one in rows_where(rounds, seed=seed)
            if (value := getattr(one, field)) is not None
        ]
        for seed in seeds
    ]
    return over_draws(np.array([np.mean(values) for values in each if values]))


def findings(result: LabelsResult) -> str:
    """What an oracle would gain; then of each experiment how alike both scores are."""
    draws, points = result.options.runs, []
    finding = []
    for experiment in result.options.experiments:
        gained, lines = _of_experiment(result, experiment.name)
        finding.append(gained)
        points += lines
    return listed(
        " ".join(finding),
        f"Setting: DF under pseudo-labels, which are the paper's, and under the true labels, of the "
        f"same pool with the same network in every round of runs of `grad` ({draws} draws, seeds "
        f"{result.options.seed} to {result.options.seed + draws - 1}; {'; '.join(result.data)}). The "
        f"two are equal wherever the pseudo-label is right.",
        "Intervals are Student's at 95% over the draws, of means over rounds.",
        *points,
    )


def _of_experiment(result: LabelsResult, name: str) -> tuple[str, list[str]]:
    about = {
        field: by_draw(result, name, field)
        for field in ("spearman", "overlap", "wrong", "wrong_pseudo", "wrong_true")
    }
    better, worse = gain(result, name, ORACLE, "grad"), gain(result, name, ORACLE, "random")
    rounds = max(one.round for one in rows_where(result.curves, experiment=name))
    verdict = sided(better, "raises accuracy", "lowers accuracy", "is not shown to change accuracy")
    return f"{name}: knowing the labels {verdict}.", [
        f"{name} (learning rate {result.rates[name]:g}, {rounds} rounds): the mean accuracy of an "
        f"oracle `grad`, which picks under true labels, less that of `grad` is "
        f"{said(better, 100, sign=True)} points, and less that of random picks "
        f"{said(worse, 100, sign=True)}.",
        f"{name}: Spearman's ρ of the two scores is {said(about['spearman'], digits=3)}, and their "
        f"batches share {said(about['overlap'], 100)}%.",
        f"{name}: the pseudo-label is wrong for {said(about['wrong'], 100)}% of the pool, for "
        f"{said(about['wrong_pseudo'], 100)}% of the batch under pseudo-labels and for "
        f"{said(about['wrong_true'], 100)}% of that under true labels.",
    ]


def table(result: LabelsResult) -> StudyTable:
    """A row for each experiment and round: means over the draws."""
    rows = list(dict.fromkeys((one.experiment, one.round) for one in result.curves))

    def mean(field: str, unit: float = 100, digits: int = 1) -> Cell:
        def text(row: tuple[str, int]) -> str:
            rounds = rows_where(result.rounds, experiment=row[0], round=row[1])
            values = [value for one in rounds if (value := getattr(one, field)) is not None]
            return f"{unit * np.mean(values):.{digits}f}" if values else "–"

        return text

    def accuracy(path: str) -> Cell:
        def text(row: tuple[str, int]) -> str:
            at = {"experiment": row[0], "round": row[1], "path": path}
            return f"{100 * column(result.curves, 'accuracy', **at).mean():.2f}"

        return text

    return StudyTable.of(
        rows,
        ("experiment", lambda row: row[0]),
        ("round", lambda row: str(row[1])),
        *((f"accuracy, {path}", accuracy(path)) for path in PATHS),
        ("Spearman", mean("spearman", 1, 3)),
        ("shared %", mean("overlap")),
        ("wrong, pool %", mean("wrong")),
        ("wrong, grad's batch %", mean("wrong_pseudo")),
        ("wrong, oracle's batch %", mean("wrong_true")),
    )


@style.styled
def draw(result: LabelsResult) -> Figure:
    """Above, the accuracy of each way to pick; below, how alike both scores are, by experiment."""
    names = [experiment.name for experiment in result.options.experiments]
    figure = style.new_figure(1 + 3.6 * len(names), 5.4)
    grid = figure.subplots(2, len(names), squeeze=False, sharex="col")
    for (above, below), name in zip(grid.T, names, strict=True):
        _accuracies(above, result, name)
        _agreement(below, result, name)
        below.set_xlabel("labels")
    grid[0][0].set_ylabel("test accuracy")
    grid[1][0].set_ylabel("share")
    grid[0][0].legend(loc="lower right")
    grid[1][0].legend(loc="best")
    return figure


def _accuracies(axis: Axes, result: LabelsResult, name: str) -> None:
    """The mean of each way to pick with a band of one standard deviation."""
    hues = {"random": style.GREY, "grad": style.rule_style("grad").colour, ORACLE: style.PURPLE}
    words = {ORACLE: "grad, true labels", "grad": "grad, pseudo-labels"}
    for path in PATHS:
        points = rows_where(result.curves, experiment=name, path=path)
        labels = sorted({one.labels for one in points})
        values_TS = np.array([column(points, "accuracy", labels=count) for count in labels])
        mean, std = values_TS.mean(axis=1), values_TS.std(axis=1)
        axis.plot(labels, mean, color=hues[path], label=words.get(path, path))
        axis.fill_between(labels, mean - std, mean + std, color=hues[path], alpha=0.15, linewidth=0)
    axis.yaxis.set_major_formatter(PercentFormatter(1))
    style.panel(axis, name)


def _agreement(axis: Axes, result: LabelsResult, name: str) -> None:
    """Means over the draws, by labels."""
    rounds = rows_where(result.rounds, experiment=name)
    labels = sorted({one.labels for one in rounds})
    for field, words, hue, mark in (
        ("overlap", "picks in both batches", style.BLUE, "o"),
        ("wrong", "wrong pseudo-labels: pool", style.GREY, "s"),
        ("wrong_pseudo", "wrong: batch under pseudo-labels", style.VERMILLION, "^"),
        ("wrong_true", "wrong: batch under true labels", style.PURPLE, "v"),
    ):
        mean = [float(column(rounds, field, labels=count).mean()) for count in labels]
        axis.plot(labels, mean, color=hue, marker=mark, markersize=4, label=words)
    axis.set_ylim(-0.03, 1.03)
    axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axis.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    style.panel(axis)


STUDY = Study(
    name="labels",
    about="would grad do better with true labels?",
    full=LabelsOptions(),
    quick=LabelsOptions(
        (
            Experiment("isolet-mlp", rounds=7, rates=(0.005,)),
            Experiment("stl10-lenet", rounds=4, rates=(0.001,)),
        )
    ),
    result=LabelsResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)
