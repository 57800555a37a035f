"""TypiClust: the most typical point of each cluster that has no label yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance._checks import check_whole
from askance.embedding import Embedding, Evaluation
from askance.picking import Picks
from askance.picking.eligible import Eligible, LimitedRows
from askance.picking.kmeans import kmeans, unit_length
from askance.picking.typical import mean_neighbour_dists
from askance.seeding import Draws
from askance.strategies.base import Batch, Labeled, Need, features_of, labeled_features

# Clusters of this many rows or fewer are asked about last.
_SMALL = 5


@dataclass(frozen=True)
class TypiClust(Batch):
    """The most typical point of each of the n largest clusters without a label.

    The pool and the labelled set, L points, are clustered by k-means into min(L + n, `clusters`)
    clusters of their features, scaled to unit length. Clusters are taken in order of how many labels
    they have, fewest first, then of their size, largest first, again from the start where there are
    fewer than n. Of a cluster the pick is the point that is nearest to its neighbours there:
    typicality(x) = (1/k Σ_{y ∈ kNN(x)} ‖x − y‖)⁻¹ (eq. 4). The score of a pick is minus that mean
    distance.

    Args:
        clusters: the most clusters there may be.
        neighbours: k; half of a cluster's points where that is fewer.

    Reference:
        Hacohen, Dekel & Weinshall, *Active Learning on a Budget: Opposite Strategies Suit High and Low
        Budgets*, 2022, TPC_RP, Algorithm 1.

    Deviations: k-means on all rows, also with more than 50 clusters, where the authors' code takes
    mini-batches. Clusters of five points or fewer, which that code leaves out, come last, so that n
    points are found in any pool. Neighbours are found exactly.
    """

    clusters: int = 500
    neighbours: int = 20

    name: ClassVar[str] = "typiclust"
    because: ClassVar[str] = "it is typical of a group of items without a label"
    cost: ClassVar[str] = "≤ 100·N·min(L + n, 500)·D"
    needs = frozenset[Need]({"features"})
    takes_targets = True
    optional = frozenset[Need]({"labeled"})
    random = True

    def __post_init__(self) -> None:
        check_whole("clusters", self.clusters, 1)
        check_whole("neighbours", self.neighbours, 1)

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Tensor | None:
        return None if labeled is None else labeled_features(self, labeled)

    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        units_ND = unit_length(features_of(pool))
        both_MD = units_ND
        if reference is not None:
            both_MD = torch.cat([units_ND, unit_length(reference)])
        labeled = len(both_MD) - len(units_ND)
        k = min(labeled + n, self.clusters, len(both_MD))
        cluster_M = kmeans(both_MD, k, self.name, draws)
        return most_typical(units_ND, cluster_M, n, self.neighbours, eligible)


def most_typical(
    units_ND: Tensor,
    cluster_M: NDArray[np.int64],
    n: int,
    neighbours: int,
    eligible: Eligible | None = None,
) -> Picks:
    """n rows, one of a cluster at a time; the rows of `cluster_M` from N on are labelled.

    Under limits the most typical eligible row, and no row of a cluster that has none.
    """
    count = len(units_ND)
    eligible = eligible or LimitedRows(count, n)
    sizes = np.bincount(cluster_M)
    labels = np.bincount(cluster_M[count:], minlength=len(sizes))
    order = np.lexsort((-sizes, labels)).tolist()
    free = [np.flatnonzero(cluster_M[:count] == cluster) for cluster in range(len(sizes))]
    rows: list[int] = []
    scores: list[float] = []
    while len(rows) < n:
        left = [cluster for cluster in order if eligible.mask[free[cluster]].any()]
        if not left:
            break
        large = [cluster for cluster in left if sizes[cluster] > _SMALL]
        for cluster in (large or left)[: n - len(rows)]:
            members = free[cluster]
            may_be_picked = eligible.mask[members]
            if not may_be_picked.any():  # since the last pick
                continue
            half = max(1, len(members) // 2)
            dists = mean_neighbour_dists(units_ND[members], min(neighbours, half))
            best = int(np.where(may_be_picked, dists, np.inf).argmin())
            eligible.take(int(members[best]))
            rows.append(int(members[best]))
            scores.append(-float(dists[best]))
            free[cluster] = np.delete(members, best)
    return Picks(np.array(rows, dtype=np.int64), np.array(scores))
