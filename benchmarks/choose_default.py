"""Which rule is taken where none is named, decided as results/default/CHOOSING.md says.

    python benchmarks/choose_default.py results

It reads the stores in that folder, and writes two files: results/default/README.md, which tells the
decision and what is told beside it, and src/askance/strategies/defaults.json, which the package reads.
Where a run is missing, or two stores are not of the same experiment, it says so and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from default_decision import (
    CANDIDATES,
    COMPARED,
    TRACKS,
    Decision,
    Floats,
    NotReadyError,
    decide,
    gain,
    p_value,
    read,
    read_beside,
)

from askance import data, strategies
from askance.errors import StoreError
from askance.experiments.seeds import seed_ranges
from askance.experiments.statistics.clusters import clustered, holm
from askance.experiments.statistics.paired import ALPHA
from askance.experiments.statistics.resample import Interval
from askance.experiments.statistics.table import BASELINE, ExperimentResults
from askance.experiments.statistics.thirds import NAMES, seed_gains, thirds
from askance.experiments.statistics.untrained import flags
from askance.report.formatting import format_interval, join_names, plural, points
from askance.report.markdown import table

BAR = 0.03  # of a lead in the first third of the budget

HEAD = """# The rule where none is named

<!-- Written by `python benchmarks/choose_default.py results`. -->

