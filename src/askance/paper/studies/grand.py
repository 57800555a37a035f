"""GraNd and EL2N beside `gradnorm` and `grad`: do they rank a pool alike, and ask for the same points?

Paul, Ganguli and Dziugaite (2021, "Deep Learning on a Data Diet"), whom the paper cites, score examples
whose labels are known, to leave some out of training. At an epoch t

    GraNd_t(x, y) = E ‖∇_θ ℓ(θ_t; x, y)‖₂,        EL2N_t(x, y) = E ‖p(θ_t, x) − e_y‖₂,

the gradient of all parameters, the mean over initial weights (here over some networks), t at the start
or a few epochs later. `gradnorm` is ‖∇_W ℓ(θ_T; x, ŷ)‖ of the last layer W alone, of one network at its
end, under the pseudo-label ŷ. The study goes from one to the other a step at a time.

Deviations: Paul et al. score the points that the networks are trained on; here they are trained on a
labelled set, and score the pool, as a rule would.

Neither is a rule of askance: both need the labels of the pool.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from askance.experiments.statistics.resample import Interval
from askance.figures import style
from askance.paper.studies.grand_run import GrandOptions, GrandResult, run
from askance.paper.studies.intervals import over_draws, said, sided
from askance.paper.studies.study import Study, StudyTable, listed, rows_where

SCORES = ("GraNd", "EL2N")
Way = tuple[str, str, str, int, int]  # to score: experiment, score, labels, epoch, networks
_KEYS = ("experiment", "score", "labels", "epoch", "networks")


def over(result: GrandResult, field: str, **which: object) -> Interval:
    """The mean of one field over the draws."""
    values = [getattr(one, field) for one in rows_where(result.rankings, **which)]
    return over_draws(np.array([value for value in values if value is not None]))


def findings(result: GrandResult) -> str:
    """Whether both scores as they are defined rank with `gradnorm`; then what moves the ranking."""
    options = result.options
    finding, points = [], []
    for experiment in options.experiments:
        ranked, lines = _of_experiment(result, experiment.name)
        finding.append(ranked)
        points += lines
    return listed(
        " ".join(finding),
        f"Setting: GraNd and EL2N of {options.points:,} pool points under their true labels, the mean "
        f"over {options.networks} networks trained on {options.labeled} random labels, beside "
        f"`gradnorm` and `grad` of the first of them ({options.draws} draws, seeds {options.seed} to "
        f"{options.seed + options.draws - 1}; {'; '.join(result.data)}).",
        f"Intervals are Student's at 95% over the draws. A batch is the {options.batch} highest "
        f"scores, so that chance shares {options.batch / options.points:.0%}.",
        *points,
    )


def _of_experiment(result: GrandResult, name: str) -> tuple[str, list[str]]:
    """Both scores early and under true labels; then a step at a time from `gradnorm` to GraNd."""
    batch = over(result, "wrong", experiment=name, score="gradnorm", labels="pseudo")
    pool = over_draws(np.array(result.wrong[name]))
    defined = [_as_defined(result, name, score) for score in SCORES]
    lines = [
        *(line for _, line in defined),
        f"{name}: the pseudo-label is wrong for {said(batch, 100, 0)}% of `gradnorm`'s batch and for "
        f"{said(pool, 100, 0)}% of the pool.",
        f"{name}: {_steps(result, name)}",
    ]
    if 0 in result.options.early:
        length = _of(result, "with_length", (name, "GraNd", "true", 0, result.options.networks))
        lines.append(
            f"{name}: before training GraNd goes with the length of the input, ρ "
            f"{said(length, digits=2)}. Kirsch (2023, \"Does 'Deep Learning on a Data Diet' "
            f'reproduce?") saw it on CIFAR-10.'
        )
    return f"{name}: {'; '.join(verdict for verdict, _ in defined)}.", lines


def _as_defined(result: GrandResult, name: str, score: str) -> tuple[str, str]:
    """A score as Paul et al. have it: early, under true labels, the mean over networks."""
    epoch = max(result.options.early)
    way = (name, score, "true", epoch, result.options.networks)
    rho, with_grad, shared, wrong = (
        _of(result, field, way)
        for field in ("with_gradnorm", "with_grad", "shared_gradnorm", "wrong")
    )
    verdict = sided(
        rho,
        "ranks with `gradnorm`",
        "ranks against `gradnorm`",
        "is not shown to rank with `gradnorm` or against it",
    )
    return f"{score} {verdict}", (
        f"{name}, {score} after {epoch} epochs: Spearman's ρ with `gradnorm` is "
        f"{said(rho, digits=2)}, and with `grad` {said(with_grad, digits=2)}. Its batch shares "
        f"{said(shared, 100, 0)}% with that of `gradnorm`. The pseudo-label is wrong for "
        f"{said(wrong, 100, 0)}% of it."
    )


def _steps(result: GrandResult, name: str) -> str:
    """From `gradnorm` to GraNd, one change after the other."""
    options, last = result.options, _last(result, name)
    many = options.networks
    ways: dict[str, Way] = {"all parameters": (name, "GraNd", "pseudo", last, 1)}
    ways["true labels as well"] = (name, "GraNd", "true", last, 1)
    ways[f"the mean over {many} networks as well"] = (name, "GraNd", "true", last, many)
    for epoch in sorted(options.early, reverse=True):
        when = f"after {epoch} epochs" if epoch else "before training"
        ways[when] = (name, "GraNd", "true", epoch, many)
    told = "; ".join(
        f"{words} {said(_of(result, 'with_gradnorm', way), digits=2)}"
        for words, way in ways.items()
    )
    return f"from `gradnorm` to GraNd a step at a time, ρ with `gradnorm` is: {told}."


def _last(result: GrandResult, name: str) -> int:
    """The networks' last epoch."""
    return max(one.epoch for one in rows_where(result.rankings, experiment=name))


