"""What rules that cover the pool have in common: evaluation rows, the width, the greedy picks."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance._checks import check_whole
from askance.embedding import Embedding
from askance.errors import InputError
from askance.picking import Picks
from askance.picking.audience import (
    LEAST_SQ_WIDTH,
    Audience,
    median,
    sq_dists_between,
    sq_dists_to_nearest,
    unit_rows,
)
from askance.picking.coverage import cover, gains_before_picks
from askance.picking.eligible import Eligible
from askance.seeding import Draws
from askance.strategies.base import Batch, Strategy, features_of, sampled_rows


class CoversPool(Strategy):
    """A rule with fields `bandwidth` and `sample`, whose picks are to cover a sample of the pool.

    With h at unit length, k(x, e) = exp(−‖h_x − h_e‖²/σ²), and the evaluation rows e: `sample` rows of
    the pool that may be picked, drawn uniformly (`sampled_rows`), or all of them where there are fewer.
    """

    bandwidth: float
    sample: int

    def __post_init__(self) -> None:
        check_whole("sample", self.sample, 1)
        number = isinstance(self.bandwidth, (int, float)) and not isinstance(self.bandwidth, bool)
        if not (number and 0 < self.bandwidth < math.inf):
            raise InputError(f"bandwidth must be a finite number > 0, got {self.bandwidth!r}")

    @property
    def random(self) -> bool:
        return True

    @property
    def draws_above(self) -> int:
        return self.sample

    @abstractmethod
    def weigh(self, rows: Embedding, reference: Any) -> Tensor:
        """w(e) ≥ 0 of some evaluation rows, (M,)."""

    @abstractmethod
    def covered_by(self, reference: Any) -> Tensor | None:
        """(L, D) features of the labelled set, where there is one."""

    def audience(self, rows: Embedding, reference: Any) -> Audience:
        """The evaluation rows as they are to be covered.

        σ² is `bandwidth` times a median squared distance: of the evaluation rows to their nearest
        labelled row, or without labels of all pairs of them. It has four digits, so that no machine's
        last digit decides a pick.
        """
        unit_MD = unit_rows(features_of(rows))
        labeled_LD = self.covered_by(reference)
        if labeled_LD is None:
            covered_M = unit_MD.new_zeros(len(rows))
            sq_width = self._sq_width(sq_dists_between(unit_MD))
        else:
            nearest_M = sq_dists_to_nearest(unit_MD, labeled_LD)
            sq_width = self._sq_width(nearest_M.clone())
            covered_M = nearest_M.div_(-sq_width).exp_()
        weights_M = self.weigh(rows, reference).double().to(unit_MD.device)
        return Audience(unit_MD, weights_M, covered_M, sq_width)

    def _sq_width(self, sq_dists: Tensor) -> float:
        """σ² from squared distances, which may be put in another order."""
        return max(LEAST_SQ_WIDTH, float(f"{self.bandwidth * median(sq_dists):.4g}"))


class Covering(CoversPool, Batch):
    """Greedy coverage with every row of the pool a candidate."""

    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        rows = sampled_rows(pool, self.sample, draws)
        return cover(features_of(pool), self.audience(pool[rows], reference), n, eligible)

    def utilities(
        self, pool: Embedding, picks: NDArray[np.int64], reference: Any
    ) -> NDArray[np.float64]:
        """Every row's gain in coverage before each pick."""
        if len(pool) > self.sample:
            raise InputError(
                f"{self.name} draws its {self.sample} evaluation rows by the seed, so what every row "
                f"was worth can be said of at most as many rows; raise sample to {len(pool)}"
            )
        return gains_before_picks(features_of(pool), self.audience(pool, reference), picks)


def equal_weights(rows: Embedding) -> Tensor:
    """w(e) = 1 for each of some rows."""
    return torch.ones(len(rows), dtype=torch.float64, device=rows.device)
