"""Does ‖DF(S, S_J, t)‖ decrease over training, as the bound's simplified form assumes? A grid of
readings.

The paper says that the discrepancy decreases, that it rises now and then at most, and that it
levels off. Each is a number of a series that is above 0 where it is so (`WORDS`), and each cell has
its mean over draws.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from askance.experiments.statistics.resample import Interval
from askance.figures import style
from askance.paper.studies.contraction_run import (
    GRADIENTS,
    HALF,
    WHOLE,
    Cell,
    ContractionOptions,
    ContractionResult,
    TrainingChoice,
    cells,
    kept_epochs,
    run,
)
from askance.paper.studies.intervals import over_draws, said
from askance.paper.studies.measures import Contraction
from askance.paper.studies.study import Study, StudyTable, from_to, listed

WORDS: dict[str, Callable[[Contraction], float]] = {
    "falls": lambda found: found.fall,
    "rarely rises": lambda found: found.rarity,
    "levels off": lambda found: found.calm,
}
_OPTIMISERS = {"momentum": "SGD with momentum", "sgd": "plain SGD", "adam": "Adam"}
_COLOURS = {"momentum": style.VERMILLION, "sgd": style.BLUE, "adam": style.GREEN}
_VERDICTS = {1: "confirmed", 0: "not shown", -1: "denied", None: "cannot be judged"}
_HUES = {1: style.BLUE, 0: "#F0E9D8", -1: style.VERMILLION, None: style.POOL}


def mean(cell: Cell, word: str) -> Interval:
    """The mean of a word's number over draws, with its interval at 95%."""
    return over_draws(cell.values(WORDS[word]))


def side(cell: Cell, word: str) -> int | None:
    """1 where the interval is above 0, −1 below, 0 where it holds 0; None where nothing was trained."""
    interval = mean(cell, word)
    if not cell.trained or np.isnan(interval.low):
        return None
    return int(interval.low > 0) - int(interval.high < 0)


def training(choice: TrainingChoice) -> str:
    """ "Adam, full batch, trained on S"."""
    batch = "full batch" if choice.batch is None else f"batch {choice.batch}"
    optimiser = _OPTIMISERS.get(choice.optimiser, choice.optimiser)
    return f"{optimiser}, {batch}, trained on {choice.trained_on}"


def table(result: ContractionResult) -> StudyTable:
    """Every cell, a row each."""

    def word(name: str) -> Callable[[Cell], str]:
        def text(cell: Cell) -> str:
            figure = said(mean(cell, name), digits=3, sign=True)
            return f"{_VERDICTS[side(cell, name)]}, {figure}"

        return text

    return StudyTable.of(
        cells(result),
        ("dataset", lambda one: one.choice.dataset),
        ("training", lambda one: training(one.choice)),
        ("gradient", lambda one: one.gradient),
        ("of S", lambda one: f"{one.share:g}"),
        ("loss on S", lambda one: f"{one.loss[0]:.2f} → {one.loss[1]:.2f}"),
        *((name, word(name)) for name in WORDS),
        ("t₀", lambda one: from_to([series.found.first for series in one.series], "d")),
        names=3,
    )


def findings(result: ContractionResult) -> str:
    """In how many readings the paper's words hold; then which, and what becomes of Assumption 1."""
    options = result.options
    of_dataset = [
        (name, list(group)) for name, group in groupby(cells(result), lambda c: c.choice.dataset)
    ]
    finding, points = [], []
    for name, found in of_dataset:
        trained = [cell for cell in found if cell.trained]
        points.append(f"{name}: {len(trained)} of {len(found)} cells trained.")
        if not trained:
            finding.append(f"{name}: no cell trained, so nothing can be judged.")
            continue
        falls = [side(cell, "falls") for cell in trained].count(1)
        agree = sum(all(side(cell, word) == 1 for word in WORDS) for cell in trained)
        finding.append(
            f"{name}: ‖DF‖ falls in {falls} of the {len(trained)} readings that trained, and all of "
            f"the paper's words hold in {agree}."
        )
        for word in WORDS:
            sides = [side(cell, word) for cell in trained]
            points.append(
                f"That ‖DF‖ {word} is confirmed in {sides.count(1)} of them, denied in "
                f"{sides.count(-1)} and not shown in {sides.count(0)}."
            )
        points.append(agreement(name, trained))
    trained = [cell for _, found in of_dataset for cell in found if cell.trained]
    absent = f"Left out, because it could not be had: {', '.join(result.absent)}."
    return listed(
        " ".join(finding) or "No dataset is here.",
        f"Setting: one hidden layer of {options.hidden}, {options.epochs} epochs at learning rate "
        f"{options.learning_rate:g}, S of {options.points:,} points, {options.draws} draws "
        f"({'; '.join(result.data)}).",
        "A cell is one reading of the paper: an optimiser, a batch size, the set that is trained on, "
        "the gradient (full θ or the last layer) and |S_J|/|S|. Of each word the mean over draws is "
        "judged at 95%. A cell whose loss on S fell by less than a tenth did not train.",
        *points,
        *_assumption(trained, options.epochs),
        absent if result.absent else "",
    )


