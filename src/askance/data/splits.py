"""Which rows are for testing, for validation, and for the pool. They depend on no method and no seed.

Every draw is of seed 0 and named for the dataset, so the experiment's seed cannot move a split.
scikit-learn's stratified split refuses a class of one; a pool with such classes (poker hands) is
common in active learning, so the quotas are counted here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askance._checks import check_whole
from askance.errors import DataError, InputError
from askance.seeding import Draws

VALIDATION_SHARE = 10  # one row in ten of the training source
VALIDATION_MOST = 2_500
TEST_SHARE = 5

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SplitIndices:
    """Rows of the training source for the pool and validation; `test` where it is cut from it too.

    `val` is empty where the source has a validation split of its own.
    """

    train: Index
    val: Index
    test: Index | None


@dataclass(frozen=True)
class Imbalance:
    """Makes `rare` classes rare: they keep a share `keep` of their rows, one of each at least."""

    rare: int
    keep: float = 0.1

    def __post_init__(self) -> None:
        check_whole("rare", self.rare, 1)
        if not 0 < self.keep < 1:
            raise InputError(f"keep must be a share between 0 and 1, got {self.keep!r}")

    def in_words(self, classes: int) -> str:
        """What was done to a dataset of so many classes."""
        return (
            f"{self.rare} of the {classes} classes were made rare on purpose: the pool and validation "
            f"keep {self.keep:.0%} of their items, the test all"
        )


def rare_classes(name: str, classes: int, imbalance: Imbalance) -> Index:
    """Which classes of a dataset are the rare ones, in ascending order."""
    if imbalance.rare >= classes:
        raise DataError(
            f"{name}: {imbalance.rare} classes cannot be rare among {classes}; one must be left"
        )
    draws = Draws(0).generator(f"rare classes {name}")
    return np.sort(draws.choice(classes, imbalance.rare, replace=False)).astype(np.int64)


def thinned(name: str, rows: Index, labels_N: Index, rare: Index, keep: float) -> Index:
    """The rows without most of those of rare classes, in the order in which they came.

    A rare class of n rows keeps ⌊keep·n + ½⌋ of them, at least one, drawn uniformly. `name` names the
    draw.
    """
    draws = Draws(0).generator(f"rare rows {name}")
    left = np.ones(len(rows), dtype=bool)
    for label in rare:
        at = np.flatnonzero(labels_N[rows] == label)
        kept = max(int(keep * len(at) + 0.5), 1)
        if len(at):
            left[at] = False
            left[draws.choice(at, kept, replace=False)] = True
    return rows[left]


def split_indices(
    name: str,
    labels_N: Index,
    *,
    cut_test: bool,
    pool: int | None,
    at_least: int = 0,
    cut_val: bool = True,
) -> SplitIndices:
    """The protocol's split of a training source.

    The test share is cut first (one in five, stratified, where the source has no test split), then
    validation (one in ten of what is left, at most 2,500, stratified, where the source has none), then
    the pool is sampled uniformly from the rest. `at_least` of every class go to each stratified share.
    """
    draws = Draws(0)
    rest = np.arange(len(labels_N), dtype=np.int64)
    test = None
    if cut_test:
        rows = stratified(
            labels_N, round(len(rest) / TEST_SHARE), draws.generator(f"test {name}"), at_least
        )
        test, rest = rest[rows], np.delete(rest, rows)
    size = min(len(rest) // VALIDATION_SHARE, VALIDATION_MOST)
    val = rest[:0]
    if cut_val:
        rows = stratified(labels_N[rest], size, draws.generator(f"validation {name}"), at_least)
        val, rest = rest[rows], np.delete(rest, rows)
    if pool is not None and pool < len(rest):
        chosen = draws.generator(f"pool {name}").choice(len(rest), pool, replace=False)
        rest = rest[np.sort(chosen)]
    if (cut_val and len(val) == 0) or len(rest) == 0:
        raise DataError(
            f"{name}: {len(labels_N)} rows are too few for a pool and a validation split"
        )
    return SplitIndices(rest, val, test)


def stratified(
    labels_N: Index, size: int, generator: np.random.Generator, at_least: int = 0
) -> Index:
    """`size` rows with each class's share of the whole, in ascending order.

    A class of n_k in N rows gets ⌊size·n_k/N⌋ rows, and the places left go to the largest remainders,
    the smaller class number first where they are equal. With `at_least`, small classes get that many
    and the total may exceed `size`. No class gives all its rows away.
    """
    classes, counts = np.unique(labels_N, return_counts=True)
    quota = size * counts / max(len(labels_N), 1)
    places = np.floor(quota).astype(np.int64)
    left = size - int(places.sum())
    places[np.argsort(places - quota, kind="stable")[:left]] += 1
    places = np.minimum(np.maximum(places, at_least), counts - 1)
    chosen = [
        generator.choice(np.flatnonzero(labels_N == label), int(count), replace=False)
        for label, count in zip(classes, places, strict=True)
    ]
    return np.sort(np.concatenate(chosen)).astype(np.int64) if chosen else np.empty(0, np.int64)
