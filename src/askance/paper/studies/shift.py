"""Does gradient discrepancy see a distribution it was not trained on?

A network is trained on CIFAR-10 and scores CIFAR-10's test images and SVHN's. The paper shows the
histograms of DF; here DF stands beside the entropy, the confidence and the length of the gradient
alone, each as a detector of SVHN, and each network counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.data import Split
from askance.embedding import Embedding
from askance.errors import InputError
from askance.figures import style
from askance.paper.studies.lab import Lab, mean_loss, network, provenance
from askance.paper.studies.measures import auroc, rank_correlation
from askance.paper.studies.study import Study, Table, from_to
from askance.seeding import Draws
from askance.selection import select
from askance.training import Precision, Recipe, TrainingJob

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
class Options:
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


FULL = Options()
QUICK = Options(
    model="lenet",
    training=3_000,
    epochs=20,
    learning_rate=0.005,
    precision="float32",
    networks=2,
)


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
class Result:
    """Args:
    data: what the datasets are.
    trained_on: how many images.
    """

    options: Options
    data: tuple[str, ...]
    trained_on: int
    networks: tuple[Network, ...]
    detectors: tuple[Detector, ...]


def run(options: Options, lab: Lab) -> Result:
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
    told = f"training {len(jobs)} networks on {size:,} images"

    def on_epoch(epoch: int, count: int) -> None:
        lab.say(f"{told}: epoch {epoch} of {options.epochs}")

    fitted = lab.fit(
        network(options.model, home),
        inputs,
        jobs,
        Recipe(epochs=options.epochs),
        precision=options.precision,
        on_epoch=on_epoch,
    )
    lab.say(f"scoring {2 * options.test:,} images with {len(jobs)} networks")
    near, far = (fitted.embed(images.to(lab.device)) for images in (inside[0], outside[0]))
    seen = fitted.embed(inputs)
    networks: list[Network] = []
    detectors: list[Detector] = []
    for place, job in enumerate(jobs):
        one, found = _compare(job, seen[place], near[place], far[place], inside[1])
        networks.append(one)
        detectors += found
    data = provenance(home), provenance(away)
    return Result(options, data, size, tuple(networks), tuple(detectors))


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
    seen = train[job.rows]
    scores: dict[str, tuple[Scores, Scores]] = {}
    reference = 0.0
    for name, rule in DETECTORS.items():
        answers = [
            select(None, (seen, job.labels), pool, 1, strategy=rule, keep_scores=True)
            for pool in (near, far)
        ]
        if rule == "grad":
            reference = answers[0].explain()[0].reference_norm or 0.0
        inside, outside = (answer.pool_scores for answer in answers)
        assert inside is not None
        assert outside is not None
        scores[name] = inside, outside
    seed = job.draws.seed
    assert near.logits is not None
    right = near.logits.argmax(dim=1).cpu() == labels
    norms, df = (np.concatenate(scores[name]) for name in ("gradient norm", "DF"))
    one = Network(
        seed,
        float(right.double().mean()),
        mean_loss(seen, job.labels),
        reference,
        float(np.median(norms)),
        rank_correlation(df, norms),
    )
    return one, [_detector(seed, name, *both) for name, both in scores.items()]


def _detector(seed: int, name: str, inside: Scores, outside: Scores) -> Detector:
    low, high = np.quantile(np.concatenate([inside, outside]), [0.001, 0.999])
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    return Detector(
        seed,
        name,
        auroc(inside, outside),
        float(np.median(inside)),
        float(np.median(outside)),
        tuple(edges.tolist()),
        tuple(np.histogram(inside, edges)[0].tolist()),
        tuple(np.histogram(outside, edges)[0].tolist()),
    )


def _aurocs(result: Result, name: str) -> NDArray[np.float64]:
    return np.array([one.auroc for one in result.detectors if one.name == name])


def _plus_minus(values: NDArray[np.float64], digits: int = 3) -> str:
    mean = f"{values.mean():.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {values.std(ddof=1):.{digits}f}"


def table(result: Result) -> Table:
    rows = []
    for name in DETECTORS:
        found = [one for one in result.detectors if one.name == name]
        middle = [
            np.mean([getattr(one, f"median_{at}") for one in found]) for at in ("inside", "outside")
        ]
        rows.append(
            (name, _plus_minus(_aurocs(result, name)), *(f"{value:.3g}" for value in middle))
        )
    home, away = result.options.inside, result.options.outside
    return Table(("detector", "AUROC", f"median, {home}", f"median, {away}"), tuple(rows))


def findings(result: Result) -> str:
    options, count = result.options, len(result.networks)
    home, away = options.inside, options.outside
    accuracy = np.array([one.accuracy for one in result.networks])
    df, norm = _aurocs(result, "DF"), _aurocs(result, "gradient norm")
    best = max(DETECTORS, key=lambda name: _aurocs(result, name).mean())
    ranked = ", ".join(f"{name} {_plus_minus(_aurocs(result, name))}" for name in DETECTORS)
    share = [one.reference_norm / one.median_norm for one in result.networks]
    losses = [one.loss for one in result.networks]
    alike = [one.spearman for one in result.networks if one.spearman is not None]
    larger = int((df > 0.5).sum())
    verdict = {
        count: "holds with every network",
        0: "is denied by every network",
    }.get(larger, f"holds with {larger} of {count} networks")
    ahead = _aurocs(result, best) - df
    beside = (
        "no other score detects better"
        if best == "DF"
        else f"{best} detects better by {_plus_minus(ahead)}, with {int((ahead > 0).sum())} of {count}"
    )
    return " ".join(
        [
            f"{options.test:,} test images each of {home} and {away} ({'; '.join(result.data)}), "
            f"scored by {count} × {options.model} trained for {options.epochs} epochs on "
            f"{result.trained_on:,} {home} images (mean loss on them "
            f"{from_to(losses, '.2g')}, test accuracy "
            f"{accuracy.mean():.1%}); mean ± std over networks.",
            f"AUROC for {away}: {ranked}.",
            f"The paper's claim that DF is larger out of distribution {verdict}, and {beside}.",
            f"The reference adds {df.mean() - norm.mean():+.3f} to the gradient norm's AUROC: ‖ḡ_L‖ is "
            f"{from_to(share, '.2g')} of the median ‖g‖"
            + (f", and the two rank with Spearman {np.mean(alike):.4f}." if alike else "."),
        ]
    )


@style.styled
def draw(result: Result) -> Figure:
    figure = style.new(10.5, 4.8)
    names = list(DETECTORS)
    grid = figure.subplot_mosaic(
        [[names[0], names[1], "auroc"], [names[2], names[3], "auroc"]], width_ratios=[1, 1, 0.8]
    )
    first = result.detectors[0].seed
    for one in result.detectors:
        if one.seed == first:
            _histogram(grid[one.name], one, result)
    title = f"network 1 of {len(result.networks)}"
    grid[names[0]].legend(loc="upper right", title=title)
    axis = grid["auroc"]
    for place, name in enumerate(reversed(names)):
        values = _aurocs(result, name)
        hue = style.look(DETECTORS[name]).colour
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


def _histogram(axis: Axes, one: Detector, result: Result) -> None:
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


_ABOUT = "does gradient discrepancy see a distribution it was not trained on?"
STUDY = Study("shift", _ABOUT, FULL, QUICK, Result, run, draw, findings, table)