def agreement(name: str, trained: list[Cell]) -> str:
    """One sentence: the readings in which the paper's three words hold."""
    agree = [cell for cell in trained if all(side(cell, word) == 1 for word in WORDS)]
    if not agree:
        return f"No reading of {name} agrees with all three."
    if len(agree) == len(trained):
        return f"Every reading of {name} that trained agrees with all three."
    parts = []
    for choice, group in groupby(agree, lambda cell: cell.choice):
        of_choice, all_of_it = list(group), sum(cell.choice == choice for cell in trained)
        readings = [
            f"{gradient} at {', '.join(f'{cell.share:g}' for cell in some)}"
            for gradient in GRADIENTS
            if (some := [cell for cell in of_choice if cell.gradient == gradient])
        ]
        what = "every reading" if len(of_choice) == all_of_it else "; ".join(readings)
        parts.append(f"{training(choice)} ({what})")
    return f"The readings of {name} that agree with all three: {', '.join(parts)}."


def _assumption(trained: list[Cell], epochs: int) -> list[str]:
    """How often Assumption 1 says something, and how the simplified form compares with the sum."""
    found = [one.found for cell in trained for one in cell.series]
    if not found:
        return []
    empty = sum(one.first == epochs for one in found)
    short = sum(one.simplified < one.total for one in found)
    return [
        f"In {empty} of the {len(found)} series that trained the last step rises, so that Assumption 1 "
        f"holds at the last index alone, where it says nothing.",
        f"Put in the whole sum's place, as the paper does in equation 10, κ‖DF(t₀)‖² falls short of "
        f"Σ‖DF‖² in {short} of the {len(found)} (γ_t/ε_t = 1).",
    ]


@style.styled
def draw(result: ContractionResult) -> Figure:
    """Above, ‖DF‖ over training as the paper shows it; below, the verdict of every cell."""
    names = list(dict.fromkeys(cell.choice.dataset for cell in cells(result)))
    figure = style.new_figure(max(8.0, 1.8 + 4.4 * len(names)), 7.6)
    grid = figure.subplots(2, len(names), squeeze=False, height_ratios=[1, 1.25])
    for (above, below), name in zip(grid.T, names, strict=True):
        own = [cell for cell in cells(result) if cell.choice.dataset == name]
        _series(above, name, own, result.options)
        _verdicts(below, own, labelled=name == names[0])
    lines = [
        Line2D([], [], color=hue, label=_OPTIMISERS[name]) for name, hue in _COLOURS.items()
    ] + [
        Line2D([], [], color="black", linestyle="-", label="mini-batches"),
        Line2D([], [], color="black", linestyle="--", label="full batch"),
    ]
    labels = ("did not train", "denied", "not shown", "confirmed")
    patches = [
        Patch(color=_HUES[side], label=label)
        for side, label in zip((None, -1, 0, 1), labels, strict=True)
    ]
    figure.legend(handles=[*lines, *patches], loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _series(axis: Axes, name: str, own: list[Cell], options: ContractionOptions) -> None:
    """The mean over draws of each training on S, full θ, the middle share; thin where untrained."""
    shares = sorted({cell.share for cell in own if cell.choice.trained_on == WHOLE})
    share = HALF if HALF in shares or not shares else shares[len(shares) // 2]
    epochs = kept_epochs(options.epochs)
    for cell in own:
        if (cell.choice.trained_on, cell.gradient, cell.share) != (WHOLE, GRADIENTS[0], share):
            continue
        axis.plot(
            epochs,
            np.mean([one.norms for one in cell.series], axis=0),
            color=_COLOURS.get(cell.choice.optimiser, style.GREY),
            linestyle="--" if cell.choice.batch is None else "-",
            linewidth=1.8 if cell.trained else 0.9,
        )
    style.panel(axis, f"{name}: trained on S, full θ, |S_J| = {share:g}|S|")
    axis.set_xlabel("epoch t")
    axis.set_ylabel("‖DF(S, S_J, t)‖")


def _verdicts(axis: Axes, own: list[Cell], labelled: bool) -> None:
    """A row each training, a column each reading, side by side for the three words."""
    choices = list(dict.fromkeys(cell.choice for cell in own))
    readings = sorted(
        dict.fromkeys((cell.gradient, cell.share) for cell in own),
        key=lambda one: (GRADIENTS.index(one[0]), one[1]),
    )
    width, codes = len(readings), {None: 0, -1: 1, 0: 2, 1: 3}
    shown = np.full((len(choices), 3 * (width + 1) - 1), np.nan)
    for cell in own:
        for block, word in enumerate(WORDS):
            column = block * (width + 1) + readings.index((cell.gradient, cell.share))
            shown[choices.index(cell.choice), column] = codes[side(cell, word)]
    colours = ListedColormap([_HUES[one] for one in codes])
    axis.imshow(shown, cmap=colours, vmin=-0.5, vmax=3.5, aspect="auto")
    style.panel(axis, grid=None)
    axis.set_xticks(
        [block * (width + 1) + k for block in range(3) for k in range(width)],
        [f"{gradient.split()[0]} {share:g}" for gradient, share in readings] * 3,
        rotation=90,
        fontsize=6.5,
    )
    for block, word in enumerate(WORDS):
        at = block * (width + 1) + (width - 1) / 2
        axis.annotate(word, (at, -0.7), ha="center", va="bottom", annotation_clip=False)
    texts = [training(choice).replace("trained on ", "") for choice in choices] if labelled else []
    axis.set_yticks(range(len(choices)), texts or [""] * len(choices))
    axis.set_xlabel("gradient (full θ or last layer), and |S_J|/|S|")
    for edge in range(len(choices) - 1):
        axis.axhline(edge + 0.5, color="white", linewidth=1)


STUDY = Study(
    name="contraction",
    about="does the discrepancy of a set and a part of it decrease over training?",
    full=ContractionOptions(),
    quick=ContractionOptions(
        datasets=("german",), epochs=60, draws=3, optimisers=("momentum", "adam")
    ),
    result=ContractionResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)
