"""What the paper says of single learning curves, each as something measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from askance.experiments.statistics.resample import Interval
from askance.experiments.statistics.stages import Rounds, Stage
from askance.experiments.statistics.table import ExperimentResults
from askance.paper.claims.case import PLAIN, Case, Reading
from askance.paper.claims.judge import HALF, HALF_POINT, Judged, judged
from askance.paper.claims.measures import (
    accuracies,
    falls,
    least,
    narrowing,
    others,
    pairs_of,
    student,
    wider,
    within,
)
from askance.paper.suite import RULES
from askance.report.formatting import plural

Look = Callable[[ExperimentResults, Reading], tuple[str, Interval | None]]


@dataclass(frozen=True)
class Panel:
    """What the paper says of one of its learning curves.

    Args:
        look: at the experiment, with the paper's rules alone: what is measured, and what it is.
        limit: what that should be above.
    """

    experiment: str
    says: str
    look: Look
    limit: float = 0.0


def _above(high: Sequence[str], low: Sequence[str], stage: Stage = "all") -> Look:
    """Each of some rules above each of others."""

    def look(one: ExperimentResults, reading: Reading = PLAIN) -> tuple[str, Interval | None]:
        part = one.only({*high, *low})
        pairs = pairs_of(high, low)
        measure, found = least(accuracies(part, stage, reading), part.methods, pairs, student)
        return f"mean accuracy, {stage} rounds, {measure}", found

    return look


def _strong(experiment: str, says: str, *rules: str, stage: Stage = "all") -> Panel:
    """Rules that are far behind none: at most half a point."""
    said = f"{says}: at most {HALF} behind any rule"
    return Panel(experiment, said, _above(rules, RULES, stage), -HALF_POINT)


def _together(rule: str, other: str, stage: Stage) -> Look:
    """Two rules less than half a point apart."""

    def look(one: ExperimentResults, reading: Reading = PLAIN) -> tuple[str, Interval | None]:
        part = one.only({rule, other})
        measure = f"{HALF} less the size of the mean difference, {stage} rounds"
        if len(part.methods) < 2:
            return measure, None
        accuracy_SM = accuracies(part, stage, reading)
        if not len(accuracy_SM):
            return measure, None
        return measure, within(student(accuracy_SM[:, 0] - accuracy_SM[:, 1]), HALF_POINT)

    return look


def _wider(stage: Rounds, *than: Rounds, rules: Sequence[str] = RULES) -> Look:
    """Rules further from each other in some rounds than in others."""
    measure = f"variance between rules, {stage} less {' or '.join(than)} rounds, its signed root"

    def look(one: ExperimentResults, reading: Reading = PLAIN) -> tuple[str, Interval | None]:
        part = one.only(rules)
        return measure, (
            wider(part, stage, *than, reading=reading) if len(part.methods) == len(rules) else None
        )

    return look


def _catches_up(rule: str, *leaders: str) -> Look:
    """A rule less far behind some others late than early."""

    def look(one: ExperimentResults, reading: Reading = PLAIN) -> tuple[str, Interval | None]:
        part = one.only({rule, *leaders})
        measure = f"how far {rule} is behind {' and '.join(leaders)} in the mean, early less late"
        return measure, (
            narrowing(part, rule, reading) if len(part.methods) == 1 + len(leaders) else None
        )

    return look


def _unsteady(rule: str) -> Look:
    """A rule whose accuracy falls further below what it had reached than that of any other."""

    def look(one: ExperimentResults, reading: Reading = PLAIN) -> tuple[str, Interval | None]:
        part, pairs = one.only(RULES), pairs_of([rule], others(rule))
        measure, found = least(falls(part, reading), part.methods, pairs, student)
        return f"largest fall below the accuracy reached, {measure}", found

    return look


_WEAK = ("random", "entropy")

_CONVERGE = _wider("early", "late")

PANELS = (
    _strong("20newsgroups-mlp", "grad among the most label-efficient", "grad"),
    Panel("20newsgroups-mlp", "grad, k-center and BADGE above random and entropy",
          _above(others(*_WEAK), _WEAK)),
    Panel("20newsgroups-mlp", "the gap grows with the budget", _wider("late", "early")),
    Panel("isolet-mlp", "differences early, then the curves converge", _CONVERGE),
    Panel("pokerhand-mlp", "the choice matters most at middling budgets",
          _wider("mid", "early", "late")),
    Panel("pokerhand-mlp", "BADGE and entropy improve fastest early",
          _above(("badge", "entropy"), others("badge", "entropy"), "early")),
    _strong("pokerhand-mlp", "grad consistently strong", "grad"),
    Panel("pokerhand-mlp", "all but random converge",
          _wider("early", "late", rules=others("random"))),
    Panel("pokerhand-mlp", "random trails at the end",
          _above(others("random"), ("random",), "late")),
    _strong("stl10-lenet", "all remain close", *RULES),
    Panel("stl10-lenet", "BADGE the strongest early", _above(("badge",), others("badge"), "early")),
    Panel("stl10-lenet", "grad closer to BADGE late", _catches_up("grad", "badge")),
    _strong("gtsrb-vgg16", "grad consistently strong", "grad"),
    _strong("gtsrb-vgg16", "grad quick to high accuracy", "grad", stage="early"),
    Panel("gtsrb-vgg16", f"random and BADGE within {HALF} late", _together("badge", "random", "late")),
    Panel("gtsrb-vgg16", "k-center the least steady", _unsteady("kcenter")),
    Panel("svhn-lenet", "BADGE and grad above random and entropy", _above(("badge", "grad"), _WEAK)),
    Panel("svhn-lenet", "k-center below all", _above(others("kcenter"), ("kcenter",))),
    _strong("cifar10-vgg16", "grad among the strongest", "grad"),
    Panel("cifar10-vgg16", "grad, BADGE and k-center above entropy",
          _above(("grad", "badge", "kcenter"), ("entropy",))),
    Panel("cifar10-vgg16", "entropy less far behind them late",
          _catches_up("entropy", "grad", "badge", "kcenter")),
    _strong("cifar10-resnet18", "all tightly clustered", *RULES),
    Panel("cifar10-resnet18", "grad marginally ahead of all", _above(("grad",), others("grad"))),
    Panel("cifar10-resnet18", "entropy behind all", _above(others("entropy"), ("entropy",))),
    Panel("cifar10-resnet18", "the curves converge", _CONVERGE),
    Panel("cinic10-resnet18", "grad, BADGE and k-center above random and entropy early",
          _above(others(*_WEAK), _WEAK, "early")),
    Panel("cinic10-resnet18", "the curves converge", _CONVERGE),
)  # fmt: skip


def panels(case: Case) -> list[Judged]:
    """What the paper says of single learning curves; nothing is shown of those that are not here."""
    by_name = {one.name: one for one in case.experiments}
    rows = []
    for panel in PANELS:
        one = by_name.get(panel.experiment)
        measure, found = (
            panel.look(one, case.reading) if one else ("no seed of it that judges is here", None)
        )
        n = plural(found.n, "seed") if found else "–"
        claim, least = f"{panel.experiment}: {panel.says}", case.reading.least_seeds
        rows.append(judged(claim, measure, found, n, limit=panel.limit, least=least))
    return rows
