"""k-center greedy: cover the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding, Evaluation, positions_array
from askance.picking import Picks
from askance.picking.dense import dense_kcenter
from askance.picking.eligible import Eligible
from askance.picking.kcenter import kcenter
from askance.picking.points import feature_points, portions, sq_dists_before_picks
from askance.picking.shard import ShardPicker, kcenter_shard
from askance.picking.sharded import Outcome, Shards, sharded_kcenter
from askance.seeding import Draws
from askance.strategies.base import Labeled, Need, ShardedBatch, features_of, labeled_features


@dataclass(frozen=True)
class KCenter(ShardedBatch):
    """Farthest first: each pick is the point farthest from everything labelled or already picked.

    Euclidean in the head's inputs, started from the labelled set. The score of a pick is its distance
    to the nearest centre when it was picked.

    Reference:
        Sener & Savarese, *Active Learning for Convolutional Neural Networks: A Core-Set Approach*,
        2018, Algorithm 1.

    Deviations: the greedy algorithm alone, without the mixed-integer refinement, as in the paper
    askance follows. Ties go to the lowest index.
    """

    name: ClassVar[str] = "kcenter"
    because: ClassVar[str] = "it is unlike everything that is labelled or picked"
    cost: ClassVar[str] = "≤ N·(n + L)·D"
    needs = frozenset[Need]({"features", "labeled"})
    takes_targets = True

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Tensor:
        assert labeled is not None
        return labeled_features(self, labeled)

    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        if eligible is None:
            return self.pick_many([pool], n, [reference], [draws])[0]
        return kcenter(feature_points(features_of(pool)), reference, n, eligible)

    def pick_many(
        self, pools: Sequence[Embedding], n: int, references: Sequence[Any], draws: Sequence[Draws]
    ) -> list[Picks]:
        features = [features_of(pool) for pool in pools]
        on_gpu: list[Picks | None] = [None] * len(pools)
        if features[0].is_cuda:
            on_gpu = dense_kcenter(torch.stack(features), references, n)
        return [
            picks or kcenter(feature_points(features_ND), labeled_LD, n)
            for picks, features_ND, labeled_LD in zip(on_gpu, features, references, strict=True)
        ]

    def shard(self, part: Embedding, n: int, reference: Any, draws: Draws) -> ShardPicker:
        points = feature_points(features_of(part))
        return kcenter_shard(points, positions_array(part.positions), n, reference)

    def pick_from_shards(self, shards: Shards, n: int) -> Outcome:
        return sharded_kcenter(shards, n)

    def utilities(
        self, pool: Embedding, picks: NDArray[np.int64], reference: Any
    ) -> NDArray[np.float64]:
        """The distance of every row to the nearest centre."""
        points, labeled = feature_points(features_of(pool)), feature_points(reference)
        every = points.exact(np.arange(len(points)))
        start = np.full(len(points), np.inf)
        for rows in portions(np.arange(len(labeled)), len(points)):
            np.minimum(start, every.sq_dists(labeled.exact(rows)).min(axis=1), out=start)
        return np.sqrt(sq_dists_before_picks(points, picks, start))
