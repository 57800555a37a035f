"""Does gradient discrepancy see a distribution it was not trained on?

A network is trained on CIFAR-10 and scores CIFAR-10's test images and SVHN's. The paper shows the
histograms of DF; here DF stands beside the entropy, the confidence and the length of the gradient
alone, each as a detector of SVHN, and each network counts once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from askance.data import Split
from askance.embedding import Embedding
from askance.errors import InputError
from askance.figures import style
from askance.paper.studies.lab import Lab, mean_loss, network, provenance
from askance.paper.studies.measures import auroc, rank_correlation
from askance.paper.studies.study import Study, StudyTable, column, from_to, listed, rows_where
from askance.seeding import Draws
from askance.selection import select
from askance.training import Precision, Recipe, TrainingJob, fit

Scores = NDArray[np.float64]

# Each is a rule's score, higher where the rule would rather have a label.
DETECTORS = {
    "DF": "grad",
    "entropy": "entropy",
    "1 − confidence": "least-confidence",
    "gradient norm": "gradnorm",
}
_BINS = 60


@dataclass(frozen=True)
class ShiftOptions:
    """What is measured: networks from `seed` on, each trained from scratch.

    Args:
        training: images to train on and to take the reference from; all there are when None.
        test: images of each test set; they must have as many.
    """

    inside: str = "cifar10"
    outside: str = "svhn"
    model: str = "resnet18"
    training: int | None = None
    test: int = 10_000
    epochs: int = 30
    learning_rate: float = 0.001
    precision: Precision = "tf32"
    networks: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Detector:
    """One score as a detector, with one network.

    Args:
        auroc: P(a score outside > one inside).
        median_inside, median_outside: of the scores.
        edges, inside, outside: a histogram of both, over the middle 99.8% of all scores.
    """

    seed: int
    name: str
    auroc: float
    median_inside: float
    median_outside: float
    edges: tuple[float, ...]
    inside: tuple[int, ...]
    outside: tuple[int, ...]


@dataclass(frozen=True)
class Network:
    """One network: how well it does at home, its reference, and how far DF and ‖g‖ rank alike.

    Args:
        accuracy: on the test images inside.
        loss: the mean loss on the images it was trained on: how far they are fitted.
        reference_norm: ‖ḡ_L‖.
        median_norm: the median ‖g‖ of all test images.
        spearman: of DF and ‖g‖ over all test images.
    """

    seed: int
    accuracy: float
    loss: float
    reference_norm: float
    median_norm: float
    spearman: float | None


@dataclass(frozen=True)
class ShiftResult:
    """Every network, and every score of each as a detector.

    Args:
        data: what the datasets are.
        trained_on: how many images.
    """

    options: ShiftOptions
    data: tuple[str, ...]
    trained_on: int
    networks: tuple[Network, ...]
    detectors: tuple[Detector, ...]


def run(options: ShiftOptions, lab: Lab) -> ShiftResult:
    """Train the networks inside, and score test images of both datasets with each."""
    home, away = lab.load(options.inside), lab.load(options.outside)
    if home.train.inputs.shape[1:] != away.train.inputs.shape[1:]:
        raise InputError(f"{home.name} and {away.name} have inputs of different shapes")
    size = options.training or home.pool_size
    if size > home.pool_size:
        raise InputError(f"{home.name} has {home.pool_size} images to train on, not {size}")
    labels = home.train.labels
    jobs = []
    for number in range(options.networks):
        draws = Draws(options.seed + number)
        rows = draws.generator("training").choice(home.pool_size, size, replace=False)
        jobs.append(TrainingJob(rows, labels[torch.from_numpy(rows)], options.learning_rate, draws))
    inside = _some(home.test, options.test, Draws(options.seed), home.name)
    outside = _some(away.test, options.test, Draws(options.seed), away.name)
    inputs = home.train.inputs.to(lab.device)
    step = f"training {len(jobs)} networks on {size:,} images"

    def on_epoch(epoch: int, count: int) -> None:
        lab.say(f"{step}: epoch {epoch} of {options.epochs}")

    build, recipe = network(options.model, home), Recipe(epochs=options.epochs)
    with lab.one_thread():
        fitted = fit(build, inputs, jobs, recipe, precision=options.precision, on_epoch=on_epoch)
    lab.say(f"scoring {2 * options.test:,} images with {len(jobs)} networks")
    train, near, far = (
        fitted.embed(images.to(lab.device)) for images in (inputs, inside[0], outside[0])
    )
    networks: list[Network] = []
    detectors: list[Detector] = []
    for place, job in enumerate(jobs):
        one, scores = _compare(job, train[place], near[place], far[place], inside[1])
        networks.append(one)
        detectors += scores
    data = provenance(home), provenance(away)
    return ShiftResult(options, data, size, tuple(networks), tuple(detectors))


def _some(split: Split, count: int, draws: Draws, name: str) -> tuple[Tensor, Tensor]:
    """`count` of a test split's images, drawn uniformly, with their labels."""
    if count > len(split):
        raise InputError(f"{name} has {len(split)} test images, the study wants {count}")
    chosen = np.sort(draws.generator(f"test {name}").choice(len(split), count, replace=False))
    rows = torch.from_numpy(chosen)
    return split.inputs[rows], split.labels[rows]


