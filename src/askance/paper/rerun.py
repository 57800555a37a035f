"""Is an experiment that was run again the one that is stored? Its curves beside the seeds' spread.

    python -m askance.paper.rerun results/paper/svhn-lenet results/again/svhn-lenet

Both are stores, or folders that hold one. Writes README.md and again.png beside the second (or to
`--out`), and exits with 1 where a curve is outside of the spread. Shapes: M rules, S seeds, T rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray
from scipy import stats

from askance.errors import AskanceError, StoreError
from askance.experiments.spec import differences
from askance.experiments.statistics.paired import ALPHA, benjamini_hochberg, pairwise
from askance.experiments.statistics.table import Floats
from askance.figures import style
from askance.paper.studies.measures import overlap
from askance.paper.suite import SUITE
from askance.report.facts import Facts, StoreFacts, read
from askance.report.formatting import join_names, number, percent
from askance.report.repeat import repeat


@dataclass(frozen=True, eq=False)
class RuleRerun:
    """One rule's runs, stored and again.

    Args:
        labels_T: of each round.
        stored_ST, again_ST: test accuracies.
        won_T: where a paired t-test tells the two apart, corrected over the rules of the round, as
            everywhere else: so in one round of twenty by chance.
        differs_T: where it does so corrected over all rules and rounds.
        shared_S: of the first batch picked, the share both have.
    """

    name: str
    labels_T: Floats
    stored_ST: Floats
    again_ST: Floats
    won_T: NDArray[np.bool_]
    differs_T: NDArray[np.bool_]
    shared_S: Floats

    @property
    def moved_T(self) -> Floats:
        """By how much the mean over seeds differs."""
        return self.again_ST.mean(axis=0) - self.stored_ST.mean(axis=0)

    @property
    def std_T(self) -> Floats:
        """The stored seeds' standard deviation, with S − 1."""
        return self.stored_ST.std(axis=0, ddof=1)

    @property
    def within(self) -> bool:
        """Whether the mean is among the stored seeds in most rounds, and no test says otherwise."""
        return self.between > 0.5 and not self.differs_T.any()

    def inside(self, stds: float) -> float:
        """The share of rounds in which the mean is that near."""
        return float((np.abs(self.moved_T) <= stds * self.std_T).mean())

    @property
    def between(self) -> float:
        """The share of rounds in which the mean is between the stored seeds' least and greatest."""
        low, high = self.stored_ST.min(axis=0), self.stored_ST.max(axis=0)
        mean = self.again_ST.mean(axis=0)
        return float(((low <= mean) & (mean <= high)).mean())

    @property
    def farthest(self) -> int:
        """The round in which the mean differs most."""
        return int(np.abs(self.moved_T).argmax())

    @property
    def identical(self) -> int:
        """Runs with the same accuracy in every round."""
        return int((self.stored_ST == self.again_ST).all(axis=1).sum())


@dataclass(frozen=True, eq=False)
class Rerun:
    """A stored experiment, and the same one run again."""

    stored: StoreFacts
    again: StoreFacts
    rules: list[RuleRerun]

    @property
    def within(self) -> bool:
        """Whether every rule's curve is within the spread of the stored seeds."""
        return all(rule.within for rule in self.rules)


def compare(stored: Path, again: Path) -> Rerun:
    """The rules both stores have; an error where they are not the same experiment."""
    facts = [read(path, SUITE) for path in (stored, again)]
    one, other = map(_only_store, facts)
    names = _common_rules(one, other)
    tables = [each.experiments[0].only(names) for each in facts]
    both_2MST = np.stack([table.accuracy_MST for table in tables])
    # The two are tested as two methods are, in every round and rule at once.
    p_TM = pairwise(both_2MST.transpose(3, 1, 0, 2)).p[..., 0]
    won_TM = benjamini_hochberg(p_TM) < ALPHA
    differs_TM = benjamini_hochberg(p_TM.ravel()).reshape(p_TM.shape) < ALPHA
    picks = [
        {(r.strategy, r.seed): r.picks for r in store.records if r.round == 0}
        for store in (one, other)
    ]
    rules = [
        RuleRerun(
            name,
            labels_T=tables[0].labels_MST[place, 0],
            stored_ST=both_2MST[0, place],
            again_ST=both_2MST[1, place],
            won_T=won_TM[:, place],
            differs_T=differs_TM[:, place],
            shared_S=np.array(
                [overlap(*(of[name, seed] for of in picks)) for seed in tables[0].seeds]
            ),
        )
        for place, name in enumerate(names)
    ]
    return Rerun(one, other, rules)


