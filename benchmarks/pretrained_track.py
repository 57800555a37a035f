"""The pretrained track as a page and a figure: gains by thirds of the budget.

    python benchmarks/pretrained_track.py results/pretrained

It writes README.md and figures/ into that folder, from the stores in it, and from those by which the
default was chosen, which lie beside it in default/pretrained.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from askance.experiments.seeds import seed_ranges
from askance.experiments.statistics.resample import FEWEST, Interval
from askance.experiments.statistics.table import ExperimentResults, Floats, experiments
from askance.experiments.statistics.thirds import NAMES, gains, mean_gains
from askance.figures.style import save
from askance.figures.thirds import gains_by_third
from askance.report.facts import OVERLAP, Facts, read
from askance.report.formatting import format_interval, join_names, percent
from askance.report.markdown import table

SCRIPT = "python benchmarks/pretrained_track.py results/pretrained"
OTHERS = ("random", "margin")
COLD, RARE = "-cold", "-rare"
# Rules that cover the pool have a width that was chosen on these, and on seeds 0 to 4.
DESIGNED = ("banking77", "pets", "trec")
COVERING = ("grad-cover", "grad-cover-shortlist", "maxherding", "uherding")
FIRST_FRESH = 5
# Seeds that nobody had looked at when the default was chosen by them.
FIRST_UNSEEN = 15
IN_VIEW = "‡"
# In the figure: what leads, what is used elsewhere, and the paper's rule.
SHOWN = (
    "grad-cover", "grad-cover-shortlist", "uherding", "maxherding", "typiclust", "margin", "powergrad",
    "badge", "grad",
)  # fmt: skip

# The rules of the means; "entropy" was not run everywhere.
MEANT = ("random", *SHOWN, "powermargin", "kcenter")

HEAD = f"""# Rules on a pretrained encoder's features

<!-- Written by `{SCRIPT}`. -->

The regression `linear` on the features of an encoder that stays as it is. Points of test accuracy
over another rule, mean over the rounds after the first, with Student's 95% interval over the seeds.
Thirds are of the queries, the first one with the fewest labels.

<picture>
<source media="(prefers-color-scheme: dark)" srcset="figures/thirds-dark.svg">
<img src="figures/thirds.svg" alt="What each rule gains over random labelling, by thirds of the budget">
</picture>

- {OVERLAP} The encoder was trained on images that overlap with these, so accuracies flatter it. These
  experiments are in no mean.
- {IN_VIEW} {join_names([f"`{rule}`" for rule in COVERING])}
  were designed with Banking77, Pets and TREC in view, and with seeds 0 to 4. The means leave these
  seeds out, for every rule, and are also shown without these data.

Each store was made by `askance run NAME --lean --out results/pretrained/NAME` with the datasets'
compact copies; `askance report results/pretrained` shows curves, tests and every number by round.
Seeds 15 to 24 are those by which [the default](../default/README.md) was chosen, and lie there. The
last rounds of clinc150-minilm are not run yet.
"""
FIRST = """The first batch is `maxherding`'s: points that cover the pool, of which each seed sees 80%.
All rules of a seed begin with it.
"""
FIRST_BATCH = """### What the first batch is worth

