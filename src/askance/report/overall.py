"""The verdict over several experiments, each of which is one observation; and of one by its seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from askance.experiments.statistics.curves import Curves, Difference, difference
from askance.experiments.statistics.paired import ALPHA
from askance.experiments.statistics.power import detectable
from askance.experiments.statistics.ranks import Ranks, Signed, ranks, wilcoxon
from askance.experiments.statistics.resample import FEWEST
from askance.experiments.statistics.table import BASELINE
from askance.report.elements import Tile
from askance.report.formatting import join_names, number, p_equals, p_value, plural, points
from askance.report.verdict import Verdict, is_enough, is_loss, is_win, not_begun, of_one


def verdict(experiments: Sequence[Curves]) -> Verdict:
    """Of one experiment by its seeds; of several by the experiments."""
    return of_one(experiments[0]) if len(experiments) == 1 else of_several(experiments)


def of_several(experiments: Sequence[Curves]) -> Verdict:
    """The verdict over several experiments, which are paired by experiment."""
    begun = [one for one in experiments if one.begun]
    early = [one for one in experiments if one.rounds and not one.begun]
    ranking, signed = ranks(begun), wilcoxon(begun)
    if early and not begun:
        return not_begun(early)
    if early and len(begun) == 1:
        return Verdict(
            "One experiment alone has gone beyond round 0: there is nothing to sum up.",
            sentences=["It is judged by itself below."],
        )
    if len(ranking.experiments) < 2:
        return Verdict(
            "The experiments have too few rules in common to be summed up.",
            sentences=["Each is judged by itself below."],
        )
    best, count = ranking.methods[0], len(ranking.experiments)
    rival = BASELINE if BASELINE in ranking.methods and best != BASELINE else ranking.methods[1]
    median, p, adjusted = _signed(signed, best, rival)
    both = [difference(one, best, rival) for one in begun if one.name in ranking.experiments]
    within = [d for d in both if is_enough(d)]
    won, lost = sum(map(is_win, within)), sum(map(is_loss, within))
    significant = bool(adjusted < ALPHA and median > 0)
    tiles = [
        Tile(number(ranking.mean_M[0], 2), f"mean rank of {best}, of {len(ranking.methods)} rules",
             f"over {count} experiments"),
        Tile(f"{points(median, sign=True)} points", f"{best} against {rival}, median experiment",
             f"Wilcoxon, corrected: {p_equals(adjusted)}" if np.isfinite(adjusted) else ""),
    ]  # fmt: skip
    if within:
        tiles.append(
            Tile(f"{won} of {len(within)}", f"experiments in which {best} beats {rival}",
                 f"by the seeds, corrected; loses {lost}")
        )  # fmt: skip
    return Verdict(
        _headline_of_several(ranking, rival, median, significant),
        tiles,
        [
            *_left_out(early),
            _across(ranking, signed, rival, median, p, adjusted),
            *_told_apart(ranking),
            *_within(within, best, rival, len(both)),
            "The same numbers chose the leader and judge it, so its lead is likely to be too large.",
        ],
    )


def _within(within: Sequence[Difference], best: str, rival: str, count: int) -> list[str]:
    """What the seeds of single experiments say, where there are enough of them."""
    few = count - len(within)
    sentences = []
    if within:
        won, lost = sum(map(is_win, within)), sum(map(is_loss, within))
        sentences = [
            f"Within single experiments, by paired t-tests over seeds, {best} is significantly "
            f"better than {rival} in {won} of {len(within)} and worse in {lost}.",
            _power_of_several(within),
        ]
    if few:
        sentences.append(
            f"{plural(few, 'experiment')} of {count} {'has' if few == 1 else 'have'} too few seeds for "
            f"a test of {'its' if few == 1 else 'their'} own: {FEWEST} are needed."
        )
    return sentences


def _left_out(early: Sequence[Curves]) -> list[str]:
    if not early:
        return []
    names = join_names([one.name for one in early])
    return [f"Left out: {names}, of which all rules have round 0 alone and so cannot differ."]


def _headline_of_several(ranking: Ranks, rival: str, median: float, significant: bool) -> str:
    best, count = ranking.methods[0], len(ranking.experiments)
    if best == BASELINE:
        return (
            f"Active learning did not help: over {count} experiments no rule ranks better than "
            "random."
        )
    if significant:
        helped = "Active learning helped: " if rival == BASELINE else ""
        return (
            f"{helped}{best} ranks first over {count} experiments and beats {rival}, by "
            f"{points(median)} points in the median one."
        )
    unclear = "It is not clear that active learning helped: " if rival == BASELINE else ""
    return f"{unclear}{best} ranks first over {count} experiments, but not significantly above {rival}."


def _across(
    ranking: Ranks, signed: Signed, rival: str, median: float, p: float, adjusted: float
) -> str:
    best = ranking.methods[0]
    text = (
        f"{best} has a mean rank of {number(ranking.mean_M[0], 2)} by area under the budget curve; its "
        f"median difference from {rival} is {points(median, sign=True)} points"
    )
    if np.isnan(p):
        return text + "."
    pairs = len(signed.p)
    text += f" (Wilcoxon signed-rank over experiments: {p_equals(p)}"
    text += f", {p_value(adjusted)} after correcting for {pairs} pairs)." if pairs > 1 else ")."
    if signed.least >= ALPHA:
        text += (
            f" {signed.experiments} experiments cannot give a p below {p_value(signed.least)}, so no "
            "claim across experiments is possible."
        )
    return text


def _told_apart(ranking: Ranks) -> list[str]:
    sentences = []
    if np.isfinite(ranking.friedman):
        sentences.append(
            f"The Friedman test that all rules are the same gives {p_equals(ranking.friedman)}."
        )
    if np.isfinite(ranking.critical):
        close = [
            m
            for m, rank in zip(ranking.methods[1:], ranking.mean_M[1:], strict=True)
            if rank <= ranking.mean_M[0] + ranking.critical
        ]
        text = f"The critical difference of mean ranks is {number(ranking.critical, 2)}"
        text += (
            f": {ranking.methods[0]} is not told apart from {join_names(close)}." if close else "."
        )
        sentences.append(text)
    return sentences


def _power_of_several(within: Sequence[Difference]) -> str:
    # No two accuracies differ by more than 100 points.
    least = [min(detectable(d.std, d.mean.n), 1.0) for d in within]
    seeds = sorted({d.mean.n for d in within})
    return (
        f"With {join_names([str(n) for n in seeds])} seeds a test within an experiment finds, four "
        f"times in five and before any correction, a true difference of {points(min(least))} to "
        f"{points(max(least))} points, {points(float(np.median(least)))} in the median experiment. "
        "Smaller differences may exist and not be found."
    )


def _signed(signed: Signed, method: str, other: str) -> tuple[float, float, float]:
    """Median difference of the first from the second, p, and adjusted p."""
    i, j = signed.methods.index(method), signed.methods.index(other)
    (at,) = np.flatnonzero((signed.first == min(i, j)) & (signed.second == max(i, j)))
    sign = 1 if i < j else -1
    return sign * float(signed.median[at]), float(signed.p[at]), float(signed.adjusted[at])
