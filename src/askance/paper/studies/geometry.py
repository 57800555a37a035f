"""Where a batch lies: are entropy's picks clumped and `grad`'s spread?

The paper shows PCA pictures of one acquisition on MNIST. Here each picture has its numbers, and they
are taken over several starts, beside those of batches drawn at random. Distances are Euclidean between
flattened inputs, and between pseudo-labelled gradients of the last layer, bias included; both in the
space itself and in the plane the picture shows.

Shapes: N pool points; C classes; D features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding
from askance.errors import InputError
from askance.figures import style
from askance.gradients import pseudo_residuals
from askance.paper.studies.lab import Lab, network, provenance
from askance.paper.studies.measures import Rows, Spread, close_limit, spread
from askance.paper.studies.study import Study, StudyTable, column
from askance.seeding import Draws
from askance.selection import select
from askance.training import Recipe, TrainingJob, fit

Points = NDArray[np.float64]
Batches = dict[str, dict[str, Rows]]  # picks by rule and, as text, size

SPACES = ("inputs", "gradients")
VIEWS = ("space", "plane")
CHANCE = "random"


@dataclass(frozen=True)
class GeometryOptions:
    """What is measured: starts from `seed` on, each with a labelled set, a network and its batches."""

    dataset: str = "mnist"
    points: int = 3_000
    labeled: int = 10
    batches: tuple[int, ...] = (10, 20, 40)
    rules: tuple[str, ...] = ("grad", "entropy", "badge")
    hidden: int = 128
    learning_rate: float = 0.01
    epochs: int = 100
    starts: int = 20
    chance: int = 100
    seed: int = 0


@dataclass(frozen=True)
class Measured:
    """One batch: of a rule from one start, or the mean of `chance` random ones."""

    start: int
    space: str
    view: str
    batch: int
    rule: str
    spread: Spread


@dataclass(frozen=True)
class Plane:
    """The first start's picture: two principal components of every point.

    Args:
        explained: the share of variance in each component.
        points: (N, 2), in the order of points.
    """

    space: str
    explained: tuple[float, ...]
    points: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class GeometryResult:
    """What was measured, and what the pictures of the first start show.

    Args:
        data: what the dataset is.
        labeled: the first start's labelled points.
        picks: its batches, by rule and size.
        planes: its pictures.
        measured: all numbers.
    """

    options: GeometryOptions
    data: str
    labeled: tuple[int, ...]
    picks: dict[str, dict[str, tuple[int, ...]]]
    planes: tuple[Plane, ...]
    measured: tuple[Measured, ...]


def run(options: GeometryOptions, lab: Lab) -> GeometryResult:
    """Train a network from every start, let every rule pick, and measure the batches."""
    dataset = lab.load(options.dataset)
    if options.points > dataset.pool_size:
        raise InputError(
            f"the study wants {options.points} points, {dataset.name} has {dataset.pool_size}"
        )
    draws = Draws(options.seed).generator("points")
    rows = torch.from_numpy(np.sort(draws.choice(dataset.pool_size, options.points, replace=False)))
    inputs, labels = dataset.train.inputs[rows].flatten(1), dataset.train.labels[rows]
    jobs = [_job(options, labels, Draws(options.seed + number)) for number in range(options.starts)]
    lab.say(f"training {len(jobs)} networks on {options.labeled} points each")
    build = network("two-layer", dataset, hidden=options.hidden)
    with lab.one_thread():
        fitted = fit(build, inputs.to(lab.device), jobs, Recipe(epochs=options.epochs))
    inputs_ND = inputs.double().numpy()
    measured: list[Measured] = []
    pictures: list[tuple[Batches, list[Plane]]] = []
    embeddings = fitted.embed(inputs.to(lab.device))
    for number, (job, embedding) in enumerate(zip(jobs, embeddings, strict=True)):
        lab.say(f"measuring start {number + 1} of {options.starts}")
        picks = _batches(options, embedding, job)
        spaces = {"inputs": inputs_ND, "gradients": gradient_rows(embedding)}
        planes = [_plane(space, points) for space, points in spaces.items()]
        views = [(space, "space", points) for space, points in spaces.items()]
        views += [(plane.space, "plane", np.array(plane.points)) for plane in planes]
        for space, view, points in views:
            for batch, rule, measure in _spreads(options, points, job, picks):
                measured.append(Measured(options.seed + number, space, view, batch, rule, measure))
        pictures.append((picks, planes))
    first_picks, first_planes = pictures[0]
    return GeometryResult(
        options=options,
        data=provenance(dataset),
        labeled=tuple(jobs[0].rows.tolist()),
        picks={r: {n: tuple(p.tolist()) for n, p in of.items()} for r, of in first_picks.items()},
        planes=tuple(first_planes),
        measured=tuple(measured),
    )


def _job(options: GeometryOptions, labels: Tensor, draws: Draws) -> TrainingJob:
    rows = draws.generator("start").choice(options.points, options.labeled, replace=False)
    return TrainingJob(rows, labels[torch.from_numpy(rows)], options.learning_rate, draws)


def _batches(options: GeometryOptions, embedding: Embedding, job: TrainingJob) -> Batches:
    labeled = embedding[job.rows], job.labels

    def picks(rule: str, n: int) -> Rows:
        """The rule's batch of `n` from this start."""
        return select(
            None, labeled, embedding, n, strategy=rule, seed=job.draws, exclude=job.rows
        ).indices

    return {rule: {str(n): picks(rule, n) for n in options.batches} for rule in options.rules}