def _of(result: GrandResult, field: str, way: Way) -> Interval:
    """The mean of one field over the draws, of one way to score."""
    return over(result, field, **dict(zip(_KEYS, way, strict=True)))


def _ways(result: GrandResult) -> list[Way]:
    """Every way to score there is."""
    return list(
        dict.fromkeys(
            (one.experiment, one.score, one.labels, one.epoch, one.networks)
            for one in result.rankings
        )
    )


def table(result: GrandResult) -> StudyTable:
    """A row for each way to score: means with intervals over the draws."""

    def text(field: str, unit: float = 1, digits: int = 2) -> Callable[[Way], str]:
        return lambda way: said(_of(result, field, way), unit, digits)

    return StudyTable.of(
        _ways(result),
        ("experiment", lambda way: way[0]),
        ("score", lambda way: way[1]),
        ("labels", lambda way: way[2]),
        ("epoch", lambda way: str(way[3])),
        ("networks", lambda way: str(way[4])),
        ("ρ with gradnorm", text("with_gradnorm")),
        ("ρ with grad", text("with_grad")),
        ("shared with gradnorm %", text("shared_gradnorm", 100, 0)),
        ("shared with grad %", text("shared_grad", 100, 0)),
        ("wrong in the batch %", text("wrong", 100, 0)),
        names=3,
    )


@style.styled
def draw(result: GrandResult) -> Figure:
    """Rank correlation with `gradnorm`, and the share of its batch, by epoch, for each experiment."""
    names = [experiment.name for experiment in result.options.experiments]
    figure = style.new_figure(1 + 3.6 * len(names), 5.4)
    grid = figure.subplots(2, len(names), squeeze=False, sharex="col", sharey="row")
    for (above, below), name in zip(grid.T, names, strict=True):
        _by_epoch(above, result, name, "with_gradnorm")
        _by_epoch(below, result, name, "shared_gradnorm")
        style.panel(above, name)
        style.panel(below)
        below.set_xlabel("epoch")
        below.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    grid[0][0].set_ylabel("Spearman’s ρ with gradnorm")
    grid[1][0].set_ylabel("share of gradnorm’s batch")
    grid[0][0].legend(loc="best")
    return figure


_LOOKS = {
    ("GraNd", "true"): (style.VERMILLION, "o"),
    ("GraNd", "pseudo"): (style.ORANGE, "^"),
    ("EL2N", "true"): (style.BLUE, "s"),
    ("EL2N", "pseudo"): (style.SKY, "v"),
}

_NAMES = {"true": "true labels", "pseudo": "pseudo-labels"}


def _by_epoch(axis: Axes, result: GrandResult, name: str, field: str) -> None:
    """Means over the draws with their intervals, of the scores that are means over networks."""
    epochs = [*result.options.early, _last(result, name)]
    for (score, labels), (hue, mark) in _LOOKS.items():
        means = [
            _of(result, field, (name, score, labels, epoch, result.options.networks))
            for epoch in epochs
        ]
        ends = np.nan_to_num([(mean.value - mean.low, mean.high - mean.value) for mean in means])
        axis.errorbar(
            range(len(epochs)), [mean.value for mean in means], yerr=ends.T, color=hue, marker=mark,
            capsize=3, label=f"{score}, {_NAMES[labels]}",
        )  # fmt: skip
    axis.set_xticks(range(len(epochs)), list(map(str, epochs)))


STUDY = Study(
    name="grand",
    about="do GraNd and EL2N ask for what gradnorm asks for?",
    full=GrandOptions(),
    quick=GrandOptions(points=400, batch=40, networks=3),
    result=GrandResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)
