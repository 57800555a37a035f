"""Gradient discrepancy, spread by angle: discrepant *and* diverse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from askance._checks import check_whole
from askance.embedding import Embedding
from askance.errors import InputError
from askance.gradients.last_layer import pseudo_residuals
from askance.picking import Picks
from askance.picking.points import Floats
from askance.picking.spread import angles_before_picks, farthest_by_angle
from askance.picking.topk import top_k
from askance.seeding import Draws
from askance.strategies.base import Batch, Pointwise, features_of, logits_of
from askance.strategies.grad import Grad, UsesGrad


@dataclass(frozen=True)
class GradSpread(UsesGrad, Batch):
    """Farthest-first by 1 − cos between last-layer gradients, among the `shortlist`·n largest s(x).

    The first pick is the largest s(x); each next one is the shortlisted point whose gradient makes
    the widest angle with its nearest picked one. Its score is that 1 − cos (2, the widest there is,
    for the first).

    Args:
        shortlist: how many candidates for each pick.
        grad: the score that shortlists, with its options; over the last layer.

    Reference:
        Khosravani & Zilles, *Gradient-Discrepancy Acquisition*, §5 (named there as future work).

    Deviations: the paper fixes no algorithm; shortlist and farthest-first are ours. A point whose
    gradient is zero has no direction and comes last.
    """

    shortlist: int = 5
    grad: Grad = field(default_factory=Grad)

    name: ClassVar[str] = "grad-spread"
    cost: ClassVar[str] = "as `grad`, + ≤ 5n²·(C + D)"

    def __post_init__(self) -> None:
        check_whole("shortlist", self.shortlist, 1)
        if self.grad.parameters != "last" or callable(self.grad.loss):
            raise InputError(
                "grad-spread measures angles between last-layer gradients of a named "
                "loss; use Grad(parameters='last')"
            )

    def shortlisted(self, n: int) -> tuple[Pointwise, int]:
        return self.grad, self.shortlist * n

    def pick(self, pool: Embedding, n: int, reference: Any, draws: Draws) -> Picks:
        scores_N = self.grad.score(pool, reference, draws)
        rows = top_k(scores_N, min(len(pool), self.shortlist * n))
        picks = farthest_by_angle(*self._factors(pool, rows), n, self.grad.bias)
        return Picks(rows.cpu().numpy()[picks.rows], picks.scores)

    def utilities(
        self, pool: Embedding, picks: NDArray[np.int64], reference: Any
    ) -> NDArray[np.float64]:
        """s(x) of every row before the first pick, then 1 − cos of what is on the shortlist."""
        scores_N = self.grad.score(pool, reference, Draws())
        rows = top_k(scores_N, min(len(pool), self.shortlist * len(picks)))
        listed = rows.cpu().numpy()
        place = {row: position for position, row in enumerate(listed.tolist())}
        within = np.array([place[pick] for pick in picks.tolist()])
        utilities = np.full((len(picks), len(pool)), np.nan)
        utilities[:, listed] = angles_before_picks(
            *self._factors(pool, rows), within, self.grad.bias
        )
        utilities[0] = scores_N.double().cpu().numpy()
        return utilities

    def _factors(self, pool: Embedding, rows: Tensor) -> tuple[Floats, Floats]:
        """(a, h) of some rows in float64."""
        loss = self.grad.loss
        assert not callable(loss)
        a_MC = pseudo_residuals(logits_of(pool)[rows].double(), loss)
        return a_MC.cpu().numpy(), features_of(pool)[rows].double().cpu().numpy()
