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
from askance.experiments.statistics.resample import FEWEST, Interval
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


def is_enough(d: Difference) -> bool:
    """Whether there are seeds enough for a test and an interval."""
    return d.mean.n >= FEWEST


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
    if not is_enough(main):
        return _too_few(one, main)
    from_random = against(one)
    sentences = [_how_much(one, main)]
    if rival == BASELINE:
        sentences += _saved(one, best)
        sentences += _others(from_random, best)
        second = difference(one, best, order[1])
        if order[1] != BASELINE and second.mean.n > 1:
            sentences.append(_runner_up(second))
    sentences.append(_power(one, main))
    if len(order) > 2:
        sentences.append(
            "The same numbers chose the leader and judge it, so its lead is likely to be too large. "
            "Its interval is not corrected for that."
        )
    return Verdict(_headline(best, rival, main, from_random), _tiles(one, main), sentences)


def _too_few(one: Curves, main: Difference) -> Verdict:
    """What a few seeds say: who is ahead, and nothing of how sure that is."""
    best, rival, seeds = main.method, main.other, plural(main.mean.n, "seed")
    what = "whether active learning helped" if BASELINE in (best, rival) else "which rule is better"
    if main.mean.n:
        lead = f"{best} leads {rival} by {points(main.mean.value)} points"
        if best == BASELINE:
            lead = "no rule did better than random"
        headline = f"Too few seeds to say {what}: with {seeds}, {lead}."
        tiles = [_lead_tile(main, "too few seeds for an interval"), _better_tile(one, main)]
    else:
        headline = f"Too few seeds to say {what}: {best} and {rival} have no seed in common."
        tiles = []
    sentences = [
        f"Over the labels spent ({_budget(one)}), {best} has {percent(_area(one, best))} test accuracy "
        f"on average and {rival} {percent(_area(one, rival))}. The order may be chance.",
        f"Intervals and tests need {FEWEST} seeds or more: run the experiment again with --seeds "
        f"{FEWEST} --extend, which keeps the runs that are there.",
    ]
    return Verdict(headline, tiles, sentences)


def not_begun(experiments: Sequence[Curves]) -> Verdict:
    """What can be said of round 0 alone."""
    names = join_names([one.name for one in experiments])
    headline = "Nothing that a rule chose has been trained on yet, so rules cannot differ."
    if any(one.left_out for one in experiments):  # some runs are further than others
        headline = "Rules cannot differ yet: not all of them were trained on what they chose."
    text = f"In {names} all rules have round 0 alone: the same labels and the same model for each."
    return Verdict(headline, sentences=[text])


def _headline(best: str, rival: str, main: Difference, others: dict[str, Difference]) -> str:
    above = [method for method, d in others.items() if is_win(d)]
    lead = points(main.mean.value)
    if best == BASELINE:
        return "Active learning did not help: no rule did better than random."
    if is_win(main):
        helped = "Active learning helped: " if rival == BASELINE else ""
        return f"{helped}{best} beats {rival} by {lead} points of accuracy."
    if above:
        who = join_names(above)
        verb = "is" if len(above) == 1 else "are"
        return (
            f"Active learning helped: {who} {verb} significantly better than random. {best} leads, but "
            "not significantly."
        )
    if rival == BASELINE:
        return (
            "It is not clear that active learning helped: no rule is significantly better than random. "
            f"{best} leads by {lead} points."
        )
    return f"{best} leads {rival} by {lead} points, which is not significant."


def _tiles(one: Curves, main: Difference) -> list[Tile]:
    tiles = [
        _lead_tile(main, f"95% interval {range_of_points(main.mean)}"),
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
                f"95% interval {_low(saved)} to {number(saved.high)}",
            )
        )
    return [*tiles, _better_tile(one, main)]


def _lead_tile(main: Difference, how_sure: str) -> Tile:
    return Tile(
        f"{points(main.mean.value, sign=True)} points",
        f"{main.method} against {main.other}, mean accuracy over the labels spent",
        how_sure,
    )


def _better_tile(one: Curves, main: Difference) -> Tile:
    return Tile(
        f"{main.better} of {main.mean.n}",
        "seeds in which it was better",
        f"{len(one.methods)} rules, {plural(len(one.rounds), 'round')}",
    )


def _low(saved: Interval) -> str:
    """The lower end of labels saved, in words where some resamples never reach the goal."""
    return "never reaching it" if np.isinf(saved.low) else number(saved.low)


def _how_much(one: Curves, d: Difference) -> str:
    pairs = n_pairs(one.methods)
    more = "more" if d.mean.value >= 0 else "less"
    corrected = f", {p_value(d.adjusted)} after correcting for {pairs} pairs" if pairs > 1 else ""
    effect = f"the effect size is {number(d.effect, 1)} (Hedges' g)"
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
    labels, accuracy = (values[0].mean(axis=0) for values in one.together(BASELINE, best))
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
    ends = f"{_low(saved)} to {number(saved.high)}"
    return [f"{start}{outcome} (labels saved, 95% interval: {ends})."]


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
    varies = (
        f"With {n} seeds: the difference varies by {points(d.std)} points (std) from seed to seed"
    )
    if plain >= 1:  # more than there can be between two accuracies
        return f"{varies}, so much that no true difference is found four times in five."
    text = f"{varies}, so a true difference of {points(plain)} points is found four times in five"
    if pairs > 1:
        strictly = f"one of {points(strict)}" if strict < 1 else "none at all"
        text += f" before any correction, and {strictly} under its strictest step"
    return text + ". Smaller differences may exist and not be found."


def n_pairs(methods: Sequence[str]) -> int:
    """How many pairs of rules are compared."""
    return len(methods) * (len(methods) - 1) // 2


def _area(one: Curves, method: str) -> float:
    return float(one.mean_M[one.methods.index(method)])


def _budget(one: Curves) -> str:
    ends = [np.nanmean(one.labels_MST[:, :, t]) for t in (0, -1)]
    return f"{number(float(ends[0]))} to {number(float(ends[1]))}"
