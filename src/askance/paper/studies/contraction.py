"""Does ‖DF(S, S_J, t)‖ decrease over training, as the bound's simplified form assumes?

S is a sample of points and S_J a random half of it; DF(S, S_J, t) = ∇f(θ_t; S) − ∇f(θ_t; S_J) over the
full θ, under true labels, after each epoch t of training on S. Assumption 1 of the paper asks for an
index t₀ from which the norm never rises again.

With a_i = ∂ℓ_i/∂z_i and J_i the Jacobian of the logits at x_i,

    DF = Σ_i w_i J_iᵀ a_i,     w_i = 1/|S| − 1[i ∈ S_J]/|S_J|,

which is one pass back; in float64, so that no rise that is counted is a rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from askance.data import Dataset
from askance.embedding import Evaluation
from askance.errors import DataError, InputError
from askance.figures import style
from askance.gradients.last_layer import residuals
from askance.gradients.parameters import ParameterGradients
from askance.paper.studies.lab import Lab, network, provenance
from askance.paper.studies.measures import Contraction, Rows, contraction
from askance.paper.studies.study import Study, StudyTable, from_to, rows_where
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, fit


@dataclass(frozen=True)
class ContractionOptions:
    """What is measured: draws of S, S_J and initial weights from `seed` on."""

    datasets: tuple[str, ...] = ("german", "gisette", "20newsgroups")
    points: int = 1_000
    subset: int = 500
    hidden: int = 128
    learning_rate: float = 1e-4
    epochs: int = 150
    draws: int = 5
    seed: int = 0


@dataclass(frozen=True)
class Series:
    """‖DF‖ of one draw.

    Args:
        start: at the initial weights.
        norms: after each epoch.
        loss: the mean loss over S at the start and after the last epoch.
        found: the norms held against Assumption 1.
    """

    dataset: str
    seed: int
    start: float
    norms: tuple[float, ...]
    loss: tuple[float, float]
    found: Contraction


@dataclass(frozen=True)
class ContractionResult:
    """The series of every draw of every dataset.

    Args:
        data: what the datasets are.
        absent: datasets that could not be loaded, with the reason.
    """

    options: ContractionOptions
    data: tuple[str, ...]
    absent: dict[str, str]
    series: tuple[Series, ...]


def run(options: ContractionOptions, lab: Lab) -> ContractionResult:
    """Train on every dataset that can be loaded, and measure ‖DF‖ after each epoch."""
    data: list[str] = []
    absent: dict[str, str] = {}
    series: list[Series] = []
    for name in options.datasets:
        try:
            dataset = lab.load(name)
        except DataError as error:
            absent[name] = str(error)
            continue
        data.append(provenance(dataset))
        for number in range(options.draws):
            lab.say(f"{name}: draw {number + 1} of {options.draws}, {options.epochs} epochs")
            series.append(_series(options, dataset, Draws(options.seed + number), lab))
    if not series:
        raise DataError(f"none of the datasets is at hand. {' '.join(absent.values())}")
    return ContractionResult(options, tuple(data), absent, tuple(series))


def _series(options: ContractionOptions, dataset: Dataset, draws: Draws, lab: Lab) -> Series:
    x, y = (part.to(lab.device) for part in _sample(dataset, options.points, draws))
    if not 0 < options.subset < options.points:
        raise InputError(
            f"S_J must have fewer points than S, got {options.subset} of {options.points}"
        )
    within = draws.generator("S_J").choice(options.points, options.subset, replace=False)
    build = network("two-layer", dataset, hidden=options.hidden)
    networks: list[nn.Module] = []
    norms: list[float] = []

    def build_and_keep(draws: Draws) -> nn.Module:
        networks.append(build(draws))
        return networks[-1]

    def measure(epoch: int, count: int) -> None:
        # The engine "one" trains the very module it was given.
        norms.append(discrepancy(networks[-1], x, y, within))

    job = TrainingJob(np.arange(options.points), y.cpu(), options.learning_rate, draws)
    recipe = Recipe(epochs=options.epochs)
    untrained = build(draws).to(lab.device)
    with lab.one_thread():
        fitted = fit(build_and_keep, x, [job], recipe, training="one", on_epoch=measure)
    with torch.no_grad():
        before, after = (
            float(cross_entropy(model(x), y)) for model in (untrained, fitted.model(0))
        )
    return Series(
        dataset.name,
        draws.seed,
        start=discrepancy(untrained, x, y, within),
        norms=tuple(norms),
        loss=(before, after),
        found=contraction(norms),
    )


def _sample(dataset: Dataset, count: int, draws: Draws) -> tuple[Tensor, Tensor]:
    """`count` rows of all splits: nothing is tested here, and German has just 1,000."""
    splits = dataset.train, dataset.val, dataset.test
    ends = np.cumsum([len(split) for split in splits])
    if count > ends[-1]:
        raise InputError(f"{dataset.name} has {ends[-1]} rows, the study wants {count}")
    rows = np.sort(draws.generator("S").choice(ends[-1], count, replace=False))
    parts = [
        (split, torch.from_numpy(some - (end - len(split))))
        for split, some, end in zip(
            splits, np.split(rows, np.searchsorted(rows, ends[:-1])), ends, strict=True
        )
    ]
    inputs = torch.cat([split.inputs[some] for split, some in parts])
    return inputs, torch.cat([split.labels[some] for split, some in parts])


def discrepancy(model: nn.Module, x: Tensor, y: Tensor, within: Rows) -> float:
    """‖∇f(θ; S) − ∇f(θ; S_J)‖₂ over the full θ, S_J the rows `within` of S = (x, y); in float64."""
    weights = torch.full((len(x), 1), 1 / len(x), dtype=torch.float64, device=x.device)
    weights[torch.from_numpy(within).to(x.device)] -= 1 / len(within)
    with Evaluation(copy.deepcopy(model).double()) as evaluation:
        inputs = evaluation.prepare(x)
        logits, _ = evaluation(inputs)
        difference = ParameterGradients(evaluation, "all").total(
            inputs, residuals(logits, y) * weights
        )
    return float(sum(part.square().sum() for part in difference)) ** 0.5


def _by_dataset(result: ContractionResult) -> dict[str, list[Series]]:
    names = dict.fromkeys(one.dataset for one in result.series)
    return {name: rows_where(result.series, dataset=name) for name in names}


def table(result: ContractionResult) -> StudyTable:
    """Every series, a row each."""
    return StudyTable.of(
        result.series,
        ("dataset", lambda one: one.dataset),
        ("seed", lambda one: str(one.seed)),
        ("‖DF‖ at epoch 1", lambda one: f"{one.norms[0]:.4g}"),
        ("at the end", lambda one: f"{one.norms[-1]:.4g}"),
        ("lowest at", lambda one: str(int(np.argmin(one.norms)) + 1)),
        ("t₀", lambda one: str(one.found.first)),
        ("violations", lambda one: f"{len(one.found.violations)} of {len(one.norms) - 1}"),
        ("largest rise", lambda one: f"{one.found.largest_rise:.2%}"),
        ("Σ‖DF‖²", lambda one: f"{one.found.total:.4g}"),
        ("Σ from t₀", lambda one: f"{one.found.tail:.4g}"),
        ("κ‖DF(t₀)‖²", lambda one: f"{one.found.simplified:.4g}"),
    )


def findings(result: ContractionResult) -> str:
    """Of each dataset the series' ends, rises and sums; then whether Assumption 1 holds."""
    options, by_dataset = result.options, _by_dataset(result)
    sentences = [
        f"One hidden layer of {options.hidden} trained for {options.epochs} epochs at learning rate "
        f"{options.learning_rate:g} on S of {options.points:,} points, S_J a random "
        f"{options.subset:,} of them; {options.draws} draw{'s' * (options.draws > 1)} a dataset "
        f"({'; '.join(result.data)})."
    ]
    fell: dict[str, int] = {}
    for name, runs in by_dataset.items():
        ratio = [one.norms[-1] / one.norms[0] for one in runs]
        fell[name] = sum(one < 1 for one in ratio)
        before, after = (np.mean([one.loss[end] for one in runs]) for end in (0, 1))
        sentences.append(
            f"{name}: the last ‖DF‖ is {from_to(ratio, '.3f')} of the first, t₀ = "
            f"{from_to([one.found.first for one in runs], 'd')} of {options.epochs}, "
            f"{from_to([len(one.found.violations) for one in runs], 'd')} of {options.epochs - 1} "
            f"steps rise, by at most {max(one.found.largest_rise for one in runs):.2%}; Σ‖DF‖² = "
            f"{from_to([one.found.total for one in runs], '.3g')}, of which "
            f"{from_to([one.found.tail / one.found.total for one in runs], '.1%')} lies in t ≥ t₀, and "
            f"κ‖DF(t₀)‖² = {from_to([one.found.simplified for one in runs], '.3g')} (mean loss "
            f"{before:.2f} → {after:.2f})."
        )
    count, all_fell = len(result.series), sum(fell.values())
    verdict = "confirmed" if 2 * all_fell > count else "denied"
    most = "" if all_fell in (0, count) else "mostly "
    sentences.append(
        f"That DF decreases over training is {most}{verdict}: it ends lower than it began in "
        + ", ".join(f"{fell[name]} of {len(by_dataset[name])} draws of {name}" for name in fell)
        + "."
    )
    vacuous = [one for one in result.series if one.found.first == len(one.norms) > 1]
    if vacuous:
        sentences.append(
            f"In {len(vacuous)} of {count} series the last step rises, so Assumption 1 "
            f"holds there only at the last index, where it says nothing."
        )
    short = [one for one in result.series if one.found.simplified < one.found.total]
    sentences.append(
        f"The simplified bound stands for t ≥ t₀ alone: put in the whole sum's place, as the paper "
        f"does, κ‖DF(t₀)‖² falls short of Σ‖DF‖² in {len(short)} of {count} series "
        f"(γ_t/ε_t = 1)."
    )
    if result.absent:
        sentences.append(f"Left out, because it could not be had: {', '.join(result.absent)}.")
    return " ".join(sentences)