Test accuracy after the first labels: as many random ones, and those of `maxherding`. Mean over the
seeds; the difference with Student's 95% interval. The two share neither labels nor pools, so it is
not paired.
"""
BY_CLASS = """Half of the classes keep a tenth of their items in the pool; the test set stays as it is.
Points over `random`, mean over the rounds after the first: of accuracy, of balanced accuracy (the mean
over classes of the share of right answers) and of macro-F1.
"""
MEASURES = ("accuracy", "balanced_accuracy", "macro_f1")


def kind(name: str) -> str:
    """How an experiment begins and with what classes: "", "-cold" or "-rare"."""
    return next((end for end in (COLD, RARE) if name.endswith(end)), "")


def read_all(folder: Path) -> Facts:
    """What the stores there and those that chose the default say, as far as all runs have come."""
    facts = read([folder, folder.parent / "default" / "pretrained"])
    last: dict[tuple[str, str, int], int] = {}
    for row in facts.rows:
        key = (row.experiment, row.strategy, row.seed)
        last[key] = max(row.round, last.get(key, 0))
    until: dict[str, int] = {}
    for (name, _, _), number in last.items():
        until[name] = min(number, until.get(name, number))
    return replace(facts, rows=[row for row in facts.rows if row.round <= until[row.experiment]])


def in_means(facts: Facts, end: str = "") -> list[ExperimentResults]:
    """The experiments of a kind that are in the means: of the seeds that all rules of the means have,
    those that were not in view."""
    chosen = []
    for one in facts.counted:
        one = one.only(MEANT)
        there_S = np.isfinite(one.accuracy_MST).any(axis=2).all(axis=0)
        seeds = [seed for seed, there in zip(one.seeds, there_S, strict=True) if there]
        fresh = [seed for seed in seeds if seed >= FIRST_FRESH]
        if kind(one.name) == end and fresh:
            chosen.append(one.of_seeds(fresh))
    return chosen


def not_seen(many: Iterable[ExperimentResults]) -> list[ExperimentResults]:
    """Those of data on which no rule was designed, of the seeds that decided where there are some."""
    found = []
    for one in many:
        last = [seed for seed in one.seeds if seed >= FIRST_UNSEEN]
        if one.dataset not in DESIGNED:
            found.append(one.of_seeds(last) if last else one)
    return found


def means(many: Sequence[ExperimentResults], other: str) -> dict[str, Sequence[Interval | None]]:
    """By rule that all of them have, its gains in their mean."""
    shared = set.intersection(*(set(one.methods) for one in many)) - {other}
    return {rule: mean_gains(many, rule, other) for rule in shared}


def render(facts: Facts) -> str:
    """The page."""
    parts = [HEAD]
    counted = in_means(facts)
    unseen = not_seen(counted)
    for other in OTHERS:
        parts.append(f"## Over `{other}`, in the mean over datasets\n")
        parts += _means(counted, other)
        if 1 < len(unseen) < len(counted):
            parts.append(f"### Over `{other}`, of data on which no rule was designed\n")
            parts += _means(unseen, other)
    by_kind = {
        end: [one for one in facts.experiments if kind(one.name) == end] for end in ("", COLD, RARE)
    }
    if by_kind[COLD]:
        parts.append(f"## From no label at all\n\n{FIRST}")
        cold = in_means(facts, COLD)
        if len(cold) > 1:
            for other in OTHERS:
                parts.append(f"### From no label, over `{other}`, in the mean over datasets\n")
                parts += _means(cold, other)
        parts += [FIRST_BATCH, _first_batches(facts, by_kind[COLD]) + "\n"]
    if by_kind[RARE]:
        parts.append(f"## Rare classes\n\n{BY_CLASS}")
        for one in by_kind[RARE]:
            parts += _of_rare(facts, one)
    parts.append("## By experiment\n")
    for one in [*by_kind[""], *by_kind[COLD]]:
        parts += _of_one(facts, one)
    return "\n".join(parts)


def _means(many: Sequence[ExperimentResults], other: str) -> Iterator[str]:
    of_seeds: dict[str, list[str]] = {}
    for one in many:
        of_seeds.setdefault(seed_ranges(one.seeds), []).append(one.name)
    names = "; ".join(f"{join_names(each)}, seeds {seeds}" for seeds, each in of_seeds.items())
    datasets = len({one.dataset for one in many})
    interval = f" The interval is over {datasets} datasets." if datasets >= FEWEST else ""
    yield f"{names}.{interval}\n"
    yield _table(means(many, other), f"over {other}", COVERING) + "\n"


def _of_one(facts: Facts, one: ExperimentResults) -> Iterator[str]:
    yield f"### {facts.marked(one.name)}\n"
    yield _budget(one) + "\n"
    marked = COVERING if one.dataset in DESIGNED else ()
    for other in OTHERS:
        rules = [rule for rule in one.methods if rule != other]
        yield (
            _table({rule: gains(one, rule, other) for rule in rules}, f"over {other}", marked)
            + "\n"
        )


def _of_rare(facts: Facts, one: ExperimentResults) -> Iterator[str]:
    yield f"### {facts.marked(one.name)}\n"
    yield _budget(one) + "\n"
    rows = [row for row in facts.trained_rows if row.experiment == one.name]
    measured = [
        experiments([replace(row, accuracy=getattr(row, measure)) for row in rows])[0]
        for measure in MEASURES
    ]
    marked = COVERING if one.dataset in DESIGNED else ()
    by_rule = {
        rule: [gains(each, rule)[0] for each in measured]
        for rule in one.methods
        if rule != "random"
    }
    ends = ["balanced accuracy" if name == MEASURES[1] else "macro-F1" for name in MEASURES[1:]]
    yield _table(by_rule, "over random", marked, ("accuracy", *ends)) + "\n"


def _budget(one: ExperimentResults) -> str:
    """How many labels and seeds, and what `random` has of them."""
    row = one.index("random")
    random = float(np.nanmean(one.accuracy_MST[row, :, 1:]))
    first, last = (f"{one.labels_MST[row, 0, place]:,.0f}" for place in (0, -1))
    return (
        f"{first} to {last} labels, seeds {seed_ranges(one.seeds)}. `random`: {percent(random)} in the "
        f"mean."
    )


def _first_batches(facts: Facts, cold: Iterable[ExperimentResults]) -> str:
    warm = {one.name: one for one in facts.experiments}
    rows = []
    for one in cold:
        if one.name.removesuffix(COLD) not in warm:
            continue
        covering, random = (
            each.accuracy_MST[each.index("random"), :, 0]
            for each in (one, warm[one.name.removesuffix(COLD)])
        )
        rows.append(
            [
                facts.marked(one.name.removesuffix(COLD)),
                f"{one.labels_MST[0, 0, 0]:,.0f}",
                percent(float(random.mean())),
                percent(float(covering.mean())),
                format_interval(_apart(covering, random), share=True),
            ]
        )
    return table(["experiment", "labels", "random", "maxherding", "difference"], rows)


def _apart(a_S: Floats, b_S: Floats) -> Interval:
    """The difference of two means with Welch's interval."""
    test = stats.ttest_ind(a_S, b_S, equal_var=False)
    low, high = test.confidence_interval(0.95)
    return Interval(
        float(a_S.mean() - b_S.mean()), float(low), float(high), min(len(a_S), len(b_S))
    )


