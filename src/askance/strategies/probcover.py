"""ProbCover: cover the pool with balls of one radius."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from askance._checks import check_whole
from askance.embedding import Embedding, Evaluation
from askance.errors import InputError
from askance.picking import Picks
from askance.picking.balls import cover, pure_radius
from askance.picking.eligible import Eligible
from askance.picking.kmeans import kmeans, unit_length
from askance.seeding import Draws
from askance.strategies.base import Batch, Labeled, Need, features_of, labeled_features


@dataclass(frozen=True)
class ProbCover(Batch):
    """Each pick is the point with the most uncovered points within δ of it; those are then covered.

    In the features, scaled to unit length; points within δ of the labelled set are covered from the
    start. δ is the largest radius at which a share `purity` of the balls around the points hold
    pseudo-labels of one kind alone: the clusters of k-means, as many as there are classes. The score of
    a pick is how many points it was the first to cover.

    Args:
        radius: δ between 0 and 2; estimated when None.
        purity: the share of pure balls that δ is estimated by.
        classes: how many classes there are; as many as the labelled set has, two at least, when None.

    Reference:
        Yehuda, Dekel, Hacohen & Weinshall, *Active Learning Through a Covering Lens*, 2022,
        Algorithm 1; δ as in its section on estimating it, with a purity of 0.95.

    Deviations: the radius is found exactly, not on a grid, and again in every round. Points that cover
    as many are taken in an order of chance; so are all points once everything is covered.
    """

    radius: float | None = None
    purity: float = 0.95
    classes: int | None = None

    name: ClassVar[str] = "probcover"
    because: ClassVar[str] = "many items near it have no labelled item near them"
    cost: ClassVar[str] = "≤ 3·N²·D"
    needs = frozenset[Need]({"features", "labeled"})
    random = True

    def __post_init__(self) -> None:
        check_whole("classes", self.classes, 2, or_none=True)
        if self.radius is not None and not 0 < self.radius <= 2:
            raise InputError(f"radius must be above 0 and at most 2, got {self.radius!r}")
        if not (0 < self.purity <= 1 and math.isfinite(self.purity)):
            raise InputError(f"purity must be above 0 and at most 1, got {self.purity!r}")

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> tuple[Tensor, int]:
        """(the labelled set's unit features, the number of classes)."""
        assert labeled is not None
        # Of several labels a point, each column is a class.
        several = labeled.labels.ndim == 2
        count = labeled.labels.shape[1] if several else len(labeled.labels.unique())
        return unit_length(labeled_features(self, labeled)), self.classes or max(2, count)

    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        labeled_LD, classes = reference
        units_ND = unit_length(features_of(pool))
        radius = self.radius or self._radius(torch.cat([units_ND, labeled_LD]), classes, draws)
        ties_N = draws.uniform(self.name, pool.positions)
        return cover(units_ND, labeled_LD, radius, n, ties_N, eligible)

    def _radius(self, units_MD: Tensor, classes: int, draws: Draws) -> float:
        clusters = kmeans(units_MD, min(classes, len(units_MD)), self.name, draws)
        # Where all rows are copies there is one cluster, and the radius infinite.
        return min(pure_radius(units_MD, clusters, self.purity), 2.0)
