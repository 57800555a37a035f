"""What does an acquisition cost? Seconds of `askance.select`, training not counted.

The paper's table: pool 25,000, b = 500, rounds 1 to 5. The labelled set grows at random, so that in
each round all rules are asked with the same network; what a rule has to do with the labelled set (its
forward pass, the reference) is timed apart, as the paper reports it apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray

from askance.data import Dataset
from askance.errors import InputError
from askance.figures import style
from askance.paper.studies.lab import Lab, network, provenance
from askance.paper.studies.study import Study, StudyTable, column, listed
from askance.seeding import Draws
from askance.selection import select
from askance.training import Precision, Recipe, TrainingJob, fit

# Seconds in the paper, mean and std, on hardware it does not name.
PAPER = {
    "entropy": (1.06, 0.05),
    "grad": (2.44, 0.31),
    "badge": (3.07, 0.12),
    "kcenter": (3.47, 0.23),
}
PHASES = ("forward", "score", "select")


@dataclass(frozen=True)
class CostOptions:
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
class CostResult:
    """The seconds of every network, rule and round.

    Args:
        data: what the dataset is.
        device: in words.
        threads: with which torch computes, where the device is a CPU.
    """

    options: CostOptions
    data: str
    device: str
    threads: int
    timings: tuple[Timing, ...]


def run(options: CostOptions, lab: Lab) -> CostResult:
    """Time every rule in every round, with every network."""
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
    return CostResult(options, provenance(dataset), device, torch.get_num_threads(), tuple(timings))


def _timings(
    options: CostOptions, dataset: Dataset, name: str, epochs: int, lab: Lab
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
        with lab.one_thread():
            model = fit(build, pool, [job], recipe, precision=options.precision).model(0)
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


def values(result: CostResult, network: str, rule: str, *phases: str) -> NDArray[np.float64]:
    """Seconds of some phases together, round by round."""
    return np.sum(
        [column(result.timings, phase, network=network, rule=rule) for phase in phases], axis=0
    )


def after_forward(result: CostResult, network: str, rule: str) -> NDArray[np.float64]:
    """Seconds after the pass over the pool, round by round."""
    total, forward = (values(result, network, rule, phase) for phase in ("total", "forward"))
    return total - forward


def _seconds(values: NDArray[np.float64]) -> str:
    spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def table(result: CostResult) -> StudyTable:
    """Seconds in all and of each phase, a row for each network and rule; and the paper's."""

    def paper(rule: str) -> str:
        return "{:.2f} ± {:.2f}".format(*PAPER[rule]) if rule in PAPER else "–"

    def mean(phase: str) -> Callable[[tuple[str, str]], str]:
        return lambda kind: f"{values(result, *kind, phase).mean():.4f}"

    networks = [name for name, _ in result.options.networks]
    return StudyTable.of(
        product(networks, result.options.rules),
        ("network", lambda kind: kind[0]),
        ("rule", lambda kind: kind[1]),
        ("seconds", lambda kind: _seconds(values(result, *kind, "total"))),
        *((phase, mean(phase)) for phase in PHASES),
        ("labelled set, apart", mean("labeled")),
        ("the paper", lambda kind: paper(kind[1])),
        names=2,
    )