def _only_store(facts: Facts) -> StoreFacts:
    """The one store there, finished."""
    (path,) = facts.paths
    if (len(facts.stores), len(facts.experiments)) != (1, 1):
        raise StoreError(
            f"{path} holds {len(facts.stores)} stores of {len(facts.experiments)} experiments, and "
            f"one is compared with one: name its file"
        )
    store = facts.stores[0]
    if store.unfinished:
        raise StoreError(
            f"{path}: {len(store.unfinished)} of {len(store.progress)} runs are not finished; "
            f"run `{repeat(store).command}` to its end first"
        )
    return store


def _common_rules(one: StoreFacts, other: StoreFacts) -> tuple[str, ...]:
    """The rules to compare, in the paper's order."""
    differ = differences(one.spec, other.spec)
    differ.pop("strategies", None)
    if one.info["fingerprint"] != other.info["fingerprint"]:
        differ["data"] = f"data: {one.info['fingerprint']} → {other.info['fingerprint']}"
    if differ:
        listing = "".join(f"\n  {line}" for line in differ.values())
        raise StoreError(
            f"{other.path} is not the experiment of {one.path} run again (stored → again):{listing}\n"
            f"compare stores that differ in their strategies alone"
        )
    if one.spec["seeds"] < 2:
        raise StoreError(f"{one.path} has one seed, and a spread needs at least two")
    rules = [{strategy for strategy, _ in store.progress} for store in (one, other)]
    if not rules[0] & rules[1]:
        raise StoreError(
            f"no rule is in both stores: {', '.join(SUITE.sort(rules[0]))} in {one.path}, "
            f"{', '.join(SUITE.sort(rules[1]))} in {other.path}"
        )
    return SUITE.sort(rules[0] & rules[1])


# Each column of the page's table, and its text for a rule.
COLUMNS: dict[str, Callable[[RuleRerun], str]] = {
    "rule": lambda rule: f"`{rule.name}`",
    "largest difference": lambda rule: number(100 * rule.moved_T[rule.farthest], 2, sign=True),
    "in round": lambda rule: str(rule.farthest),
    "std there": lambda rule: number(100 * rule.std_T[rule.farthest], 2),
    "between seeds": lambda rule: percent(rule.between, 0),
    "in ± 1 std": lambda rule: percent(rule.inside(1), 0),
    "in ± 2 std": lambda rule: percent(rule.inside(2), 0),
    "wins": lambda rule: str(rule.won_T.sum()),
    "different": lambda rule: str(rule.differs_T.sum()),
    "first batch shared": lambda rule: percent(float(rule.shared_S.mean())),
    "same first batch": lambda rule: f"{(rule.shared_S == 1).sum()} of {len(rule.shared_S)}",
    "identical": lambda rule: f"{rule.identical} of {len(rule.shared_S)}",
    "within": lambda rule: "yes" if rule.within else "no",
}


def page(rerun: Rerun) -> str:
    """README.md."""
    one, other = rerun.stored, rerun.again
    rows = ([text(rule) for text in COLUMNS.values()] for rule in rerun.rules)
    lines = [
        f"# {one.name}, run again",
        "",
        *_verdict(rerun),
        "",
        "![Stored and again](again.png)",
        "",
        "Differences are of means over seeds, again − stored, and std is the stored seeds', both in "
        "points. Shares are of rounds. *Wins* are rounds with p < 0.05 corrected over the round's "
        "rules, as between rules; *different*: corrected over all rules and rounds. The first batch is "
        "the first one a rule picked; *identical* runs have the same accuracy in every round.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|---|{'---:|' * (len(COLUMNS) - 2)}---|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        f"- Stored: {_provenance(one)}",
        f"- Again: {_provenance(other)} Made by `{repeat(other).command}`.",
        f"- This page: `python -m askance.paper.rerun {one.path.parent} {other.path.parent}`.",
    ]
    return "\n".join(lines) + "\n"


