"""Gradient discrepancy, spread by angle: discrepant *and* diverse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance._checks import check_whole
from askance.embedding import Embedding
from askance.errors import InputError
from askance.gradients.last_layer import pseudo_residuals
from askance.picking import Picks
from askance.picking.eligible import Eligible
from askance.picking.points import Floats
from askance.picking.spread import angles_before_picks, farthest_by_angle
from askance.picking.topk import top_k
from askance.seeding import Draws
from askance.strategies.base import Batch, features_of, logits_of
from askance.strategies.grad import Grad, UsesGrad

# 1 − cos of two gradients that point the same way but for rounding.
_SAME = 1e-9


@dataclass(frozen=True)
class GradSpread(UsesGrad, Batch):
    """Farthest-first by 1 − cos between last-layer gradients, among the `shortlist`·n largest s(x).

    The first pick is the largest s(x); each next one is the shortlisted point whose gradient makes
    the widest angle with its nearest picked one. Its score is that 1 − cos (2, the widest there is,
    for the first). Where copies fill the shortlist, or limits rule out too much of it, it is doubled
    until n picks differ in direction or it is the whole pool.

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
    because: ClassVar[str] = "it pulls the model another way than labelled items and other picks do"
    cost: ClassVar[str] = "as `grad`, + ≤ 5n²·(C + D)"

    def __post_init__(self) -> None:
        check_whole("shortlist", self.shortlist, 1)
        if self.grad.parameters != "last" or callable(self.grad.loss):
            raise InputError(
                "grad-spread measures angles between last-layer gradients of a named "
                "loss; use Grad(parameters='last')"
            )

    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        scores_N = self.grad.score(pool, reference, draws)
        rows, picks = self._spread(pool, scores_N, n, eligible)
        picks = Picks(rows.cpu().numpy()[picks.rows], picks.scores)
        if eligible is not None:
            for row in picks.rows.tolist():
                eligible.take(row)
        return picks

    def utilities(
        self, pool: Embedding, picks: NDArray[np.int64], reference: Any
    ) -> NDArray[np.float64]:
        """s(x) of every row before the first pick, then 1 − cos of what is on the shortlist."""
        scores_N = self.grad.score(pool, reference, Draws())
        rows, _ = self._spread(pool, scores_N, len(picks))
        listed = rows.cpu().numpy()
        place = {row: position for position, row in enumerate(listed.tolist())}
        within = np.array([place[pick] for pick in picks.tolist()])
        utilities = np.full((len(picks), len(pool)), np.nan)
        utilities[:, listed] = angles_before_picks(
            *self._factors(pool, rows), within, self.grad.bias
        )
        utilities[0] = scores_N.double().cpu().numpy()
        return utilities

    def _spread(
        self, pool: Embedding, scores_N: Tensor, n: int, eligible: Eligible | None = None
    ) -> tuple[Tensor, Picks]:
        """(the shortlist, the picks among it); the shortlist doubles while picks repeat each other.

        Under limits also while there are fewer than n; none of the picks is taken yet.
        """
        free = torch.arange(len(pool), device=scores_N.device)
        if eligible is not None:
            free = free[torch.from_numpy(eligible.mask).to(free.device)]
        listed = min(len(free), self.shortlist * n)
        while True:
            rows = free[top_k(scores_N[free], listed)]
            among = None if eligible is None else eligible.fork().among(rows.cpu().numpy())
            picks = farthest_by_angle(*self._factors(pool, rows), n, self.grad.bias, among)
            # Angles only get narrower from pick to pick, so the last one tells.
            enough = len(picks.rows) == n and picks.scores[-1] > _SAME
            if listed == len(free) or enough:
                return rows, picks
            listed = min(len(free), 2 * listed)

    def _factors(self, pool: Embedding, rows: Tensor) -> tuple[Floats, Floats]:
        """(a, h) of some rows in float64."""
        loss = self.grad.loss
        assert not callable(loss)
        a_MC = pseudo_residuals(logits_of(pool)[rows].double(), loss)
        return a_MC.cpu().numpy(), features_of(pool)[rows].double().cpu().numpy()
