"""BADGE: diverse, uncertain gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from askance.embedding import Embedding, positions_array
from askance.gradients.last_layer import LOSSES, LossName, check_outputs, pseudo_residuals
from askance.picking import Picks
from askance.picking.dense import dense_kmeanspp
from askance.picking.eligible import Eligible
from askance.picking.kmeanspp import kmeanspp
from askance.picking.points import Points, gradient_points, sq_dists_before_picks
from askance.picking.shard import ShardPicker, kmeanspp_shard
from askance.picking.sharded import Outcome, Shards, sharded_kmeanspp
from askance.seeding import Draws
from askance.strategies.base import NamedLoss, Need, ShardedBatch, features_of, logits_of


@dataclass(frozen=True)
class Badge(NamedLoss, ShardedBatch):
    """k-means++ seeding over pseudo-labelled last-layer gradients g = (p − e_ŷ) ⊗ h.

    The first pick has the largest ‖g‖; each next one is drawn ∝ D², its squared distance to the
    nearest pick. The score of a pick is its D² when it was drawn (‖g‖² for the first).

    Args:
        bias: whether the head's bias takes part.
        loss: "cross-entropy"; "multilabel"; or "squared", for regression: with residuals of one unit
            g is [h; 1], since the model's own answer has none.

    Reference:
        Ash, Zhang, Krishnamurthy, Langford & Agarwal, *Deep Batch Active Learning by Diverse,
        Uncertain Gradient Lower Bounds*, 2020, Algorithm 1.

    Deviations: draws are exact, but made by exponential clocks, one number for each row, so that the
    order of blocks does not matter. Picked points leave the pool. Where only copies of picks are left,
    the clocks alone decide.
    """

    bias: bool = False
    loss: LossName = "cross-entropy"
    losses: ClassVar[tuple[str, ...]] = (*LOSSES, "squared")

    name: ClassVar[str] = "badge"
    because: ClassVar[str] = "the model is unsure of it, and it is unlike the other picks"
    cost: ClassVar[str] = "≤ N·n·(C + D)"
    needs = frozenset[Need]({"logits", "features"})
    random = True

    @property
    def takes_targets(self) -> bool:
        return self.loss == "squared"

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
        check_outputs(logits_of(pool).shape[1], self.loss)
        clocks = draws.exponential(self.name, pool.positions)
        return kmeanspp(self._points(pool), n, clocks, eligible)

    def pick_many(
        self, pools: Sequence[Embedding], n: int, references: Sequence[Any], draws: Sequence[Draws]
    ) -> list[Picks]:
        check_outputs(logits_of(pools[0]).shape[1], self.loss)
        clocks = [
            draw.exponential(self.name, pool.positions)
            for pool, draw in zip(pools, draws, strict=True)
        ]
        on_gpu: list[Picks | None] = [None] * len(pools)
        if features_of(pools[0]).is_cuda:
            residuals = [pseudo_residuals(logits_of(pool).double(), self.loss) for pool in pools]
            features_RND = torch.stack([features_of(pool) for pool in pools])
            on_gpu = dense_kmeanspp(features_RND, torch.stack(residuals), clocks, n, bias=self.bias)
        return [
            picks or kmeanspp(self._points(pool), n, residuals_N)
            for picks, pool, residuals_N in zip(on_gpu, pools, clocks, strict=True)
        ]

    def shard(self, part: Embedding, n: int, reference: Any, draws: Draws) -> ShardPicker:
        check_outputs(logits_of(part).shape[1], self.loss)
        positions = positions_array(part.positions)
        clocks = draws.exponential(self.name, positions)
        return kmeanspp_shard(self._points(part), positions, n, clocks)

    def pick_from_shards(self, shards: Shards, n: int) -> Outcome:
        return sharded_kmeanspp(shards, n)

    def utilities(
        self, pool: Embedding, picks: NDArray[np.int64], reference: Any
    ) -> NDArray[np.float64]:
        """D² of every row: ‖g‖² before the first pick."""
        points = self._points(pool)
        utilities = sq_dists_before_picks(points, picks, np.full(len(points), np.inf))
        # The origin is no centre after that.
        utilities[0] = points.exact(np.arange(len(points))).sq_norms
        return utilities

    def _points(self, pool: Embedding) -> Points:
        return gradient_points(logits_of(pool), features_of(pool), bias=self.bias, loss=self.loss)