How it is chosen was [written down before the runs](CHOOSING.md). This page is what came of it. Gains
are points of test accuracy over `random` on the same seeds, in the mean over the rounds after the
first. Intervals are Student's 95% over the seeds: they say how sure a gain is on these datasets, and
not on others.
"""


def page(decision: Decision, beside: Sequence[ExperimentResults] = ()) -> str:
    """results/default/README.md."""
    parts = [HEAD, _taken(decision), _decision(decision)]
    parts += ["## What holds, and what does not\n", *(f"- {line}" for line in claims(decision))]
    parts.append("\n## By thirds of the budget\n")
    for track in TRACKS:
        parts += [
            f"### Over `random`, {track.title}\n",
            _thirds(decision, track.name, BASELINE),
            "",
        ]
    parts.append("## Against `badge` and `margin`\n")
    for track in TRACKS:
        parts += [f"{track.title.capitalize()}:\n", _against(decision, track.name), ""]
    parts.append("## Each experiment\n")
    parts.append("\\* significant by the tests that decide.\n")
    for track in TRACKS:
        parts += [_by_experiment(decision, track.name), ""]
    parts.append(_beside(beside))
    return "\n".join(parts).rstrip() + "\n"


def _taken(decision: Decision) -> str:
    rows = [
        ["features, logits and labels", f"`{decision.winner}`"],
        ["the same, in a pool that is read in shards", f"`{decision.streaming}`"],
        ["probabilities alone", f"`{decision.of_probabilities}`"],
        ["features and no label", f"`{strategies.FIRST}`"],
    ]
    lines = "\n".join(f"| {what} | {rule} |" for what, rule in rows)
    return f"## What is taken\n\n| where there are | the rule is |\n|---|---|\n{lines}\n"


def _decision(decision: Decision) -> str:
    out = decision.out
    lines = ["## The decision\n"]
    cells = len(CANDIDATES) * sum(map(len, decision.found.values()))
    left = _left_out(decision)
    lines.append(
        f"A rule is out that is significantly below `random` in an experiment: paired t-tests, "
        f"two-sided, with Holm's correction over all {cells} pairs of a rule and an experiment, at 5%. "
        + (f"{join_names([f'`{rule}`' for rule in out])} {'is' if len(out) == 1 else 'are'} out. "
           if out else "None is out. ")
        + "The others are ranked on each track, and the lowest mean rank wins. " + left
    )  # fmt: skip
    lines.append("\n" + _same_start(decision))
    if len(out) == len(CANDIDATES):
        lines.append(
            "\nNo rule is left, so the one with the fewest such experiments is taken, as was said "
            "before the runs."
        )
    rows = []
    for rule in decision.order:
        row = [rule]
        for place, track in enumerate(TRACKS):
            row.append(format_interval(track_interval(decision, track.name, rule), share=True))
            row.append("–" if rule in out else f"{decision.ranks[rule][place]:g}")
        row.append("–" if rule in out else f"{np.mean(decision.ranks[rule]):g}")
        row.append(", ".join(decision.below[rule]))
        rows.append(row)
    head = ["rule"]
    for track in TRACKS:
        seeds = seed_ranges(track.seeds)
        head += [f"{track.title}, {len(track.names)} experiments, seeds {seeds}", "rank"]
    lines += ["", table([*head, "mean rank", "significantly below random in"], rows), ""]
    return "\n".join(lines)


def _left_out(decision: Decision) -> str:
    """Rounds that do not count."""
    counts = [
        f"{int(flags(one).sum())} of {flags(one).size} in {one.name}"
        for many in decision.found.values()
        for one in many
        if flags(one).any()
    ]
    if not counts:
        return "Every network trained."
    return (
        "Rounds in which a network did not train are left out for every rule of the seed: "
        f"{', '.join(counts)}."
    )


def _same_start(decision: Decision) -> str:
    """How far the networks of round 0, which are the same training, came out differently."""
    every = [one for many in decision.found.values() for one in many]
    apart = np.concatenate(
        [
            (each_ST[:, 0] - one.accuracy_MST[one.methods.index(BASELINE), :, 0])
            for one in every
            for each_ST in one.accuracy_MST
        ]
    )
    apart = apart[np.isfinite(apart) & (apart != 0)]
    start = "Round 0 is one training for all rules of a seed"
    if not len(apart):
        return f"{start}, and every rule has the same accuracy there."
    return (
        f"{start}. Where it was done again on another machine, its accuracy is "
        f"{points(float(apart.mean()), sign=True)} points from that of `random`'s in the mean, and "
        f"{points(float(np.abs(apart).max()))} at most."
    )


def track_interval(
    decision: Decision, track: str, rule: str, other: str = BASELINE, stage: int = 0
) -> Interval:
    """The gain on a track with an interval over its seeds, each the mean over the datasets.

    Args:
        stage: see `thirds.NAMES`; where that is all rounds, it is the gain that decides.
    """
    many = decision.found[track]
    by_dataset: dict[str, list[Floats]] = {}
    for one in many:
        each_S = gain(one, rule, other) if stage == 0 else seed_gains(one, rule, other)[stage]
        by_dataset.setdefault(one.dataset, []).append(each_S)
    gains_DS = np.array([np.mean(each, axis=0) for each in by_dataset.values()])
    gains_S = gains_DS[:, np.isfinite(gains_DS).all(axis=0)].mean(axis=0)
    return clustered(gains_S, range(len(gains_S)))


def _thirds(decision: Decision, track: str, other: str) -> str:
    rules = [rule for rule in COMPARED if rule != other]
    rows = {
        rule: [track_interval(decision, track, rule, other, k) for k in range(len(NAMES))]
        for rule in rules
    }
    by_gain = sorted(rules, key=lambda rule: -rows[rule][0].value)
    cells = [
        [rule, *(format_interval(each, share=True) for each in rows[rule])] for rule in by_gain
    ]
    return table(["rule", *NAMES], cells)


def _against(decision: Decision, track: str) -> str:
    """Each rule against two that are well known, over all rounds and in the first third."""
    columns = [(other, stage) for other in ("badge", "margin") for stage in (0, 1)]
    rules = sorted(COMPARED, key=lambda rule: -decision.mean[track].get(rule, 0.0))
    cells = [
        [
            rule,
            *(
                "–"
                if rule == other
                else format_interval(track_interval(decision, track, rule, other, k), share=True)
                for other, k in columns
            ),
        ]
        for rule in rules
    ]
    return table(["rule", *(f"over {other}, {NAMES[k]}" for other, k in columns)], cells)


def _by_experiment(decision: Decision, track: str) -> str:
    many = decision.found[track]
    p = [
        p_value(g[rule]) for t in decision.gains.values() for g in t.values() for rule in CANDIDATES
    ]
    keys = [(n, rule) for t in decision.gains.values() for n in t for rule in CANDIDATES]
    significant = dict(zip(keys, holm(np.array(p), ALPHA), strict=True))
    rows = []
    for rule in decision.order:
        row = [rule]
        for one in many:
            gains_S = decision.gains[track][one.name][rule]
            text = format_interval(_over_seeds(gains_S), share=True)
            row.append(text + (" *" if significant[one.name, rule] else ""))
        rows.append(row)
    return table(["over random", *(one.name for one in many)], rows)


def _over_seeds(gains_S: Floats) -> Interval | None:
    gains_S = gains_S[np.isfinite(gains_S)]
    return clustered(gains_S, range(len(gains_S))) if len(gains_S) else None


def claims(decision: Decision) -> list[str]:
    """What is told beside the decision, a sentence or two each."""
    return [_bar(decision), _behind_badge(decision), _ahead_of_uherding(decision)]


def _bar(decision: Decision) -> str:
    winner, words, holds = decision.winner, [], True
    for other in ("badge", "margin"):
        if other == winner:
            continue
        first, last = (track_interval(decision, "encoder", winner, other, k) for k in (1, 3))
        holds &= first.value >= BAR and last.value >= 0
        words.append(
            f"over `{other}` it gains {format_interval(first, share=True)} in the first third and "
            f"{format_interval(last, share=True)} in the last"
        )
    yes = "is" if holds else "is **not**"
    return (
        f"On the pretrained track `{winner}` {yes} ahead of `badge` and `margin` by three points in "
        f"the first third and not behind in the last: {'; '.join(words)}."
    )


def _behind_badge(decision: Decision) -> str:
    winner = decision.winner
    if winner == "badge":
        return "The rule that is taken is `badge` itself, so nothing is said of being behind it."
    each = {one.name: gain(one, winner, "badge") for one in decision.found["network"]}
    ahead, behind = _significantly(each)
    is_ = "is significantly" if behind else "is nowhere significantly"
    where = f" in {join_names(behind)}" if behind else ""
    more = f", and ahead of it in {join_names(ahead)}" if ahead else ""
    return (
        f"On the small networks `{winner}` {is_} behind `badge`{where}{more} (paired t-tests, Holm's "
        f"correction over {plural(len(each), 'experiment')})."
    )


def _ahead_of_uherding(decision: Decision) -> str:
    winner = decision.winner
    if winner == "uherding":
        return "The rule that is taken is `uherding` itself, which others published."
    each = {
        one.name: gain(one, winner, "uherding") for many in decision.found.values() for one in many
    }
    ahead, behind = _significantly(each)
    count = sum(float(np.nanmean(gains_S)) > 0 for gains_S in each.values())
    is_ = "is significantly" if ahead else "is nowhere significantly"
    where = f" in {join_names(ahead)}" if ahead else ""
    more = f", and behind it in {join_names(behind)}" if behind else ", and nowhere behind it"
    return (
        f"`{winner}` {is_} ahead of `uherding`{where}{more}, by the same tests over "
        f"{plural(len(each), 'experiment')}; its mean is higher in {count} of them."
    )


def _significantly(each: dict[str, Floats]) -> tuple[list[str], list[str]]:
    """The experiments in which differences are significantly above 0, and below."""
    significant = holm(np.array([p_value(gains_S) for gains_S in each.values()]), ALPHA)
    above = {name: float(np.nanmean(gains_S)) > 0 for name, gains_S in each.items()}
    named = [name for name, yes in zip(each, significant, strict=True) if yes]
    return [n for n in named if above[n]], [n for n in named if not above[n]]


def _beside(beside: Sequence[ExperimentResults]) -> str:
    lines = [
        "## Beside\n",
        "What does not decide: rules on the pretrained track with seeds 0–14, and on the datasets that "
        "they were designed with, are in [pretrained](../pretrained/README.md).\n",
    ]
    for one in beside:
        lines.append(f"### {one.name}, seeds {seed_ranges(one.seeds)}\n")
        rows = []
        for rule in one.methods:
            if rule != BASELINE:
                each = [_over_seeds(gains_S) for gains_S in seed_gains(one, rule)]
                rows.append(
                    (
                        each[0].value if each[0] else -1.0,
                        [rule, *(format_interval(e, share=True) for e in each)],
                    )
                )
        rows.sort(key=lambda row: -row[0])
        lines += [table(["over random", *NAMES], [row for _, row in rows]), ""]
    return "\n".join(lines)


def shipped(decision: Decision) -> str:
    """src/askance/strategies/defaults.json."""
    told: dict[str, Any] = {
        "decided": True,
        "order": decision.order,
        "out": decision.out,
        "tracks": [],
        "experiments": [],
    }
    left = [rule for rule in decision.order if rule not in decision.out] or decision.order
    for track in TRACKS:
        mean = decision.mean[track.name]
        intervals = {rule: track_interval(decision, track.name, rule) for rule in CANDIDATES}
        told["tracks"].append(
            {
                "name": track.name,
                "seeds": seed_ranges(track.seeds),
                "datasets": len({one.dataset for one in decision.found[track.name]}),
                "order": sorted(left, key=lambda rule: -mean[rule]),
                "gains": {
                    rule: _rounded([each.value, each.low, each.high])
                    for rule, each in intervals.items()
                },
            }
        )
        for one in decision.found[track.name]:
            classes = data.describe(one.dataset).classes
            told["experiments"].append(
                {
                    "name": one.name,
                    "track": track.name,
                    "dataset": one.dataset,
                    "classes": classes,
                    "per_class": [
                        _rounded([labels / classes for labels in ends]) for ends in _labels(one)
                    ],
                    "gains": {
                        rule: _rounded([float(np.nanmean(g)) for g in seed_gains(one, rule)[1:]])
                        for rule in CANDIDATES
                    },
                }
            )
    return json.dumps(told, indent=1) + "\n"


def _labels(one: ExperimentResults) -> list[tuple[float, float]]:
    """The fewest and the most labels in each third of the rounds."""
    labels_T = np.nanmax(one.labels_MST, axis=(0, 1))
    return [(float(labels_T[part[0]]), float(labels_T[part[-1]])) for part in thirds(one.rounds)]


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    results = parser.parse_args().results
    try:
        decision = decide(read(results))
        text = page(decision, read_beside(results))
    except (NotReadyError, StoreError) as error:
        print(f"Nothing is written, since not everything that decides is there:\n{error}")
        return 1
    package = Path(strategies.__file__).parent
    (results / "default" / "README.md").write_text(text, encoding="utf-8")
    (package / "defaults.json").write_text(shipped(decision), encoding="utf-8")
    print(f"{decision.winner}; of those that stream {decision.streaming}; of probabilities "
          f"{decision.of_probabilities}. Ranking: {', '.join(decision.order)}")  # fmt: skip
    gains = [points(decision.mean[track.name][decision.winner], sign=True) for track in TRACKS]
    print(f"Its gains: {' and '.join(gains)} points on {' and '.join(t.title for t in TRACKS)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
