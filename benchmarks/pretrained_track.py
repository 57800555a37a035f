"""The pretrained track as a page: gains over `random` and over `margin`, by thirds of the budget.

    python benchmarks/pretrained_track.py results/pretrained

It writes README.md into that folder, from the stores in it and from nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from askance.experiments.seeds import seed_ranges
from askance.experiments.statistics.resample import FEWEST, Interval
from askance.experiments.statistics.thirds import NAMES, gains, mean_gains
from askance.report.facts import Facts, read
from askance.report.formatting import format_interval, percent
from askance.report.markdown import table

SCRIPT = "python benchmarks/pretrained_track.py results/pretrained"
HEAD = f"""# Rules on a pretrained encoder's features

<!-- Written by `{SCRIPT}`. -->

The regression `linear` on the features of an encoder that stays as it is. Points of test accuracy
over another rule, mean over the rounds after the first, with Student's 95% interval over the seeds.
Thirds are of the queries.

Each store was made by `askance run NAME --lean --out results/pretrained/NAME` with the datasets'
compact copies; `askance report results/pretrained` shows curves, tests and every number by round.
"""
OVERLAP = (
    "† The encoder was trained on images that overlap with these, so accuracies flatter it; these "
    "experiments are not in the means."
)


def render(facts: Facts) -> str:
    """The page."""
    parts = [HEAD]
    counted = facts.counted
    for other in ("random", "margin"):
        if len(counted) > 1:
            names = ", ".join(one.name for one in counted)
            datasets = len({one.dataset for one in counted})
            interval = f" The interval is over {datasets} datasets." if datasets >= FEWEST else ""
            parts.append(f"## Over `{other}`, in the mean over experiments\n")
            parts.append(f"{names}.{interval}\n")
            shared = set.intersection(*(set(one.methods) for one in counted)) - {other}
            rows = {rule: mean_gains(counted, rule, other) for rule in shared}
            parts.append(_table(rows) + "\n")
    parts.append("## By experiment\n")
    if facts.overlapping:
        parts.append(OVERLAP + "\n")
    for one, curve in zip(facts.experiments, facts.curves, strict=True):
        random = percent(float(curve.mean_M[curve.methods.index("random")]))
        labels = one.labels_MST[0, 0]
        first, last = (f"{labels[place]:,.0f}" for place in (0, -1))
        parts.append(f"### {facts.marked(one.name)}\n")
        seeds = seed_ranges(one.seeds)
        parts.append(f"{first} to {last} labels, seeds {seeds}. `random`: {random} in the mean.\n")
        for other in ("random", "margin"):
            rules = [rule for rule in one.methods if rule != other]
            parts.append(
                _table({rule: gains(one, rule, other) for rule in rules}, f"over {other}") + "\n"
            )
    return "\n".join(parts)


def _table(rows: dict[str, Sequence[Interval | None]], title: str = "rule") -> str:
    cells = sorted(rows.items(), key=lambda row: -row[1][0].value if row[1][0] else 0.0)
    lines = [[rule, *(format_interval(gain, share=True) for gain in each)] for rule, each in cells]
    return table([title, *NAMES], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    (folder / "README.md").write_text(render(read(folder)), encoding="utf-8")


if __name__ == "__main__":
    main()