def _compare(
    job: TrainingJob, train: Embedding, near: Embedding, far: Embedding, labels: Tensor
) -> tuple[Network, list[Detector]]:
    labeled = train[job.rows], job.labels
    scores: dict[str, tuple[Scores, Scores]] = {}
    reference = 0.0
    for name, rule in DETECTORS.items():
        inside, outside = (
            select(None, labeled, pool, 1, strategy=rule, keep_scores=True) for pool in (near, far)
        )
        if rule == "grad":
            reference = inside.explain()[0].reference_norm or 0.0
        assert inside.pool_scores is not None
        assert outside.pool_scores is not None
        scores[name] = inside.pool_scores, outside.pool_scores
    assert near.logits is not None
    right = near.logits.argmax(dim=1).cpu() == labels
    norms, df = (np.concatenate(scores[name]) for name in ("gradient norm", "DF"))
    seed = job.draws.seed
    one = Network(
        seed,
        accuracy=float(right.double().mean()),
        loss=mean_loss(*labeled),
        reference_norm=reference,
        median_norm=float(np.median(norms)),
        spearman=rank_correlation(df, norms),
    )
    return one, [_detector(seed, name, *both) for name, both in scores.items()]


def _detector(seed: int, name: str, inside: Scores, outside: Scores) -> Detector:
    low, high = np.quantile(np.concatenate([inside, outside]), [0.001, 0.999])
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    return Detector(
        seed,
        name,
        auroc=auroc(inside, outside),
        median_inside=float(np.median(inside)),
        median_outside=float(np.median(outside)),
        edges=tuple(edges.tolist()),
        inside=tuple(np.histogram(inside, edges)[0].tolist()),
        outside=tuple(np.histogram(outside, edges)[0].tolist()),
    )


def aurocs(result: ShiftResult, name: str) -> NDArray[np.float64]:
    """The AUROC of one score, network by network."""
    return column(result.detectors, "auroc", name=name)


def _plus_minus(values: NDArray[np.float64], digits: int = 3) -> str:
    mean = f"{values.mean():.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {values.std(ddof=1):.{digits}f}"


def table(result: ShiftResult) -> StudyTable:
    """Every score as a detector, a row each."""

    def median(at: str) -> Callable[[str], str]:
        return lambda name: f"{column(result.detectors, f'median_{at}', name=name).mean():.3g}"

    return StudyTable.of(
        DETECTORS,
        ("detector", lambda name: name),
        ("AUROC", lambda name: _plus_minus(aurocs(result, name))),
        (f"median, {result.options.inside}", median("inside")),
        (f"median, {result.options.outside}", median("outside")),
    )