def _verdict(rerun: Rerun) -> list[str]:
    """What came out, what chance alone would do, and by what it is judged."""
    rules, seeds, rounds = rerun.rules, rerun.stored.spec["seeds"], rerun.stored.expected
    total = len(rules) * rounds
    outside = [f"`{rule.name}`" for rule in rules if not rule.within]
    verdict = (
        f"Outside the seeds' spread: {join_names(outside)}, of {len(rules)} curves."
        if outside
        else f"All {len(rules)} curves are within the seeds' spread."
    )
    differ = sum(int(rule.differs_T.sum()) for rule in rules)
    shares = [[r.between, r.inside(1), r.inside(2)] for r in rules]
    between, one, two = (round(sum(of) * rounds) for of in zip(*shares, strict=True))
    # The mean of S below the least of S others, or above the greatest; Δ/s √(S/2) is Student's t.
    beyond = 2 * stats.norm.expect(lambda x: stats.norm.sf(x) ** seeds, scale=seeds**-0.5)
    far = [2 * stats.t.sf(k * np.sqrt(seeds / 2), seeds - 1) for k in (1, 2)]
    return [
        f"**{verdict}** Of "
        f"{total} means over {seeds} seeds (rules × rounds) {between} lie between the least and the "
        f"greatest of the stored seeds, {one} within one standard deviation (std) of the stored mean, "
        f"{two} within two; {differ} {'differs' if differ == 1 else 'differ'} significantly.",
        "",
        f"Chance alone takes the mean of {seeds} unrelated runs out of the range of {seeds} others "
        f"{percent(beyond, 0)} of the time, out of one std {percent(far[0], 0)}, out of two "
        f"{percent(far[1], 0)} (were accuracies normal), and gives some round a win with a chance "
        f"of up to {percent(1 - (1 - ALPHA) ** rounds, 0)}; runs of one seed share start and initial "
        f"weights, and should do no worse. A curve therefore counts as within the seeds' spread where "
        f"more than half of its rounds lie between the stored seeds, and none differs significantly "
        f"(paired t-test over seeds, Benjamini–Hochberg over all {total} tests, p < {ALPHA:g}), which "
        f"alone would say little, since {seeds} seeds find large differences only.",
    ]


def _provenance(store: StoreFacts) -> str:
    """Where and with what; a store may have several makers."""
    makers = dict.fromkeys(
        f"{', '.join(m['hardware']['gpus']) or m['hardware']['processor']}, "
        f"torch {m['packages']['torch']}, {_training(m)}, askance {m['code']}"
        for m in store.machines
    )
    runs, rate = len(store.progress), store.info["learning_rate"]
    return (
        f"`{store.path.as_posix()}`, {runs} runs, learning rate {rate:g}, "
        f"{store.info['created'][:10]}; {'; '.join(makers)}."
    )


def _training(machine: dict[str, Any]) -> str:
    engine = "one by one" if machine["engine"] == "one" else machine["engine"]
    return f"{engine} in {machine['precision']}"


@style.styled
def draw(rerun: Rerun) -> Figure:
    """Above, both curves; below, their difference, which the eye does not find above."""
    figure = style.new_figure(2.3 * len(rerun.rules) + 0.6, 4.6)
    grid = figure.subplots(2, len(rerun.rules), squeeze=False, sharex=True, sharey="row")
    for (above, below), rule in zip(grid.T, rerun.rules, strict=True):
        look, x = style.rule_style(rule.name), rule.labels_T
        mean, std = rule.stored_ST.mean(axis=0), rule.std_T
        band = {"color": look.colour, "alpha": 0.2, "linewidth": 0}
        above.fill_between(x, mean - std, mean + std, label="stored, ± 1 std", **band)
        above.plot(x, mean + rule.moved_T, **look.line(), label="again")
        below.fill_between(x, -100 * std, 100 * std, **band)
        below.plot(x, 100 * rule.moved_T, **look.line())
        above.legend(loc="lower right")
        above.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        below.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        below.set_xlabel("labels")
        style.panel(above, style.shorten(rule.name))
        style.panel(below)
    grid[0][0].set_ylabel("test accuracy")
    grid[1][0].set_ylabel("again − stored, points")
    return figure


def main(arguments: list[str] | None = None) -> int:
    """Compare two stores; 1 where a curve is outside of the seeds' spread."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("stored", type=Path)
    parser.add_argument("again", type=Path)
    parser.add_argument("--out", type=Path, help="the second store's folder when left out")
    options = parser.parse_args(arguments)
    try:
        rerun = compare(options.stored, options.again)
    except AskanceError as error:
        parser.error(str(error))
    out = options.out or rerun.again.path.parent
    out.mkdir(parents=True, exist_ok=True)
    (out / "README.md").write_text(page(rerun), encoding="utf-8")
    style.save(draw(rerun), out / "again", ["png"])
    sys.stdout.write(page(rerun))
    return 0 if rerun.within else 1


if __name__ == "__main__":
    sys.exit(main())
