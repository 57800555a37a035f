"""Where a batch lies: are entropy's picks clumped and `grad`'s spread?

The paper shows PCA pictures of one acquisition on MNIST. Here each picture has its numbers, and they
are taken over several starts, beside those of batches drawn at random. Distances are Euclidean between
flattened inputs, and between pseudo-labelled gradients of the last layer, bias included; both in the
space itself and in the plane the picture shows.

Shapes: N pool points; C classes; D features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding
from askance.errors import InputError
from askance.figures import style
from askance.gradients import pseudo_residuals
from askance.paper.studies.lab import Lab, network, provenance
from askance.paper.studies.measures import Rows, Spread, close_limit, spread
from askance.paper.studies.study import Study, Table
from askance.seeding import Draws
from askance.selection import select
from askance.training import Recipe, TrainingJob

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[np.float64]

SPACES = ("inputs", "gradients")
VIEWS = ("space", "plane")
CHANCE = "random"


@dataclass(frozen=True)
class Options:
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


FULL = Options()
QUICK = Options(starts=5, chance=50)


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
class Result:
    """Args:
    data: what the dataset is.
    labeled: the first start's labelled points.
    picks: its batches, by rule and size.
    planes: its pictures.
    measured: all numbers.
    """

    options: Options
    data: str
    labeled: tuple[int, ...]
    picks: dict[str, dict[str, tuple[int, ...]]]
    planes: tuple[Plane, ...]
    measured: tuple[Measured, ...]


def run(options: Options, lab: Lab) -> Result:
    dataset = lab.load(options.dataset)
    if options.points > dataset.pool_size:
        raise InputError(
            f"the study wants {options.points} points, {dataset.name} has {dataset.pool_size}"
        )
    chosen = Draws(options.seed).generator("points")
    rows = np.sort(chosen.choice(dataset.pool_size, options.points, replace=False))
    inputs = dataset.train.inputs[torch.from_numpy(rows)].flatten(1)
    labels = dataset.train.labels[torch.from_numpy(rows)]
    jobs = [_job(options, labels, Draws(options.seed + number)) for number in range(options.starts)]
    lab.say(f"training {len(jobs)} networks on {options.labeled} points each")
    fitted = lab.fit(
        network("two-layer", dataset, hidden=options.hidden),
        inputs.to(lab.device),
        jobs,
        Recipe(epochs=options.epochs),
    )
    inputs_ND = inputs.double().numpy()
    measured: list[Measured] = []
    first: tuple[dict[str, dict[str, Rows]], list[Plane]] | None = None
    embeddings = fitted.embed(inputs.to(lab.device))
    for number, (job, embedding) in enumerate(zip(jobs, embeddings, strict=True)):
        lab.say(f"measuring start {number + 1} of {options.starts}")
        picks = _batches(options, embedding, job)
        spaces = {"inputs": inputs_ND, "gradients": gradient_rows(embedding)}
        planes = [_plane(space, points) for space, points in spaces.items()]
        views = [(space, "space", points) for space, points in spaces.items()]
        views += [(plane.space, "plane", np.array(plane.points)) for plane in planes]
        for space, view, points in views:
            for batch, rule, found in _spreads(options, points, job, picks):
                measured.append(Measured(options.seed + number, space, view, batch, rule, found))
        first = first or (picks, planes)
    assert first is not None
    return Result(
        options=options,
        data=provenance(dataset),
        labeled=tuple(jobs[0].rows.tolist()),
        picks={r: {n: tuple(p.tolist()) for n, p in of.items()} for r, of in first[0].items()},
        planes=tuple(first[1]),
        measured=tuple(measured),
    )


def _job(options: Options, labels: Tensor, draws: Draws) -> TrainingJob:
    rows = draws.generator("start").choice(options.points, options.labeled, replace=False)
    return TrainingJob(rows, labels[torch.from_numpy(rows)], options.learning_rate, draws)


def _batches(
    options: Options, embedding: Embedding, job: TrainingJob
) -> dict[str, dict[str, Rows]]:
    labeled = embedding[job.rows], job.labels
    return {
        rule: {
            str(n): select(
                None, labeled, embedding, n, strategy=rule, seed=job.draws, exclude=job.rows
            ).indices
            for n in options.batches
        }
        for rule in options.rules
    }


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
    options: Options, points: Points, job: TrainingJob, picks: dict[str, dict[str, Rows]]
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
            spread(distances, by_chance.choice(len(pool), n, replace=False), limit)
            for _ in range(options.chance)
        ]
        yield n, CHANCE, _mean(drawn)


def _mean(spreads: Sequence[Spread]) -> Spread:
    return Spread(*np.mean([list(vars(one).values()) for one in spreads], axis=0).tolist())


def _column(
    result: Result, space: str, view: str, batch: int, rule: str, measure: str
) -> NDArray[Any]:
    """One measure of one kind of batch, start by start."""
    wanted = (space, view, batch, rule)
    return np.array(
        [
            getattr(one.spread, measure)
            for one in result.measured
            if (one.space, one.view, one.batch, one.rule) == wanted
        ]
    )


def table(result: Result) -> Table:
    rows = []
    for space in SPACES:
        for view in VIEWS:
            for batch in result.options.batches:
                for rule in (*result.options.rules, CHANCE):
                    mean = [
                        float(_column(result, space, view, batch, rule, measure).mean())
                        for measure in ("mean_distance", "coverage_radius", "close_share")
                    ]
                    cells = f"{mean[0]:.3g}", f"{mean[1]:.3g}", f"{mean[2]:.1%}"
                    rows.append((f"{space}, {view}", str(batch), rule, *cells))
    columns = ("where", "B", "rule", "mean distance", "coverage radius", "close pairs")
    return Table(columns, tuple(rows), names=3)


def findings(result: Result) -> str:
    options = result.options
    batch, starts = max(options.batches), options.starts

    def mean(space: str, view: str, rule: str, measure: str = "mean_distance") -> float:
        return float(_column(result, space, view, batch, rule, measure).mean())

    def wins(space: str, view: str) -> int:
        one, other = (
            _column(result, space, view, batch, rule, "mean_distance")
            for rule in ("grad", "entropy")
        )
        return int((one > other).sum())

    def all_rules(measure: str, form: str) -> str:
        rules = (*options.rules, CHANCE)
        return ", ".join(
            f"{rule} {mean('gradients', 'space', rule, measure):{form}}" for rule in rules
        )

    sentences = [
        f"One acquisition of B = {batch} on {options.points:,} points ({result.data}), "
        f"{options.labeled} of them labelled at random, one hidden layer of {options.hidden}; {starts} "
        f"start{'s' * (starts > 1)}, all rules asked with the same network."
    ]
    held = 0
    told = {"plane": "in the PCA planes, where the paper looks", "space": "in full"}
    for view, where in told.items():
        parts = []
        for space in SPACES:
            ratios = ", ".join(
                f"{rule} {mean(space, view, rule) / mean(space, view, CHANCE):.2f}"
                for rule in options.rules
            )
            won = wins(space, view)
            parts.append(f"{space} {ratios} (`grad` above entropy in {won} of {starts} starts)")
            held += 2 * won > starts
        sentences.append(
            f"Mean distance of picks over that of random batches, {where}: {'; '.join(parts)}."
        )
    tight = [
        f"the {space}' {view} ({mean(space, view, 'entropy') / mean(space, view, CHANCE):.2f})"
        for view in VIEWS
        for space in SPACES
        if mean(space, view, "entropy") < mean(space, view, CHANCE)
    ]
    verdict = {4: "all four views", 0: "none of the four views"}.get(
        held, f"{held} of the four views"
    )
    sentences += [
        f"In gradient space the pairs closer than the pool's 1% quantile are "
        f"{all_rules('close_share', '.1%')}, and the coverage radius is "
        f"{all_rules('coverage_radius', '.3g')}.",
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
def draw(result: Result) -> Figure:
    batches = result.options.batches
    figure = style.new(2.4 * (len(batches) + len(_MEASURES)), 5.6)
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


def _picture(axis: Axes, result: Result, plane: Plane, batch: int) -> None:
    points = np.array(plane.points)

    def dots(rows: NDArray[np.int64] | slice, **how: Any) -> None:
        axis.scatter(points[rows, 0], points[rows, 1], **how)

    dots(slice(None), s=3, color=style.POOL, linewidths=0, rasterized=True, label="pool")
    for rule in result.options.rules:
        picked = np.array(result.picks[rule][str(batch)])
        look = {"s": 17, "marker": style.look(rule).marker, "color": style.look(rule).colour}
        dots(picked, **look, edgecolors="white", linewidths=0.4, label=rule)
    dots(np.array(result.labeled), s=20, marker="x", color="black", linewidths=1, label="labelled")
    style.panel(axis, f"{plane.space}, B = {batch}", grid=None)
    axis.set(xticks=[], yticks=[])
    axis.set_xlabel(f"PC 1 ({plane.explained[0]:.0%})")
    axis.set_ylabel(f"PC 2 ({plane.explained[1]:.0%})")


def _chart(axis: Axes, result: Result, space: str, measure: str) -> None:
    """Filled: the space, with the range over starts; hollow: the plane of the picture."""
    options, ratio = result.options, measure != "close_share"
    places = np.arange(len(options.batches))

    def values(rule: str, view: str) -> list[NDArray[Any]]:
        both = [
            [_column(result, space, view, n, one, measure) for one in (rule, CHANCE)]
            for n in options.batches
        ]
        return [own / base if ratio else own for own, base in both]

    for number, rule in enumerate(options.rules):
        at = places + 0.25 * (number - (len(options.rules) - 1) / 2)
        look: dict[str, Any] = {"color": style.look(rule).colour, "marker": style.look(rule).marker}
        look |= {"linestyle": "", "clip_on": False}
        found = values(rule, "space")
        lows, highs = ([f(one) for one in found] for f in (np.min, np.max))
        axis.vlines(at - 0.04, lows, highs, color=style.look(rule).colour, linewidth=1.2)
        axis.plot(at - 0.04, [one.mean() for one in found], markersize=4.5, **look)
        flat = [one.mean() for one in values(rule, "plane")]
        axis.plot(at + 0.06, flat, markersize=4, markerfacecolor="white", **look)
    level = [one.mean() for one in values(CHANCE, "space")]
    grey: dict[str, Any] = {"color": style.GREY, "marker": "o", "linestyle": "", "markersize": 4.5}
    axis.plot([], [], label="in the space, range over starts", **grey)
    axis.plot([], [], label="in the plane", markerfacecolor="white", **grey)
    axis.plot(
        places, level, color=style.look(CHANCE).colour, linestyle="--", linewidth=1, label=CHANCE
    )
    if not ratio:
        axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
        axis.set_ylim(bottom=0 if level[0] else None)
    style.panel(axis, f"{space}: {_MEASURES[measure]}")
    axis.set_ylabel("times that of random batches" if ratio else "share of pairs of picks")
    axis.set_xlim(-0.5, len(places) - 0.5)
    axis.set_xticks(places, [str(batch) for batch in options.batches])
    axis.set_xlabel("B")


_ABOUT = "are entropy's picks clumped and grad's spread?"
STUDY = Study("geometry", _ABOUT, FULL, QUICK, Result, run, draw, findings, table)
