"""Which rule, by how much, and how sure, in one experiment: no more than the tests say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from askance.experiments.statistics.curves import (
    Curves,
    Difference,
    difference,
    labels_saved,
    labels_to,
)
from askance.experiments.statistics.paired import ALPHA
from askance.experiments.statistics.power import detectable
from askance.experiments.statistics.resample import COVERAGE
from askance.experiments.statistics.table import BASELINE
from askance.report.elements import Tile
from askance.report.formatting import (
    join_names,
    number,
    p_equals,
    p_value,
    percent,
    plural,
    points,
    range_of_points,
)


@dataclass(frozen=True)
class Verdict:
    """The headline, the numbers to see first, and the sentences that say how sure."""

    headline: str
    tiles: Sequence[Tile] = ()
    sentences: Sequence[str] = ()


def against(one: Curves, other: str = BASELINE) -> dict[str, Difference]:
    """Every other method's difference from one; none where it did not run or shares no seed.

    None at all before anything is chosen: a difference of zero would be no finding.
    """
    if other not in one.methods or not one.begun:
        return {}
    differences = {m: difference(one, m, other) for m in one.methods if m != other}
    return {m: d for m, d in differences.items() if d.mean.n}


def is_win(d: Difference) -> bool:
    """Whether the first method is significantly better than the second."""
    return bool(d.adjusted < ALPHA and d.mean.value > 0)


def is_loss(d: Difference) -> bool:
    """Whether the first method is significantly worse than the second."""
    return bool(d.adjusted < ALPHA and d.mean.value < 0)


def of_one(one: Curves) -> Verdict:
    """The verdict over one experiment, by its seeds."""
    order = [m for m in one.ranking() if np.isfinite(one.mean_M[one.methods.index(m)])]
    if len(order) < 2:
        ran = f"{order[0]} alone has" if order else "No rule has"
        return Verdict(f"{ran} whole curves in {one.name}: there is nothing to compare.")
    if not one.begun:
        return not_begun([one])
    best = order[0]
    rival = BASELINE if BASELINE in order and best != BASELINE else order[1]
    main = difference(one, best, rival)
    if main.mean.n < 2:
        text = (
            f"{best} has the highest mean accuracy, {percent(_area(one, best))}. With "
            f"{plural(main.mean.n, 'seed')} in common no test is possible; the order may be chance."
        )
        return Verdict(f"{best} came first, but nothing is certain.", sentences=[text])
    from_random = against(one)
    sentences = [_how_much(one, main)]
    if rival == BASELINE:
        sentences += _saved(one, best)
        sentences += _others(from_random, best)
        second = difference(one, best, order[1])
        if order[1] != BASELINE and second.mean.n > 1:
            sentences.append(_runner_up(second))
    sentences.append(_power(one, main))
    if main.mean.n in COVERAGE:
        sentences.append(
            f"{main.mean.n} seeds are few: such a bootstrap interval holds the truth only about "
            f"{percent(COVERAGE[main.mean.n], 0)} of the time, not 95%."
        )
    if len(order) > 2:
        sentences.append(
            "The same numbers chose the leader and judge it, so its lead is likely to be too large. "
            "Its interval is not corrected for that."
        )
    return Verdict(_headline(best, rival, main, from_random), _tiles(one, main), sentences)


def not_begun(experiments: Sequence[Curves]) -> Verdict:
    """What can be said of round 0 alone."""
    names = join_names([one.name for one in experiments])
    headline = "Nothing that a rule chose has been trained on yet, so rules cannot differ."
    if any(one.left_out for one in experiments):  # some runs are further than others
        headline = "Rules cannot differ yet: not all of them were trained on what they chose."
    text = (
        f"In {names} all rules have round 0 alone: the same labels and the same network for each."
    )
    return Verdict(headline, sentences=[text])


def _headline(best: str, rival: str, main: Difference, others: dict[str, Difference]) -> str:
    above = [method for method, d in others.items() if is_win(d)]
    lead = points(main.mean.value)
    if best == BASELINE:
        return "No rule did better than random."
    if is_win(main):
        return f"{best} beats {rival} by {lead} points of accuracy."
    if above:
        who = join_names(above)
        verb = "is" if len(above) == 1 else "are"
        return f"{best} leads, but only {who} {verb} significantly better than random."
    if rival == BASELINE:
        return f"No rule is significantly better than random; {best} leads by {lead} points."
    return f"{best} leads {rival} by {lead} points, which is not significant."


def _tiles(one: Curves, main: Difference) -> list[Tile]:
    tiles = [
        Tile(
            f"{points(main.mean.value, sign=True)} points",
            f"{main.method} against {main.other}, mean accuracy over the labels spent",
            f"95% interval {range_of_points(main.mean)}",
        ),
        Tile(
            p_value(main.adjusted),
            "p, corrected for all pairs of rules",
            f"{p_value(main.p)} before; significant below {ALPHA:g}",
        ),
    ]
    saved = labels_saved(one, main.method) if main.other == BASELINE else None
    if saved is not None:
        tiles.append(
            Tile(
                number(saved.value, sign=True) if np.isfinite(saved.value) else "none",
                "fewer labels to match random's final accuracy",
                f"95% interval {number(saved.low)} to {number(saved.high)}",
            )
        )
    tiles.append(
        Tile(
            f"{main.better} of {main.mean.n}",
            "seeds in which it was better",
            f"{len(one.methods)} rules, {plural(len(one.rounds), 'round')}",
        )
    )
    return tiles


def _how_much(one: Curves, d: Difference) -> str:
    pairs = n_pairs(one.methods)
    more = "more" if d.mean.value >= 0 else "less"
    corrected = f", {p_value(d.adjusted)} after correcting for {pairs} pairs" if pairs > 1 else ""
    effect = f"the effect size is {number(d.effect, 1)} (Hedges' g)"
    if np.isnan(d.effect):
        effect = f"of {plural(d.mean.n, 'seed')} there is no effect size"
    return (
        f"Over the labels spent ({_budget(one)}), {d.method} has {percent(_area(one, d.method))} test "
        f"accuracy on average and {d.other} {percent(_area(one, d.other))}: "
        f"{points(abs(d.mean.value))} points {more}, 95% interval {range_of_points(d.mean)} "
        f"(bootstrap, n = {d.mean.n} seeds), better with {d.better} of {d.mean.n}. The paired t-test "
        f"gives {p_equals(d.p)}{corrected}; {effect}."
    )


def _saved(one: Curves, best: str) -> list[str]:
    saved = labels_saved(one, best)
    if saved is None:
        return []
    row = one.methods.index(BASELINE)
    both = one.common(best, BASELINE)
    labels, accuracy = (a[row, both].mean(axis=0) for a in (one.labels_MST, one.accuracy_MST))
    needs = float(labels_to(labels[None], accuracy[None], accuracy[-1:])[0])
    end = percent(float(accuracy[-1]))
    start = (
        f"Random labelling first reaches its final accuracy, {end}, with "
        f"{plural(round(needs), 'label')}; "
    )
    if not np.isfinite(saved.value):
        return [start + f"{best} never reaches it."]
    if saved.value >= 0:
        outcome = f"{best} needs {number(saved.value)} fewer"
    else:
        outcome = f"{best} needs {number(-saved.value)} more"
    low = "never" if np.isinf(saved.low) else number(saved.low)
    return [f"{start}{outcome} (labels saved, 95% interval: {low} to {number(saved.high)})."]


def _others(from_random: dict[str, Difference], best: str) -> list[str]:
    def listed(names: list[str]) -> str:
        return join_names(
            [
                f"{m} ({points(from_random[m].mean.value, sign=True)} points, "
                f"{p_equals(from_random[m].adjusted)})"
                for m in names
            ]
        )

    above = [m for m, d in from_random.items() if is_win(d) and m != best]
    below = [m for m, d in from_random.items() if is_loss(d)]
    sentences = []
    if above:
        also = "also " if is_win(from_random[best]) else ""
        sentences.append(
            f"After the correction, {also}significantly better than random: {listed(above)}."
        )
    if below:
        sentences.append(f"Significantly worse than random: {listed(below)}.")
    return sentences


def _runner_up(d: Difference) -> str:
    end = "a significant lead" if is_win(d) else "the two cannot be told apart"
    return (
        f"The runner-up, {d.other}, is {points(d.mean.value)} points behind (95% interval "
        f"{range_of_points(d.mean)}, corrected {p_equals(d.adjusted)}): {end}."
    )


def _power(one: Curves, d: Difference) -> str:
    pairs, n = n_pairs(one.methods), d.mean.n
    plain, strict = detectable(d.std, n), detectable(d.std, n, ALPHA / pairs)
    text = (
        f"With {n} seeds: the difference varies by {points(d.std)} points (std) from "
        f"seed to seed, so a true difference of {points(plain)} points is found four times in five"
    )
    if pairs > 1:
        text += f" before any correction, and one of {points(strict)} under its strictest step"
    return text + ". Smaller differences may exist and not be found."


def n_pairs(methods: Sequence[str]) -> int:
    """How many pairs of rules are compared."""
    return len(methods) * (len(methods) - 1) // 2


def _area(one: Curves, method: str) -> float:
    return float(one.mean_M[one.methods.index(method)])


def _budget(one: Curves) -> str:
    ends = [np.nanmean(one.labels_MST[:, :, t]) for t in (0, -1)]
    return f"{number(float(ends[0]))} to {number(float(ends[1]))}"
