"""How verdicts depend on a choice: the same claims under other readings, or with a part left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from askance.experiments.statistics.untrained import flags
from askance.paper.claims import variants
from askance.paper.claims.case import Case
from askance.paper.claims.judge import Claims, JudgedClaim, judge
from askance.paper.claims.stores import OURS, OVERALL, PANELS
from askance.paper.claims.variant_runs import VariantRuns, swapped
from askance.report.markdown import table

ABOUT = (
    "Verdicts of the paper's claims over experiments that would be others with one choice made "
    "otherwise. The verdicts above stand. [SENSITIVITY.md](SENSITIVITY.md) says what the choices are, "
    "and has every verdict with each of them."
)


@dataclass(frozen=True)
class Tried:
    """A claim as judged, and with each choice made otherwise.

    Args:
        judged: by the rule of `results/paper/JUDGING.md`.
        others: by the name of the choice.
    """

    judged: JudgedClaim
    others: Mapping[str, JudgedClaim]

    @cached_property
    def applied(self) -> dict[str, JudgedClaim]:
        """Those of choices that change a number of the claim and leave it something to be judged by.

        The others cannot move it: round 0 is not among the last rounds, and an interval over datasets
        has no part in a count of experiments.
        """
        basis = self.judged.basis
        return {
            name: one for name, one in self.others.items() if basis and one.basis not in ((), basis)
        }

    @property
    def changed(self) -> dict[str, list[str]]:
        """The other verdicts there are, each with the choices that give it."""
        changed: dict[str, list[str]] = defaultdict(list)
        for name, one in self.applied.items():
            if one.verdict != self.judged.verdict:
                changed[one.verdict].append(name)
        return changed

    @property
    def told(self) -> str:
        """How the verdict moves, in words."""
        if not self.applied:
            return "–"
        if not self.changed:
            count = len(self.applied)
            many = {1: "the one choice", 2: "both choices"}.get(count, f"all {count} choices")
            return f"the same with {many} that can apply"
        return "; ".join(f"{v} {', '.join(names)}" for v, names in self.changed.items())

    def beside(self, other: Tried) -> Tried:
        """The same claim with the choices of both."""
        return Tried(self.judged, {**self.others, **other.others})


def left_out(case: Case) -> Iterator[tuple[str, Case]]:
    """The case without one dataset, and without one experiment where a dataset has several."""
    fewer = replace(case.reading, datasets=case.reading.datasets - 1)
    counts = Counter(one.dataset for one in case.experiments)
    for dataset in counts:
        rest = [one for one in case.experiments if one.dataset != dataset]
        yield f"without {dataset}", Case(rest, fewer)
    for one in case.experiments:
        if counts[one.dataset] > 1:
            rest = [other for other in case.experiments if other.name != one.name]
            yield f"without {one.name}", Case(rest, case.reading)


def readings(case: Case, *, of_many: bool = True) -> Iterator[tuple[str, Case]]:
    """The case with one choice of how it is read made otherwise.

    Args:
        of_many: with the choices that matter for a claim over experiments alone.
    """
    reading, experiments = case.reading, case.experiments
    others = {"with round 0": replace(reading, first=0)}
    if any(flags(one).any() for one in experiments):
        others["with untrained networks"] = replace(reading, flagged=True)
    others["at 90%"] = replace(reading, level=0.9)
    if of_many:
        others["with datasets resampled"] = replace(reading, resample=True)
        if len({one.dataset for one in experiments}) < len(experiments):
            others["with experiments as units"] = replace(reading, clustered=False)
        if any(len(one.seeds) > (reading.block or 0) for one in experiments):
            others["with one matrix of all seeds"] = replace(reading, block=None)
    for name, other in others.items():
        yield name, Case(experiments, other)


def tried(claims: Claims, case: Case, choices: Iterable[tuple[str, Case]]) -> list[Tried]:
    """Every claim as judged, and with every choice."""
    others = {name: judge(claims, other) for name, other in choices}
    return [
        Tried(one, {name: those[place] for name, those in others.items()})
        for place, one in enumerate(judge(claims, case))
    ]


@dataclass(frozen=True)
class Choices:
    """Everything that is tried on a case: what each of its claims hangs on.

    Args:
        runs: of variants of its experiments.
    """

    case: Case
    runs: Sequence[VariantRuns] = ()

    @cached_property
    def without(self) -> list[Tried]:
        """The paper's claims over experiments and our questions, a part left out."""
        return tried({**OVERALL, **OURS}, self.case, left_out(self.case))

    @cached_property
    def read(self) -> list[Tried]:
        """The same, read otherwise."""
        return tried({**OVERALL, **OURS}, self.case, readings(self.case))

    @cached_property
    def single(self) -> list[Tried]:
        """Those of single learning curves, read otherwise."""
        return tried(PANELS, self.case, readings(self.case, of_many=False))

    @cached_property
    def swapped(self) -> list[Tried]:
        """Every claim, with a variant in place of its experiment."""
        return tried({**OVERALL, **PANELS, **OURS}, self.case, swapped(self.case, self.runs))

    @cached_property
    def wins(self) -> list[Tried]:
        """Claims that rest on wins, with other readings of a win."""
        return [
            Tried(one.judged, {f"with wins {name}": other for name, other in one.others.items()})
            for one in variants.resting_on_wins(self.case)
        ]

    @cached_property
    def over_experiments(self) -> list[Tried]:
        """The first two together."""
        return [one.beside(other) for one, other in zip(self.without, self.read, strict=True)]

    def of_the_paper(self, those: Sequence[Tried]) -> list[Tried]:
        """Of claims over experiments those that are the paper's."""
        return [one for one in those if one.judged.claim in OVERALL]


def section(those: Sequence[Tried]) -> str:
    """The claims that would be judged otherwise, and by which choice."""
    rows = [[one.judged.claim, one.judged.verdict, one.told] for one in those if one.changed]
    if not rows:
        return f"{ABOUT} None would change."
    return f"{ABOUT}\n\n{table(['claim', 'verdict', 'would be'], rows, left=3)}"
