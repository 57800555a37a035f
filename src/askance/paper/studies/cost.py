"""What does an acquisition cost? Seconds of `askance.select`, training not counted.

The paper's table: pool 25,000, b = 500, rounds 1 to 5. The labelled set grows at random, so that in
each round all rules are asked with the same network; what a rule has to do with the labelled set (its
forward pass, the reference) is timed apart, as the paper reports it apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from askance.data import Dataset
from askance.errors import InputError
from askance.figures import style
from askance.paper.studies.lab import Lab, network, provenance
from askance.paper.studies.study import Study, Table
from askance.seeding import Draws
from askance.selection import select
from askance.training import Precision, Recipe, TrainingJob

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Seconds in the paper, mean and std, on hardware it does not name.
PAPER = {
    "entropy": (1.06, 0.05),
    "grad": (2.44, 0.31),
    "badge": (3.07, 0.12),
    "kcenter": (3.47, 0.23),
}
PHASES = ("forward", "score", "select")


@dataclass(frozen=True)
class Options:
    """What is timed.

    Args:
        networks: each trained for its epochs in every round.
        repeats: timings of each acquisition, of which the median counts; one more warms up.
    """

    dataset: str = "cifar10"
    pool: int = 25_000
    batch: int = 500
    rounds: int = 5
    networks: tuple[tuple[str, int], ...] = (("lenet", 50), ("resnet18", 30))
    rules: tuple[str, ...] = ("entropy", "grad", "powergrad", "badge", "kcenter")
    learning_rate: float = 0.001
    precision: Precision = "tf32"
    repeats: int = 5
    batch_size: int = 1_024
    seed: int = 0


FULL = Options()
QUICK = Options(rounds=2, networks=(("lenet", 5),), repeats=2, precision="float32")


@dataclass(frozen=True)
class Timing:
    """Median seconds of one rule in one round."""

    network: str
    rule: str
    round: int
    labels: int
    labeled: float
    forward: float
    score: float
    select: float

    @property
    def total(self) -> float:
        """Without the labelled set."""
        return self.forward + self.score + self.select


@dataclass(frozen=True)
class Result:
    """Args:
    data: what the dataset is.
    device: in words.
    threads: torch computes with, where the device is a CPU.
    """

    options: Options
    data: str
    device: str
    threads: int
    timings: tuple[Timing, ...]


def run(options: Options, lab: Lab) -> Result:
    dataset = lab.load(options.dataset)
    if options.pool > dataset.pool_size or options.batch * (options.rounds + 1) > options.pool:
        raise InputError(
            f"the study wants a pool of {options.pool} for {options.rounds} rounds of "
            f"{options.batch}; {dataset.name} has {dataset.pool_size} points"
        )
    timings: list[Timing] = []
    for name, epochs in options.networks:
        timings += _timings(options, dataset, name, epochs, lab)
    cuda = lab.device.type == "cuda"
    device = torch.cuda.get_device_name(lab.device) if cuda else "CPU"
    return Result(options, provenance(dataset), device, torch.get_num_threads(), tuple(timings))


def _timings(
    options: Options, dataset: Dataset, name: str, epochs: int, lab: Lab
) -> Iterator[Timing]:
    pool = dataset.train.inputs[: options.pool].to(lab.device)
    labels = dataset.train.labels[: options.pool]
    order = Draws(options.seed).generator("labels").permutation(options.pool)
    build, recipe = network(name, dataset), Recipe(epochs=epochs)
    for number in range(1, options.rounds + 1):
        rows = order[: number * options.batch]
        answers = labels[torch.from_numpy(rows)]
        draws = Draws(options.seed, number)
        lab.say(f"{name}, round {number}: training on {len(rows):,} labels")
        job = TrainingJob(rows, answers, options.learning_rate, draws)
        fitted = lab.fit(build, pool, [job], recipe, precision=options.precision)
        model = fitted.model(0)
        labeled = pool[torch.from_numpy(rows).to(lab.device)], answers
        for rule in options.rules:
            lab.say(f"{name}, round {number}: timing {rule}")
            seconds = [
                select(
                    model,
                    labeled,
                    pool,
                    options.batch,
                    strategy=rule,
                    seed=draws,
                    exclude=rows,
                    batch_size=options.batch_size,
                ).timings
                for _ in range(options.repeats + 1)
            ][1:]
            median = {phase: float(np.median([s[phase] for s in seconds])) for phase in seconds[0]}
            yield Timing(name, rule, number, len(rows), **median)


def _column(result: Result, network: str, rule: str, phase: str) -> NDArray[np.float64]:
    return np.array(
        [
            getattr(one, phase)
            for one in result.timings
            if (one.network, one.rule) == (network, rule)
        ]
    )


def _seconds(values: NDArray[np.float64]) -> str:
    spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def table(result: Result) -> Table:
    rows = []
    for name, _ in result.options.networks:
        for rule in result.options.rules:
            cells = [_seconds(_column(result, name, rule, "total"))]
            cells += [f"{_column(result, name, rule, p).mean():.4f}" for p in (*PHASES, "labeled")]
            paper = PAPER.get(rule)
            cells.append("–" if paper is None else f"{paper[0]:.2f} ± {paper[1]:.2f}")
            rows.append((name, rule, *cells))
    columns = ("network", "rule", "seconds", *PHASES, "labelled set, apart", "the paper")
    return Table(columns, tuple(rows), names=2)


def findings(result: Result) -> str:
    options = result.options
    sentences = [
        f"Seconds an acquisition of {options.batch} from {options.pool:,} points ({result.data}), mean "
        f"± std over rounds 1 to {options.rounds} (median of {options.repeats} timings each), on "
        f"{_place(result)}; training and the labelled set's pass not counted."
    ]
    for name, _ in options.networks:
        totals = {r: _column(result, name, r, "total") for r in options.rules}
        after = {r: totals[r] - _column(result, name, r, "forward") for r in options.rules}
        forward = np.mean([_column(result, name, r, "forward").mean() for r in options.rules])
        said = ", ".join(f"{rule} {_seconds(totals[rule])}" for rule in options.rules)
        beyond = ", ".join(f"{rule} {after[rule].mean():.4f}" for rule in options.rules)
        sentences.append(
            f"{name}: {said}; the forward pass, the same work for all, is {forward:.3f} in the mean, "
            f"what comes after it {beyond}."
        )
        known = [rule for rule in PAPER if rule in options.rules]
        ours = sorted(known, key=lambda rule: after[rule].mean())
        sentences.append(
            f"After the forward pass the order is {' < '.join(ours)}"
            + (", as in the paper" if ours == known else f"; in the paper {' < '.join(known)}")
            + "."
        )
    slower = [rule for rule in PAPER if rule in options.rules and rule != "entropy"]
    if slower and "entropy" in options.rules:
        paper = ", ".join(f"{rule} {PAPER[rule][0] / PAPER['entropy'][0]:.2f}" for rule in slower)
        here = "; ".join(
            f"{name} " + ", ".join(f"{rule} {_ratio(result, name, rule):.2f}" for rule in slower)
            for name, _ in options.networks
        )
        sentences.append(
            f"The paper's seconds are of hardware it does not name, so only ratios compare. Times as "
            f"long as entropy, there: {paper}; here, the forward pass taken as one for all: {here}."
        )
    return " ".join(sentences)


def _ratio(result: Result, name: str, rule: str) -> float:
    """A rule's seconds over entropy's, each with the mean forward pass of all rules."""
    rules = result.options.rules
    forward = np.mean([_column(result, name, one, "forward").mean() for one in rules])
    slow, fast = (
        forward
        + (_column(result, name, one, "total") - _column(result, name, one, "forward")).mean()
        for one in (rule, "entropy")
    )
    return float(slow / fast)


def _place(result: Result) -> str:
    many = "s" if result.threads > 1 else ""
    return result.device if result.device != "CPU" else f"CPU, {result.threads} thread{many}"


_SHADES = {"forward": ("#BDBDBD", "forward pass"), "score": ("#0072B2", "score"),
           "select": ("#D55E00", "select"), "labeled": ("#FFFFFF", "labelled set, apart")}  # fmt: skip


@style.styled
def draw(result: Result) -> Figure:
    networks = [name for name, _ in result.options.networks]
    figure = style.new(9.5, 0.9 + 2.3 * len(networks))
    grid = figure.subplots(len(networks), 2, squeeze=False, sharey="row", width_ratios=[1.5, 1])
    for row, name in zip(grid, networks, strict=True):
        _bars(row[0], result, name)
        _beyond(row[1], result, name)
    handles, texts = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=4)
    return figure


def _bars(axis: Axes, result: Result, name: str) -> None:
    rules = list(reversed(result.options.rules))
    left = np.zeros(len(rules))
    for phase, (shade, text) in _SHADES.items():
        width = np.array([_column(result, name, rule, phase).mean() for rule in rules])
        edge = "#555555" if phase == "labeled" else shade
        axis.barh(
            rules, width, left=left, height=0.62, color=shade, edgecolor=edge, label=text,
            hatch="////" if phase == "labeled" else None, linewidth=0.7,
        )  # fmt: skip
        left += width
    style.panel(axis, f"{name}: seconds an acquisition ({_place(result)})", grid="x")
    axis.set_xlabel("seconds, mean of rounds")


def _beyond(axis: Axes, result: Result, name: str) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    for place, rule in enumerate(reversed(result.options.rules)):
        values = _column(result, name, rule, "total") - _column(result, name, rule, "forward")
        axis.plot(
            values,
            [place] * len(values),
            "o",
            color=style.look(rule).colour,
            alpha=0.6,
            markersize=5,
        )
        axis.annotate(
            f"{values.mean():.4f} s", (values.mean(), place), (0, 8), textcoords="offset points",
            ha="center", fontsize=8, color=style.look(rule).colour,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.margins(x=0.15)
    style.panel(axis, "after the forward pass, a dot a round", grid="x")
    axis.set_xlabel("seconds, logarithmic")


_ABOUT = "what does an acquisition cost?"
STUDY = Study("cost", _ABOUT, FULL, QUICK, Result, run, draw, findings, table)