def gradient_rows(embedding: Embedding) -> Points:
    """Every point's pseudo-labelled last-layer gradient a ⊗ [h; 1], (N, C·(D + 1)).

    The one place where they are written out: principal components are of rows.
    """
    assert embedding.logits is not None
    assert embedding.features is not None
    a_NC, h_ND = pseudo_residuals(embedding.logits.double()), embedding.features.double()
    h_ND = torch.cat([h_ND, h_ND.new_ones(len(h_ND), 1)], dim=1)
    return (a_NC[:, :, None] * h_ND[:, None, :]).flatten(1).cpu().numpy()


def _plane(space: str, points: Points) -> Plane:
    from sklearn.decomposition import PCA

    pca = PCA(n_components=2, svd_solver="covariance_eigh").fit(points)
    placed = pca.transform(points).round(6)
    explained = tuple(float(share) for share in pca.explained_variance_ratio_)
    return Plane(space, explained, tuple(map(tuple, placed.tolist())))


def _spreads(
    options: GeometryOptions, points: Points, job: TrainingJob, picks: Batches
) -> Iterator[tuple[int, str, Spread]]:
    from sklearn.metrics import euclidean_distances

    pool = np.setdiff1d(np.arange(len(points)), job.rows)
    distances = euclidean_distances(points[pool])
    limit = close_limit(distances)
    for n in options.batches:
        for rule, of in picks.items():
            yield n, rule, spread(distances, np.searchsorted(pool, of[str(n)]), limit)
        by_chance = job.draws.generator(f"chance {n}")
        drawn = [
            astuple(spread(distances, by_chance.choice(len(pool), n, replace=False), limit))
            for _ in range(options.chance)
        ]
        yield n, CHANCE, Spread(*np.mean(drawn, axis=0).tolist())


def values(
    result: GeometryResult, space: str, view: str, batch: int, rule: str, measure: str
) -> NDArray[np.float64]:
    """One measure of one kind of batch, start by start."""
    field = f"spread.{measure}"
    return column(result.measured, field, space=space, view=view, batch=batch, rule=rule)


def table(result: GeometryResult) -> StudyTable:
    """Every measure, a row for each space, view, size and rule."""
    options = result.options
    kinds = product(SPACES, VIEWS, options.batches, (*options.rules, CHANCE))

    def cell(measure: str, form: str) -> Callable[[tuple[str, str, int, str]], str]:
        return lambda kind: format(float(values(result, *kind, measure).mean()), form)

    return StudyTable.of(
        kinds,
        ("where", lambda kind: f"{kind[0]}, {kind[1]}"),
        ("B", lambda kind: str(kind[2])),
        ("rule", lambda kind: kind[3]),
        ("mean distance", cell("mean_distance", ".3g")),
        ("coverage radius", cell("coverage_radius", ".3g")),
        ("close pairs", cell("close_share", ".1%")),
        names=3,
    )


