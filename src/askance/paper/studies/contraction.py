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
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from askance.data import Dataset
from askance.embedding import Evaluation
from askance.errors import DataError, InputError
from askance.figures import style
from askance.gradients import residuals
from askance.gradients.parameters import ParameterGradients
from askance.paper.studies.lab import Lab, network, provenance
from askance.paper.studies.measures import Contraction, Rows, contraction
from askance.paper.studies.study import Study, Table, from_to
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """What is measured: draws of S, S_J and initial weights from `seed` on."""

    datasets: tuple[str, ...] = ("german", "gisette", "20newsgroups")
    points: int = 1_000
    subset: int = 500
    hidden: int = 128
    learning_rate: float = 1e-4
    epochs: int = 150
    draws: int = 5
    seed: int = 0


FULL = Options()
QUICK = Options(epochs=60, draws=1)


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
class Result:
    """Args:
    data: what the datasets are.
    absent: datasets that could not be had, with the reason.
    """

    options: Options
    data: tuple[str, ...]
    absent: dict[str, str]
    series: tuple[Series, ...]


def run(options: Options, lab: Lab) -> Result:
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
    return Result(options, tuple(data), absent, tuple(series))


def _series(options: Options, dataset: Dataset, draws: Draws, lab: Lab) -> Series:
    x, y = _sample(dataset, options.points, draws)
    x, y = x.to(lab.device), y.to(lab.device)
    if not 0 < options.subset < options.points:
        raise InputError(
            f"S_J must have fewer points than S, got {options.subset} of {options.points}"
        )
    within = draws.generator("S_J").choice(options.points, options.subset, replace=False)
    build = network("two-layer", dataset, hidden=options.hidden)
    networks: list[nn.Module] = []
    norms: list[float] = []

    def kept(draws: Draws) -> nn.Module:
        networks.append(build(draws))
        return networks[-1]

    def measure(epoch: int, count: int) -> None:
        # The engine "one" trains the very module it was given.
        norms.append(discrepancy(networks[-1], x, y, within))

    job = TrainingJob(np.arange(options.points), y.cpu(), options.learning_rate, draws)
    recipe = Recipe(epochs=options.epochs)
    untrained = build(draws).to(lab.device)
    fitted = lab.fit(kept, x, [job], recipe, training="one", on_epoch=measure)
    loss = torch.nn.functional.cross_entropy
    with torch.no_grad():
        losses = [float(loss(model(x), y)) for model in (untrained, fitted.model(0))]
    return Series(
        dataset.name,
        draws.seed,
        discrepancy(untrained, x, y, within),
        tuple(norms),
        (losses[0], losses[1]),
        contraction(norms),
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


def _of(result: Result, name: str) -> list[Series]:
    return [one for one in result.series if one.dataset == name]


def _here(result: Result) -> list[str]:
    return list(dict.fromkeys(one.dataset for one in result.series))


def table(result: Result) -> Table:
    columns = (
        "dataset", "seed", "‖DF‖ at epoch 1", "at the end", "lowest at", "t₀", "violations",
        "largest rise", "Σ‖DF‖²", "Σ from t₀", "κ‖DF(t₀)‖²",
    )  # fmt: skip
    rows = []
    for one in result.series:
        found = one.found
        rows.append(
            (
                one.dataset,
                str(one.seed),
                f"{one.norms[0]:.4g}",
                f"{one.norms[-1]:.4g}",
                str(int(np.argmin(one.norms)) + 1),
                str(found.first),
                f"{len(found.violations)} of {len(one.norms) - 1}",
                f"{found.largest_rise:.2%}",
                f"{found.total:.4g}",
                f"{found.tail:.4g}",
                f"{found.simplified:.4g}",
            )
        )
    return Table(columns, tuple(rows))


def findings(result: Result) -> str:
    options = result.options
    sentences = [
        f"One hidden layer of {options.hidden} trained for {options.epochs} epochs at learning rate "
        f"{options.learning_rate:g} on S of {options.points:,} points, S_J a random "
        f"{options.subset:,} of them; {options.draws} draw{'s' * (options.draws > 1)} a dataset "
        f"({'; '.join(result.data)})."
    ]
    fell: dict[str, int] = {}
    for name in _here(result):
        runs = _of(result, name)
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
        + ", ".join(f"{fell[name]} of {len(_of(result, name))} draws of {name}" for name in fell)
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
def draw(result: Result) -> Figure:
    names = _here(result)
    figure = style.new(1.2 + 3.9 * len(names), 5.6)
    grid = figure.subplots(2, len(names), squeeze=False, sharex=True, height_ratios=[1.25, 1])
    for column, name in enumerate(names):
        _norms(grid[0][column], _of(result, name))
        _sums(grid[1][column], _of(result, name)[0])
    handles, texts = grid[0][0].get_legend_handles_labels()
    more, other = grid[1][0].get_legend_handles_labels()
    figure.legend([*handles, *more], [*texts, *other], loc="outside lower center", ncols=6)
    return figure


def _norms(axis: Axes, runs: Sequence[Series]) -> None:
    for number, one in enumerate(reversed(runs)):
        shown = number == len(runs) - 1  # the first draw, drawn last
        epochs = np.arange(1, len(one.norms) + 1)
        hue = style.look("grad").colour if shown else style.POOL
        axis.plot(epochs, one.norms, color=hue, label="‖DF(S, S_J, t)‖" if shown else None)
        if not shown:
            continue
        axis.plot(
            np.array(one.found.violations) + 1,
            np.full(len(one.found.violations), 0.02),
            "|",
            color="black",
            markersize=6,
            markeredgewidth=0.8,
            transform=axis.get_xaxis_transform(),
            label="rises",
        )
        hue = style.look("powergrad").colour
        axis.axvline(one.found.first, color=hue, linestyle="--", linewidth=1.2, label="t₀")
    first = runs[0]
    style.panel(
        axis,
        f"{first.dataset}: t₀ = {first.found.first}, {len(first.found.violations)} of "
        f"{len(first.norms) - 1} steps rise",
    )
    axis.set_ylabel("‖DF(S, S_J, t)‖")


def _sums(axis: Axes, one: Series) -> None:
    sq = np.array(one.norms) ** 2
    epochs, first = np.arange(1, len(sq) + 1), one.found.first
    axis.plot(epochs, sq.cumsum(), color=style.GREY, label="Σ‖DF‖² up to t")
    axis.plot(
        epochs[first - 1 :], sq[first - 1 :].cumsum(), color=style.look("powergrad").colour,
        label="Σ‖DF‖² from t₀ to t", marker="o", markersize=5, markevery=[-1],
    )  # fmt: skip
    axis.plot(
        epochs[first - 1 :],
        np.arange(1, len(sq) - first + 2) * sq[first - 1],
        color=style.look("powergrad").colour,
        linestyle=":",
        marker="D",
        markersize=5,
        markevery=[-1],
        markerfacecolor="white",
        label="(t − t₀ + 1)‖DF(t₀)‖²",
    )
    style.panel(axis)
    axis.set_xlabel("epoch t")
    axis.set_ylabel("the bound's term")
    axis.set_ylim(bottom=0)


_ABOUT = "does the discrepancy of a set and its half decrease over training?"
STUDY = Study("contraction", _ABOUT, FULL, QUICK, Result, run, draw, findings, table)