@style.styled
def draw(result: ContractionResult) -> Figure:
    """Above, the norms of every draw; below, the bound's sums of the first. A column each dataset."""
    by_dataset = _by_dataset(result)
    count = len(by_dataset)
    figure = style.new_figure(1.2 + 3.9 * count, 5.6)
    grid = figure.subplots(2, count, squeeze=False, sharex=True, height_ratios=[1.25, 1])
    for (above, below), runs in zip(grid.T, by_dataset.values(), strict=True):
        _norms(above, runs)
        _sums(below, runs[0])
    handles, texts = grid[0][0].get_legend_handles_labels()
    more, other = grid[1][0].get_legend_handles_labels()
    figure.legend([*handles, *more], [*texts, *other], loc="outside lower center", ncols=6)
    return figure


def _norms(axis: Axes, runs: Sequence[Series]) -> None:
    first, epochs = runs[0], np.arange(1, len(runs[0].norms) + 1)
    for other in reversed(runs[1:]):
        axis.plot(epochs, other.norms, color=style.POOL)
    axis.plot(epochs, first.norms, color=style.rule_style("grad").colour, label="‖DF(S, S_J, t)‖")
    rises = np.array(first.found.violations) + 1
    axis.plot(
        rises, np.full(len(rises), 0.02), "|", color="black", markersize=6, markeredgewidth=0.8,
        transform=axis.get_xaxis_transform(), label="rises",
    )  # fmt: skip
    hue = style.rule_style("powergrad").colour
    axis.axvline(first.found.first, color=hue, linestyle="--", linewidth=1.2, label="t₀")
    style.panel(
        axis,
        f"{first.dataset}: t₀ = {first.found.first}, {len(rises)} of {len(epochs) - 1} steps rise",
    )
    axis.set_ylabel("‖DF(S, S_J, t)‖")


def _sums(axis: Axes, one: Series) -> None:
    start = one.found.first - 1
    sq = np.array(one.norms) ** 2
    epochs, hue = np.arange(1, len(sq) + 1), style.rule_style("powergrad").colour
    axis.plot(epochs, sq.cumsum(), color=style.GREY, label="Σ‖DF‖² up to t")
    axis.plot(
        epochs[start:], sq[start:].cumsum(), color=hue, label="Σ‖DF‖² from t₀ to t", marker="o",
        markersize=5, markevery=[-1],
    )  # fmt: skip
    axis.plot(
        epochs[start:], np.arange(1, len(sq) - start + 1) * sq[start], color=hue, linestyle=":",
        marker="D", markersize=5, markevery=[-1], markerfacecolor="white",
        label="(t − t₀ + 1)‖DF(t₀)‖²",
    )  # fmt: skip
    style.panel(axis)
    axis.set_xlabel("epoch t")
    axis.set_ylabel("the bound's term")
    axis.set_ylim(bottom=0)


STUDY = Study(
    name="contraction",
    about="does the discrepancy of a set and its half decrease over training?",
    full=ContractionOptions(),
    quick=ContractionOptions(epochs=60, draws=1),
    result=ContractionResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)