def findings(result: GeometryResult) -> str:
    """Mean distances beside those of random batches; whether `grad` spreads wider than entropy."""
    options = result.options
    batch, starts = max(options.batches), options.starts

    def mean(space: str, view: str, rule: str, measure: str = "mean_distance") -> float:
        return float(values(result, space, view, batch, rule, measure).mean())

    def over_chance(space: str, view: str, rule: str) -> float:
        return mean(space, view, rule) / mean(space, view, CHANCE)

    def in_gradients(measure: str, form: str) -> str:
        rules = (*options.rules, CHANCE)
        return ", ".join(
            f"{rule} {mean('gradients', 'space', rule, measure):{form}}" for rule in rules
        )

    sentences = [
        f"One acquisition of B = {batch} on {options.points:,} points ({result.data}), "
        f"{options.labeled} of them labelled at random, one hidden layer of {options.hidden}; {starts} "
        f"start{'s' * (starts > 1)}, all rules asked with the same network."
    ]
    views_won = 0
    places = {"plane": "in the PCA planes, where the paper looks", "space": "in full"}
    for view, place in places.items():
        parts = []
        for space in SPACES:
            grad, entropy = (
                values(result, space, view, batch, rule, "mean_distance")
                for rule in ("grad", "entropy")
            )
            won = int((grad > entropy).sum())
            views_won += 2 * won > starts
            ratios = ", ".join(
                f"{rule} {over_chance(space, view, rule):.2f}" for rule in options.rules
            )
            parts.append(f"{space} {ratios} (`grad` above entropy in {won} of {starts} starts)")
        sentences.append(
            f"Mean distance of picks over that of random batches, {place}: {'; '.join(parts)}."
        )
    tight = [
        f"the {space}' {view} ({over_chance(space, view, 'entropy'):.2f})"
        for view, space in product(VIEWS, SPACES)
        if over_chance(space, view, "entropy") < 1
    ]
    verdict = {4: "all four views", 0: "none of the four views"}.get(
        views_won, f"{views_won} of the four views"
    )
    sentences += [
        f"In gradient space the pairs closer than the pool's 1% quantile are "
        f"{in_gradients('close_share', '.1%')}, and the coverage radius is "
        f"{in_gradients('coverage_radius', '.3g')}.",
        f"That `grad` spreads its picks wider than entropy holds in {verdict}; entropy's picks are "
        f"tighter than random ones in {', '.join(tight) or 'none of them'}.",
    ]
    farther = mean("gradients", "space", "grad", "coverage_radius")
    if farther > mean("gradients", "space", CHANCE, "coverage_radius"):
        sentences.append(
            "Distance in gradient space grows with the length of gradients, which is what `grad` looks "
            "for: its picks are far apart, and yet cover the pool worse than random ones."
        )
    return " ".join(sentences)


_MEASURES = {
    "mean_distance": "mean distance",
    "coverage_radius": "coverage radius",
    "close_share": "close pairs",
}


