"""Learning curves as one number: the area under the budget curve, and the labels saved.

Shapes as in `table`. Curves are compared on the rounds that at least two seeds of every method have,
and on the seeds that have all of those. A round of a seed in which a network did not train is left out
for every method of that seed (`untrained`); its curve goes on with the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askance.experiments.statistics.paired import Pairs, pairwise
from askance.experiments.statistics.resample import Interval, interval, mean_interval, resamples
from askance.experiments.statistics.stages import is_enough
from askance.experiments.statistics.table import BASELINE, ExperimentResults, Floats
from askance.experiments.statistics.untrained import flags


@dataclass(frozen=True, eq=False)
class Curves:
    """The part of an experiment whose curves can be compared.

    Args:
        rounds: T rounds, rising.
        labels_MST, accuracy_MST: NaN for a seed that lacks any of the rounds, in all of them; and in
            the rounds of a seed in which a network did not train.
        area_MS: area under the budget curve over the rounds that count; NaN for a seed that lacks any.
        left_out: in words, the rounds and runs that are not in it.
    """

    name: str
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    rounds: tuple[int, ...]
    labels_MST: Floats
    accuracy_MST: Floats
    area_MS: Floats
    left_out: tuple[str, ...]

    def common(self, *methods: str) -> NDArray[np.bool_]:
        """(S,) the seeds all of these have."""
        rows = [self.methods.index(method) for method in methods]
        return np.asarray(np.isfinite(self.area_MS[rows]).all(axis=0))

    def together(self, *methods: str) -> tuple[Floats, Floats]:
        """(labels, accuracies), both (M, S, T): of the seeds all of these have, where all count.

        Rounds in which a network of one of these seeds did not train are left out for all of them, so
        that a mean over seeds is over the same ones in every round.
        """
        rows, seeds = [self.methods.index(method) for method in methods], self.common(*methods)
        labels, accuracy = self.labels_MST[rows][:, seeds], self.accuracy_MST[rows][:, seeds]
        counts_T = np.isfinite(accuracy).all(axis=(0, 1))
        return labels[:, :, counts_T], accuracy[:, :, counts_T]

    @property
    def begun(self) -> bool:
        """Whether any round shows what rules chose; round 0 is of the labels they all start with."""
        return any(self.rounds)

    @property
    def mean_M(self) -> Floats:
        """Mean area of each method over its own seeds; NaN where it has none."""
        return np.array([row[np.isfinite(row)].mean() if np.isfinite(row).any() else np.nan
                         for row in self.area_MS])  # fmt: skip

    def ranking(self) -> list[str]:
        """Methods by mean area, best first; one without a whole curve last."""
        mean = dict(zip(self.methods, self.mean_M, strict=True))
        return sorted(mean, key=lambda m: (np.isnan(mean[m]), -np.nan_to_num(mean[m]), m))


def curves(one: ExperimentResults) -> Curves:
    """The rounds and runs of an experiment that can be compared, and their areas."""
    out_ST = flags(one)
    there_MST = np.isfinite(one.accuracy_MST) | out_ST
    enough = min(2, len(one.seeds))
    many_T = (there_MST.sum(axis=1) >= enough).all(axis=0)
    kept = np.asarray(many_T & ~out_ST.all(axis=0))
    whole_MS = np.asarray(there_MST[:, :, kept].all(axis=2) & kept.any())
    trained_S = np.array([is_enough(n, kept.sum()) for n in (~out_ST[:, kept]).sum(axis=1)], bool)
    counts_MST = (whole_MS & trained_S)[..., None] & ~out_ST[:, kept]
    labels = np.where(counts_MST, one.labels_MST[:, :, kept], np.nan)
    accuracy = np.where(counts_MST, one.accuracy_MST[:, :, kept], np.nan)
    rounds = tuple(r for r, keep in zip(one.rounds, kept, strict=True) if keep)
    left_out = []
    if not many_T.all():
        gone = ", ".join(str(r) for r, many in zip(one.rounds, many_T, strict=True) if not many)
        left_out.append(f"{one.name}: not every method has two seeds in round {gone}")
    for m, s in zip(*np.nonzero(there_MST.any(axis=2) & ~whole_MS), strict=True):
        left_out.append(f"{one.name}: {one.methods[m]}, seed {one.seeds[s]} lacks some rounds")
    if kept.any():
        left_out += [
            f"{one.name}: seed {one.seeds[s]}: in more than half of its rounds a network did not train"
            for s in np.flatnonzero(~trained_S)
        ]
    area = areas(labels, accuracy) if rounds else np.full(whole_MS.shape, np.nan)
    return Curves(one.name, one.methods, one.seeds, rounds, labels, accuracy, area, tuple(left_out))


def areas(labels_T: Floats, accuracy_T: Floats) -> Floats:
    """Area under the budget curve (..., T) → (...): trapezoids over labels, as a mean accuracy.

    Divided by the labels spent, so that it is the accuracy one has on average while spending them; a
    curve of one point, or that never gets a label, is its mean. Rounds that are NaN are passed over.
    """
    there = np.isfinite(accuracy_T)
    if not there.all():
        area = np.full(accuracy_T.shape[:-1], np.nan)
        for at in np.argwhere(there.any(axis=-1)):
            place, kept = tuple(at), there[tuple(at)]
            area[place] = areas(labels_T[place][kept], accuracy_T[place][kept])
        return area
    width = np.diff(labels_T, axis=-1)
    spent = width.sum(axis=-1)
    heights = (accuracy_T[..., 1:] + accuracy_T[..., :-1]) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spent == 0, accuracy_T.mean(axis=-1), (width * heights).sum(-1) / spent)


def compare_areas(one: Curves) -> Pairs:
    """Paired t-tests of the areas for every pair of methods, Benjamini–Hochberg over the pairs."""
    return pairwise(one.area_MS)


@dataclass(frozen=True)
class Difference:
    """A method's area less another's, over the seeds both have.

    Args:
        mean: with its bootstrap interval.
        std: of the paired differences; NaN with one seed.
        p: of the paired t-test.
        adjusted: p after the correction over all pairs of the experiment.
        effect: Hedges' g of the paired differences: mean/std, times 1 − 3/(4(S − 1) − 1); NaN with
            fewer than three seeds.
        better: how many seeds are above zero.
    """

    method: str
    other: str
    mean: Interval
    std: float
    p: float
    adjusted: float
    effect: float
    better: int


def difference(one: Curves, method: str, other: str) -> Difference:
    """How much better a method did than another."""
    both = one.common(method, other)
    i, j = one.methods.index(method), one.methods.index(other)
    values = one.area_MS[i, both] - one.area_MS[j, both]
    pairs = compare_areas(one)
    (at,) = np.flatnonzero((pairs.first == min(i, j)) & (pairs.second == max(i, j)))
    empty = Interval(np.nan, np.nan, np.nan, 0)
    std = float(pairs.std[at])
    return Difference(
        method,
        other,
        mean_interval(values) if len(values) else empty,
        std,
        float(pairs.p[at]),
        float(pairs.adjusted[at]),
        effect_size(float(values.mean()) if len(values) else np.nan, std, len(values)),
        int((values > 0).sum()),
    )


def effect_size(mean: float, std: float, n: int) -> float:
    """Hedges' g of paired differences: Cohen's d_z with the correction for few pairs.

    NaN for fewer than three: 1/std of two differences has no finite mean, so nothing corrects for it
    (the exact factor Γ(m/2)/(√(m/2) Γ((m − 1)/2)), m = n − 1, ends at m = 1, and this one is 0 there).
    """
    if n < 3 or np.isnan(mean):
        return np.nan
    if std == 0:
        return 0.0 if mean == 0 else float(np.copysign(np.inf, mean))
    return mean / std * (1 - 3 / (4 * (n - 1) - 1))


def labels_to(labels_T: Floats, accuracy_T: Floats, goal: Floats) -> Floats:
    """Labels at which a curve (..., T) first is at `goal` (...), between rounds by a straight line.

    Infinite where it never is.
    """
    above = accuracy_T >= goal[..., None]
    reached = above.any(axis=-1)
    k = above.argmax(axis=-1)[..., None]
    before = np.maximum(k - 1, 0)
    x1, x0 = (np.take_along_axis(labels_T, i, -1)[..., 0] for i in (k, before))
    y1, y0 = (np.take_along_axis(accuracy_T, i, -1)[..., 0] for i in (k, before))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(k[..., 0] == 0, 1.0, (goal - y0) / (y1 - y0))
    return np.where(reached, x0 + share * (x1 - x0), np.inf)


def labels_saved(one: Curves, method: str, baseline: str = BASELINE) -> Interval | None:
    """Labels the baseline needs for the accuracy it ends with, less those the method needs for it.

    Both are first crossings of mean curves; the interval resamples seeds, curves of a seed together. An
    end is −∞ where the method never gets there. None without the baseline or a seed in common.
    """
    if baseline not in one.methods or method not in one.methods or len(one.rounds) < 2:
        return None
    labels, accuracy = one.together(baseline, method)
    _, n, rounds = accuracy.shape
    if n == 0 or rounds < 2:
        return None

    def saved(drawn_BS: NDArray[np.int64]) -> Floats:
        x, y = labels[:, drawn_BS].mean(axis=2), accuracy[:, drawn_BS].mean(axis=2)
        goal = y[0, :, -1]
        return labels_to(x[0], y[0], goal) - labels_to(x[1], y[1], goal)

    value = float(saved(np.arange(n)[None])[0])
    return interval(value, saved(resamples(n)), n)
