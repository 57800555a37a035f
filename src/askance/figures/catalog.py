"""Every figure that stores alone can give, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from askance.experiments.statistics.curves import curves
from askance.experiments.statistics.penalty import BYS, views
from askance.experiments.statistics.ranks import profile, ranks
from askance.experiments.statistics.resample import FEWEST
from askance.experiments.statistics.suite import Suite
from askance.experiments.statistics.table import ExperimentResults, methods_of
from askance.figures.across import critical_difference, profiles
from askance.figures.curves import curve_grid, learning_curves
from askance.figures.lazy import LazyFigure
from askance.figures.penalty import penalty
from askance.figures.timing import timing

Seconds = Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]


def figures(
    results: Sequence[ExperimentResults],
    suite: Suite,
    seconds: Seconds | None = None,
    aside: Collection[str] = (),
) -> Iterator[tuple[str, LazyFigure]]:
    """The name and the drawing of every figure.

    Those named after the suite have its rules alone; `extended-…`, where there are other rules, have
    all. Those of tests are of the experiments with seeds enough for one (`FEWEST`).

    Args:
        seconds: by experiment and rule, the stages' seconds of each acquisition.
        aside: experiments that do not count in what is drawn of several.
    """
    methods = suite.sort(methods_of(results))
    sets = {suite.name: [m for m in methods if m in suite.rules]}
    if len(sets[suite.name]) < len(methods):
        sets["extended"] = list(methods)
    counted = [one for one in results if one.name not in aside]
    tested = [one for one in counted if len(one.seeds) >= FEWEST]
    by_name = {one.name: one for one in results}
    for prefix, rules in sets.items():
        if len(rules) < 2:
            continue
        for grid, names in suite.panels.items():
            there = {name: by_name[name].only(rules) for name in names if name in by_name}
            there = {name: one for name, one in there.items() if one.methods}
            if there:
                panels = [there.get(name, name) for name in names]
                yield f"{prefix}-curves-{grid}", LazyFigure(curve_grid, panels, rules)
        for by in BYS if tested else ():
            matrices = views(tested, by, suite, methods=rules)
            yield f"{prefix}-penalty-{by}", LazyFigure(penalty, matrices)
    for one in results:
        yield f"curves-{one.name}", LazyFigure(learning_curves, one)
    whole = [curves(one) for one in counted]
    solved = profile(whole)
    if solved.problems and len(solved.methods) > 1:
        yield "profile", LazyFigure(profiles, solved)
    ranking = ranks(whole)
    if len(ranking.experiments) > 1:
        yield "ranks", LazyFigure(critical_difference, ranking)
    for name, by_rule in (seconds or {}).items():
        if by_rule:
            yield f"timing-{name}", LazyFigure(timing, by_rule, name)