@style.styled
def draw(result: GeometryResult) -> Figure:
    """A row each space: on the left a picture each size, on the right a chart each measure."""
    batches = result.options.batches
    figure = style.new_figure(2.4 * (len(batches) + len(_MEASURES)), 5.6)
    parts = figure.subfigures(1, 2, squeeze=False, width_ratios=[len(batches), len(_MEASURES)])
    pictures, charts = parts[0]
    left = pictures.subplots(len(SPACES), len(batches), squeeze=False)
    right = charts.subplots(len(SPACES), len(_MEASURES), squeeze=False)
    for row, plane in enumerate(result.planes):
        for axis, batch in zip(left[row], batches, strict=True):
            _picture(axis, result, plane, batch)
        for axis, measure in zip(right[row], _MEASURES, strict=True):
            _chart(axis, result, plane.space, measure)
    pictures.legend(
        *left[0][0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=6,
        markerscale=1.3,
    )
    handles, texts = right[0][0].get_legend_handles_labels()
    charts.legend(handles[-3:], texts[-3:], loc="outside lower center", ncols=3)
    return figure


def _picture(axis: Axes, result: GeometryResult, plane: Plane, batch: int) -> None:
    points = np.array(plane.points)

    def dots(rows: NDArray[np.int64] | slice, **options: Any) -> None:
        axis.scatter(points[rows, 0], points[rows, 1], **options)

    dots(slice(None), s=3, color=style.POOL, linewidths=0, rasterized=True, label="pool")
    for rule in result.options.rules:
        picked, look = np.array(result.picks[rule][str(batch)]), style.rule_style(rule)
        dots(
            picked, s=17, marker=look.marker, color=look.colour, edgecolors="white",
            linewidths=0.4, label=rule,
        )  # fmt: skip
    dots(np.array(result.labeled), s=20, marker="x", color="black", linewidths=1, label="labelled")
    style.panel(axis, f"{plane.space}, B = {batch}", grid=None)
    axis.set(xticks=[], yticks=[])
    axis.set_xlabel(f"PC 1 ({plane.explained[0]:.0%})")
    axis.set_ylabel(f"PC 2 ({plane.explained[1]:.0%})")


def _chart(axis: Axes, result: GeometryResult, space: str, measure: str) -> None:
    """Filled: the space, with the range over starts; hollow: the plane of the picture."""
    options, is_ratio = result.options, measure != "close_share"
    places = np.arange(len(options.batches))

    def sizes(rule: str, view: str) -> list[NDArray[Any]]:
        """By size of batch, a number a start; over that of random batches where it is a ratio."""
        of_rule, by_chance = (
            [values(result, space, view, n, one, measure) for n in options.batches]
            for one in (rule, CHANCE)
        )
        return [a / b for a, b in zip(of_rule, by_chance, strict=True)] if is_ratio else of_rule

    for number, rule in enumerate(options.rules):
        at = places + 0.25 * (number - (len(options.rules) - 1) / 2)
        look: dict[str, Any] = {
            "color": style.rule_style(rule).colour,
            "marker": style.rule_style(rule).marker,
        }
        look |= {"linestyle": "", "clip_on": False}
        full, flat = sizes(rule, "space"), sizes(rule, "plane")
        lows, highs = list(map(np.min, full)), list(map(np.max, full))
        axis.vlines(at - 0.04, lows, highs, color=style.rule_style(rule).colour, linewidth=1.2)
        axis.plot(at - 0.04, list(map(np.mean, full)), markersize=4.5, **look)
        axis.plot(
            at + 0.06, list(map(np.mean, flat)), markersize=4, markerfacecolor="white", **look
        )
    level = list(map(np.mean, sizes(CHANCE, "space")))
    grey: dict[str, Any] = {"color": style.GREY, "marker": "o", "linestyle": "", "markersize": 4.5}
    axis.plot([], [], label="in the space, range over starts", **grey)
    axis.plot([], [], label="in the plane", markerfacecolor="white", **grey)
    axis.plot(
        places,
        level,
        color=style.rule_style(CHANCE).colour,
        linestyle="--",
        linewidth=1,
        label=CHANCE,
    )
    if not is_ratio:
        axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
        axis.set_ylim(bottom=0 if level[0] else None)
    style.panel(axis, f"{space}: {_MEASURES[measure]}")
    axis.set_ylabel("times that of random batches" if is_ratio else "share of pairs of picks")
    axis.set_xlim(-0.5, len(places) - 0.5)
    axis.set_xticks(places, [str(batch) for batch in options.batches])
    axis.set_xlabel("B")


STUDY = Study(
    name="geometry",
    about="are entropy's picks clumped and grad's spread?",
    full=GeometryOptions(),
    quick=GeometryOptions(starts=5, chance=50),
    result=GeometryResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)