def findings(result: CostResult) -> str:
    """The order of the rules after the forward pass; then their seconds, and the paper's ratios."""
    options = result.options
    papers = [rule for rule in PAPER if rule in options.rules]
    orders, points = [], []
    for name, _ in options.networks:
        totals = {r: values(result, name, r, "total") for r in options.rules}
        after = {r: after_forward(result, name, r) for r in options.rules}
        ours = sorted(papers, key=lambda rule: after[rule].mean())
        orders.append(
            f"{name}: after the forward pass the order is {' < '.join(ours)}"
            + (", as in the paper." if ours == papers else f"; in the paper {' < '.join(papers)}.")
        )
        said = ", ".join(f"{rule} {_seconds(totals[rule])}" for rule in options.rules)
        beyond = ", ".join(f"{rule} {after[rule].mean():.4f}" for rule in options.rules)
        points += [
            f"{name}, seconds in all: {said}.",
            f"{name}: the forward pass, the same work for all, is {_mean_forward(result, name):.3f} in "
            f"the mean. What comes after it: {beyond}.",
        ]
    slower = [rule for rule in PAPER if rule in options.rules and rule != "entropy"]
    ratios = ""
    if slower and "entropy" in options.rules:
        paper = ", ".join(f"{rule} {PAPER[rule][0] / PAPER['entropy'][0]:.2f}" for rule in slower)
        here = "; ".join(
            f"{name} " + ", ".join(f"{rule} {_ratio(result, name, rule):.2f}" for rule in slower)
            for name, _ in options.networks
        )
        ratios = (
            f"The paper's seconds are of hardware it does not name, so only ratios compare. Times as "
            f"long as entropy, there: {paper}; here, the forward pass taken as one for all: {here}."
        )
    return listed(
        " ".join(orders),
        f"Setting: seconds to acquire {options.batch} of {options.pool:,} points ({result.data}) on "
        f"{_place(result)}, mean ± std over rounds 1 to {options.rounds}, each the median of "
        f"{options.repeats} timings. Training and the labelled set's pass are not counted.",
        *points,
        ratios,
    )


def _mean_forward(result: CostResult, name: str) -> float:
    """The seconds of the pass over the pool, mean over rules and rounds."""
    means = [values(result, name, rule, "forward").mean() for rule in result.options.rules]
    return float(np.mean(means))


def _ratio(result: CostResult, name: str, rule: str) -> float:
    """A rule's seconds over entropy's, each with the mean forward pass of all rules."""
    forward = _mean_forward(result, name)
    slow, fast = (after_forward(result, name, one).mean() for one in (rule, "entropy"))
    return float((forward + slow) / (forward + fast))


def _place(result: CostResult) -> str:
    many = "s" if result.threads > 1 else ""
    return result.device if result.device != "CPU" else f"CPU, {result.threads} thread{many}"


_SHADES = {"forward": ("#BDBDBD", "forward pass"), "score": ("#0072B2", "score"),
           "select": ("#D55E00", "select"), "labeled": ("#FFFFFF", "labelled set, apart")}  # fmt: skip


@style.styled
def draw(result: CostResult) -> Figure:
    """A row each network: the phases of every rule as bars, and each round's seconds after the pass."""
    networks = [name for name, _ in result.options.networks]
    figure = style.new_figure(9.5, 0.9 + 2.3 * len(networks))
    grid = figure.subplots(len(networks), 2, squeeze=False, sharey="row", width_ratios=[1.5, 1])
    for row, name in zip(grid, networks, strict=True):
        _bars(row[0], result, name)
        _beyond(row[1], result, name)
    handles, texts = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=4)
    return figure


def _bars(axis: Axes, result: CostResult, name: str) -> None:
    rules = list(reversed(result.options.rules))
    left = np.zeros(len(rules))
    for phase, (shade, text) in _SHADES.items():
        width = np.array([values(result, name, rule, phase).mean() for rule in rules])
        edge = "#555555" if phase == "labeled" else shade
        axis.barh(
            rules, width, left=left, height=0.62, color=shade, edgecolor=edge, label=text,
            hatch="////" if phase == "labeled" else None, linewidth=0.7,
        )  # fmt: skip
        left += width
    style.panel(axis, f"{name}: seconds an acquisition ({_place(result)})", grid="x")
    axis.set_xlabel("seconds, mean of rounds")


def _beyond(axis: Axes, result: CostResult, name: str) -> None:
    for place, rule in enumerate(reversed(result.options.rules)):
        after, hue = after_forward(result, name, rule), style.rule_style(rule).colour
        axis.plot(after, [place] * len(after), "o", color=hue, alpha=0.6, markersize=5)
        axis.annotate(
            f"{after.mean():.4f} s", (after.mean(), place), (0, 8), textcoords="offset points",
            ha="center", fontsize=8, color=hue,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.margins(x=0.15)
    style.panel(axis, "after the forward pass, a dot a round", grid="x")
    axis.set_xlabel("seconds, logarithmic")


STUDY = Study(
    name="cost",
    about="what does an acquisition cost?",
    full=CostOptions(),
    quick=CostOptions(rounds=2, networks=(("lenet", 5),), repeats=2, precision="float32"),
    result=CostResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)