def _table(
    rows: dict[str, Sequence[Interval | None]],
    title: str,
    marked: Sequence[str] = (),
    names: Sequence[str] = NAMES,
) -> str:
    cells = sorted(rows.items(), key=lambda row: -row[1][0].value if row[1][0] else 0.0)
    lines = [
        [
            f"{rule} {IN_VIEW}" if rule in marked else rule,
            *(format_interval(gain, share=True) for gain in each),
        ]
        for rule, each in cells
    ]
    return table([title, *names], lines)


def draw(facts: Facts, folder: Path) -> list[Path]:
    """The figure, for a light page and for a dark one; returns the files.

    Of data on which no rule was designed and of seeds that decided, where there are some.
    """
    counted = in_means(facts)
    many = not_seen(counted) or counted
    every = means(many, "random")
    shown = {rule: every[rule] for rule in SHOWN if rule in every}
    title = f"Pretrained features, mean of {len(many)} datasets"
    return [
        file
        for dark, name in ((False, "thirds"), (True, "thirds-dark"))
        for file in save(gains_by_third(shown, title, dark=dark), folder / name)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    facts = read_all(folder)
    (folder / "README.md").write_text(render(facts), encoding="utf-8")
    draw(facts, folder / "figures")


if __name__ == "__main__":
    main()