def findings(result: ShiftResult) -> str:
    """Every score's AUROC, whether DF detects at all and best, and what the reference adds to ‖g‖."""
    options, count = result.options, len(result.networks)
    home, away = options.inside, options.outside
    accuracy = column(result.networks, "accuracy")
    df, norm = aurocs(result, "DF"), aurocs(result, "gradient norm")
    best = max(DETECTORS, key=lambda name: aurocs(result, name).mean())
    each = ", ".join(f"{name} {_plus_minus(aurocs(result, name))}" for name in DETECTORS)
    share = [one.reference_norm / one.median_norm for one in result.networks]
    losses = [one.loss for one in result.networks]
    alike = [one.spearman for one in result.networks if one.spearman is not None]
    larger = int((df > 0.5).sum())
    verdict = {
        count: "holds with every network",
        0: "is denied by every network",
    }.get(larger, f"holds with {larger} of {count} networks")
    ahead = aurocs(result, best) - df
    beside = (
        "no other score detects better"
        if best == "DF"
        else f"{best} detects better by {_plus_minus(ahead)}, with {int((ahead > 0).sum())} of {count} "
        "networks"
    )
    rank = f" The two rank with Spearman {np.mean(alike):.4f}." if alike else ""
    return listed(
        f"The paper's claim that DF is larger out of distribution {verdict}, and {beside}.",
        f"Setting: {options.test:,} test images each of {home} and {away} ({'; '.join(result.data)}), "
        f"scored by {count} × {options.model} trained for {options.epochs} epochs on "
        f"{result.trained_on:,} {home} images. Mean loss on them {from_to(losses, '.2g')}, test "
        f"accuracy {accuracy.mean():.1%}.",
        f"AUROC for {away}, mean ± std over networks: {each}.",
        f"The reference adds {df.mean() - norm.mean():+.3f} to the gradient norm's AUROC: ‖ḡ_L‖ is "
        f"{from_to(share, '.2g')} of the median ‖g‖.{rank}",
    )


@style.styled
def draw(result: ShiftResult) -> Figure:
    """Histograms of every score with the first network, and the AUROCs of all networks."""
    figure = style.new_figure(10.5, 4.8)
    names = list(DETECTORS)
    grid = figure.subplot_mosaic(
        [[names[0], names[1], "auroc"], [names[2], names[3], "auroc"]], width_ratios=[1, 1, 0.8]
    )
    for one in rows_where(result.detectors, seed=result.detectors[0].seed):
        _histogram(grid[one.name], one, result)
    title = f"network 1 of {len(result.networks)}"
    grid[names[0]].legend(loc="upper right", title=title)
    axis = grid["auroc"]
    for place, name in enumerate(reversed(names)):
        values, hue = aurocs(result, name), style.rule_style(DETECTORS[name]).colour
        axis.plot(values, [place] * len(values), "o", color=hue, markersize=5, alpha=0.55)
        axis.plot([values.mean()], [place], "|", color=hue, markersize=18, markeredgewidth=2)
        axis.annotate(
            f"{values.mean():.3f}", (values.mean(), place), (0, 12), textcoords="offset points",
            ha="center", color=hue,
        )  # fmt: skip
    axis.axvline(0.5, color="black", linewidth=1, linestyle="--")
    axis.annotate("chance", (0.5, -0.42), (3, 0), textcoords="offset points", fontsize=8)
    axis.set_yticks(range(len(names)), list(reversed(names)))
    axis.set_ylim(-0.5, len(names) - 0.4)
    axis.margins(x=0.12)
    axis.set_xlabel("AUROC, a dot a network")
    style.panel(axis, f"Detecting {result.options.outside}", grid="x")
    return figure


def _histogram(axis: Axes, one: Detector, result: ShiftResult) -> None:
    for counts, where, hue in (
        (one.inside, result.options.inside, style.BLUE),
        (one.outside, result.options.outside, style.VERMILLION),
    ):
        axis.stairs(counts, one.edges, fill=True, alpha=0.25, color=hue, baseline=0.5)
        axis.stairs(counts, one.edges, color=hue, linewidth=1.2, label=where, baseline=0.5)
    style.panel(axis, f"{one.name}: AUROC {one.auroc:.3f}")
    axis.set_yscale("log")  # scores crowd at 0, where one bar would hide the rest
    axis.set_ylim(bottom=0.5)
    style.plain_numbers(axis.yaxis)
    axis.set_ylabel("test images")
    axis.margins(x=0)


STUDY = Study(
    name="shift",
    about="does gradient discrepancy see a distribution it was not trained on?",
    full=ShiftOptions(),
    quick=ShiftOptions(
        model="lenet", training=3_000, epochs=20, learning_rate=0.005, precision="float32",
        networks=2,
    ),
    result=ShiftResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)  # fmt: skip
