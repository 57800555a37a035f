"""Methods across experiments: Wilcoxon, mean ranks with a critical difference, performance profiles.

Here an experiment is one observation, whatever its seeds: its score is a method's mean area.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from askance.experiments.statistics.curves import Curves, labels_to
from askance.experiments.statistics.paired import ALPHA, benjamini_hochberg
from askance.experiments.statistics.table import BASELINE, Floats


@dataclass(frozen=True, eq=False)
class Ranks:
    """Mean ranks over the experiments that have every method (Demšar 2006).

    Args:
        methods: M labels, best mean rank first.
        experiments: the E names ranked over.
        score_EM: mean areas, in that order of methods.
        mean_M: mean ranks, 1 the best; equal areas share theirs.
        friedman: p of the Friedman test that all methods are the same; NaN where it needs more.
        critical: Nemenyi's critical difference at α; NaN likewise.
        groups: runs of methods, as positions from and to, within the critical difference.
    """

    methods: tuple[str, ...]
    experiments: tuple[str, ...]
    score_EM: Floats
    mean_M: Floats
    friedman: float
    critical: float
    groups: tuple[tuple[int, int], ...]


def scores(experiments: Sequence[Curves]) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
    """(methods, experiments, mean areas (E, M)) of what every experiment with two methods has.

    One of round 0 alone is left out: its methods are tied before any of them has chosen.
    """
    usable = [one for one in experiments if len(one.methods) > 1 and one.begun]
    if not usable:
        return (), (), np.empty((0, 0))
    methods = _common(usable)
    table = np.array([[one.mean_M[one.methods.index(m)] for m in methods] for one in usable])
    whole = np.isfinite(table).all(axis=1)
    names = tuple(one.name for one, keep in zip(usable, whole, strict=True) if keep)
    return methods, names, table[whole]


def _common(experiments: Sequence[Curves]) -> tuple[str, ...]:
    """The methods that all experiments have, in the order of the first."""
    first = experiments[0].methods if experiments else ()
    return tuple(m for m in first if all(m in one.methods for one in experiments))


def ranks(experiments: Sequence[Curves], alpha: float = ALPHA) -> Ranks:
    """Mean ranks by area, the Friedman test and Nemenyi's critical difference."""
    methods, names, score_EM = scores(experiments)
    count, size = len(names), len(methods)
    if not count or size < 2:
        return Ranks((), (), np.empty((0, 0)), np.empty(0), np.nan, np.nan, ())
    rank_EM = stats.rankdata(-score_EM, axis=1)
    mean = rank_EM.mean(axis=0)
    order = np.argsort(mean, kind="stable")
    friedman = critical = np.nan
    if count > 1 and size > 2 and (rank_EM.std(axis=1) > 0).any():
        friedman = float(stats.friedmanchisquare(*score_EM.T).pvalue)
    if count > 1:
        critical = critical_difference(size, count, alpha)
    return Ranks(
        tuple(methods[i] for i in order),
        names,
        score_EM[:, order],
        mean[order],
        friedman,
        critical,
        _groups(mean[order], critical),
    )


def critical_difference(methods: int, experiments: int, alpha: float = ALPHA) -> float:
    """Nemenyi's: q √(k(k + 1)/(6N)), q the studentised range at infinite degrees of freedom over √2."""
    q = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * experiments)))


@dataclass(frozen=True, eq=False)
class Signed:
    """Wilcoxon signed-rank tests of every pair across experiments, corrected over the pairs.

    Args:
        median: (P,) median of first − second.
        p, adjusted: (P,); NaN where every difference is zero.
    """

    methods: tuple[str, ...]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    median: Floats
    p: Floats
    adjusted: Floats
    experiments: int

    @property
    def least(self) -> float:
        """The smallest p that this many experiments can give."""
        return min(1.0, 2.0 ** (1 - self.experiments))


def wilcoxon(experiments: Sequence[Curves]) -> Signed:
    """Test every pair on the experiments' mean areas; zero differences are left out."""
    methods, names, score_EM = scores(experiments)
    first, second = np.triu_indices(len(methods), k=1)
    differences_EP = score_EM[:, first] - score_EM[:, second]
    median = np.median(differences_EP, axis=0) if names else np.full(len(first), np.nan)
    p = np.array([signed_rank(differences_E) for differences_E in differences_EP.T])
    return Signed(methods, first, second, median, p, benjamini_hochberg(p), len(names))


def signed_rank(differences: Floats) -> float:
    """Two-sided p of the Wilcoxon signed-rank test, exact also with ties; NaN where all are zero.

    Under the null every difference is as likely up as down, so that W⁺ is a sum of ranks, each in or
    out with probability ½. Its distribution is made rank by rank. Equal differences share their mean
    rank, doubled here to be whole; a normal approximation would claim a p of 0.046 from four of them,
    where 2/2⁴ is the least there is.
    """
    some = differences[differences != 0]
    if not len(some):
        return np.nan
    doubled = np.rint(2 * stats.rankdata(np.abs(some))).astype(np.int64)
    share = np.ones(1)
    for rank in doubled:
        share = (np.pad(share, (0, rank)) + np.pad(share, (rank, 0))) / 2
    at = int(doubled[some > 0].sum())
    return float(min(1.0, 2 * min(share[: at + 1].sum(), share[at:].sum())))


@dataclass(frozen=True, eq=False)
class Profile:
    """Performance profiles (Dolan & Moré 2002).

    Args:
        factors_K: K factors τ ≥ 1, rising, where any profile steps.
        share_MK: share of problems in which a method needs at most τ times the labels of the best.
        problems: how many (experiment, seed) there were.
    """

    methods: tuple[str, ...]
    factors_K: Floats
    share_MK: Floats
    problems: int


def profile(experiments: Sequence[Curves], baseline: str = BASELINE) -> Profile:
    """How many labels each method needs for what the baseline ends with, against the best of them.

    A problem is one seed of one experiment; its goal is the mean accuracy the baseline ends with there
    (without the baseline, the least any method ends with). A problem no method solves is left out, and
    so is an experiment of round 0 alone.
    """
    experiments = [one for one in experiments if one.begun]
    methods = _common(experiments)
    rows = []
    for one in experiments:
        labels, accuracy = one.together(*methods)
        if not accuracy.size:
            continue
        ends_M = accuracy[:, :, -1].mean(axis=1)
        goal = ends_M[methods.index(baseline)] if baseline in methods else ends_M.min()
        rows.append(labels_to(labels, accuracy, np.full(labels.shape[:2], goal)).T)
    cost = np.concatenate(rows) if rows else np.empty((0, len(methods)))
    cost = cost[np.isfinite(cost).any(axis=1)]
    if not len(cost):
        return Profile(methods, np.ones(1), np.zeros((len(methods), 1)), 0)
    ratio = cost / cost.min(axis=1, keepdims=True)
    factors = np.unique(np.append(ratio[np.isfinite(ratio)], 1.0))
    share = (ratio[:, :, None] <= factors).mean(axis=0)
    return Profile(methods, factors, share, len(cost))


def _groups(mean_M: Floats, critical: float) -> tuple[tuple[int, int], ...]:
    """Longest runs of two or more methods, in order, whose ends are within the critical difference."""
    if np.isnan(critical):
        return ()
    groups: list[tuple[int, int]] = []
    for start in range(len(mean_M)):
        stop = int(np.flatnonzero(mean_M <= mean_M[start] + critical)[-1])
        if stop > start and (not groups or stop > groups[-1][1]):
            groups.append((start, stop))
    return tuple(groups)
