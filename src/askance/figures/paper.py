"""Every figure that stores alone can give, by name: those of the paper, and ours beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from askance.experiments.statistics.curves import curves
from askance.experiments.statistics.penalty import By, views
from askance.experiments.statistics.ranks import profile, ranks
from askance.experiments.statistics.table import PAPER, ExperimentResults, methods_of
from askance.figures.across import critical_difference, profiles
from askance.figures.curves import curve_grid, learning_curves
from askance.figures.drawing import Drawing
from askance.figures.penalty import penalty
from askance.figures.timing import timing

# The paper's panels in their order; those of its appendix are unnamed there.
GRIDS = {
    "text-tabular": ("20newsgroups-mlp", "isolet-mlp", "pokerhand-mlp"),
    "images": (
        "stl10-lenet", "gtsrb-vgg16", "svhn-lenet", "cifar10-vgg16", "cifar10-resnet18",
        "cinic10-resnet18",
    ),
    "appendix": (
        "stl10-vgg16", "stl10-resnet18", "gtsrb-lenet", "gtsrb-resnet18", "svhn-vgg16",
        "svhn-resnet18", "cifar10-lenet", "cinic10-lenet", "cinic10-vgg16",
    ),
}  # fmt: skip
BYS: tuple[By, ...] = ("rounds", "backbone", "dataset")

Seconds = Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]


def figures(
    found: Sequence[ExperimentResults], seconds: Seconds | None = None
) -> Iterator[tuple[str, Drawing]]:
    """The name and the drawing of every figure.

    `paper-…` have the paper's five rules alone; `extended-…`, where there are other rules, have all.

    Args:
        seconds: by experiment and rule, the stages' seconds of each acquisition.
    """
    sets = {"paper": [m for m in methods_of(found) if m in PAPER]}
    if len(sets["paper"]) < len(methods_of(found)):
        sets["extended"] = list(methods_of(found))
    by_name = {one.name: one for one in found}
    for prefix, methods in sets.items():
        if len(methods) < 2:
            continue
        for grid, names in GRIDS.items():
            panels = [by_name[name].only(methods) for name in names if name in by_name]
            panels = [one for one in panels if one.methods]
            if panels:
                yield f"{prefix}-curves-{grid}", Drawing(curve_grid, panels)
        for by in BYS:
            matrices = views(found, by, methods=methods)
            yield f"{prefix}-penalty-{by}", Drawing(penalty, matrices)
    for one in found:
        yield f"curves-{one.name}", Drawing(learning_curves, one)
    whole = [curves(one) for one in found]
    solved = profile(whole)
    if solved.problems and len(solved.methods) > 1:
        yield "profile", Drawing(profiles, solved)
    placed = ranks(whole)
    if len(placed.experiments) > 1:
        yield "ranks", Drawing(critical_difference, placed)
    for name, rules in (seconds or {}).items():
        if rules:
            yield f"timing-{name}", Drawing(timing, rules, name)
