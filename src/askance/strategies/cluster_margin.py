"""Cluster-Margin: uncertain points from many clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from askance._checks import check_whole
from askance.embedding import Embedding
from askance.errors import InputError
from askance.picking import Picks
from askance.picking.eligible import Eligible, LimitedRows
from askance.picking.linkage import average_linkage
from askance.picking.points import Floats
from askance.picking.topk import top_k
from askance.seeding import Draws
from askance.strategies.base import Need, Pointwise, TwoStage, features_of
from askance.strategies.margin import Margin

# Their pairs take 400 MB.
_MOST = 10_000


@dataclass(frozen=True)
class ClusterMargin(TwoStage):
    """One point after the other from the clusters of the `candidates`·n smallest margins.

    The candidates are clustered by average linkage on their features. Clusters are gone through from
    the smallest to the largest, again and again; each gives one of its points at random, until there
    are n. The score of a pick is −(p₁ − p₂).

    Args:
        candidates: how many for each pick; 10,000 in all at most.
        clusters: how many clusters; n when None, so that each gives one point.

    Reference:
        Citovsky, DeSalvo, Gentile, Karydas, Rajagopalan, Rostamizadeh & Kumar, *Batch Active Learning
        at Scale*, 2021, Algorithm 1.

    Deviations: the paper clusters the whole pool once, and cuts the tree at a distance that is set by
    hand. Here the candidates alone are clustered, in every round, into a number of clusters.
    """

    candidates: int = 10
    clusters: int | None = None

    name: ClassVar[str] = "cluster-margin"
    because: ClassVar[str] = "the model hesitates between two classes, and it is unlike other picks"
    cost: ClassVar[str] = "N·C + (10n)²·D"
    needs = frozenset[Need]({"logits", "features"})
    random = True
    multilabel = False

    def __post_init__(self) -> None:
        check_whole("candidates", self.candidates, 1)
        check_whole("clusters", self.clusters, 1, or_none=True)

    def shortlisted(self, n: int) -> tuple[Pointwise, int]:
        if n > _MOST:
            raise InputError(
                f"cluster-margin compares all pairs of its candidates, {_MOST:,} at most; n = {n:,} "
                f"is more. Ask in several batches, or use powermargin"
            )
        return Margin(), max(n, min(self.candidates * n, _MOST))

    def finish(
        self,
        shortlist: Embedding,
        sample: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        return self.pick(shortlist, n, reference, draws, eligible)

    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        scorer, listed = self.shortlisted(n)
        scores_N = scorer.score(pool, None, draws).double()
        ties_N = draws.uniform(self.name, pool.positions)
        eligible = eligible or LimitedRows(len(pool), n)
        rows, scores = list[int](), list[float]()
        # Limits may leave fewer than n of the candidates: then the next ones are clustered too.
        while len(rows) < n and eligible.mask.any():
            free = torch.from_numpy(np.flatnonzero(eligible.mask)).to(scores_N.device)
            chosen = free[top_k(scores_N[free], min(len(free), listed))]
            clusters = average_linkage(features_of(pool)[chosen], self.clusters or n)
            order = in_turn(clusters, ties_N[chosen.cpu().numpy()])
            for row in chosen.cpu().numpy()[order].tolist():
                if len(rows) < n and eligible.mask[row]:
                    eligible.take(row)
                    rows.append(row)
                    scores.append(float(scores_N[row]))
        return Picks(np.array(rows, dtype=np.int64), np.array(scores))


def in_turn(cluster_M: NDArray[np.int64], ties_M: Floats) -> NDArray[np.int64]:
    """All rows, one of each cluster at a time, from the smallest cluster to the largest.

    Of a cluster the row of smallest `ties_M` goes first; clusters of one size go by number.
    """
    sizes = np.bincount(cluster_M)
    by_tie = np.lexsort((ties_M, cluster_M))
    starts = np.cumsum(sizes) - sizes
    turn_M = np.empty(len(cluster_M), dtype=np.int64)
    turn_M[by_tie] = np.arange(len(cluster_M)) - starts[cluster_M[by_tie]]
    return np.lexsort((cluster_M, sizes[cluster_M], turn_M))
