"""q, μ_Δ, L_Δ and ρ of the paper's Proposition A.1, along a path of weights θ_1 … θ_T.

With r_t = ‖∇Δ(θ_t)‖/‖θ_t − θ*‖ and s_t = ‖θ_{t+1} − θ*‖/‖θ_t − θ*‖, the smallest constants that
satisfy S1 and S2 for the points of the path from t₀ on are

    q = max_{t₀ ≤ t < T} s_t,     μ_Δ = min_{t₀ ≤ t ≤ T} r_t,     L_Δ = max_{t₀ ≤ t ≤ T} r_t,     ρ
    = L_Δ q/μ_Δ.

The neighbourhood U of the proposition holds more points than the path does, so its μ_Δ can only be
smaller and its L_Δ larger: where ρ ≥ 1 on the path, the proposition does not apply from t₀ on,
whatever U is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askance.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ContractionRate:
    """The constants of Proposition A.1 from t₀ on.

    Args:
        first: t₀, from 1.
        q: the slowest approach to θ* in one step. S1 asks for q < 1.
        mu: μ_Δ, the smallest discrepancy for the distance.
        smoothness: L_Δ, the largest.
        observed: the largest ‖∇Δ(θ_{t+1})‖/‖∇Δ(θ_t)‖, which ρ bounds.
    """

    first: int
    q: float
    mu: float
    smoothness: float
    observed: float

    @property
    def rho(self) -> float:
        """ρ = L_Δ q/μ_Δ; the discrepancy contracts where it is below 1."""
        return self.smoothness * self.q / self.mu

    @property
    def holds(self) -> bool:
        """Whether both conditions hold on the path: q < 1 and ρ < 1."""
        return self.q < 1 and self.rho < 1


def rates(
    distances: Sequence[float] | Floats, discrepancies: Sequence[float] | Floats
) -> list[ContractionRate]:
    """The constants for every t₀ from 1 to T − 1.

    Args:
        distances: (T,) ‖θ_t − θ*‖.
        discrepancies: (T,) ‖∇Δ(θ_t)‖ = ‖DF(S, S_J, t)‖.
    """
    far_T, df_T = (np.asarray(one, dtype=np.float64) for one in (distances, discrepancies))
    if far_T.ndim != 1 or far_T.shape != df_T.shape or len(far_T) < 2:
        raise InputError(
            "expected as many distances as discrepancies, at least two of each; got shapes "
            f"{far_T.shape} and {df_T.shape}"
        )
    if not (np.all(far_T > 0) and np.all(df_T > 0)):
        raise InputError(
            "distances and discrepancies must be above 0: let the path end before it is at θ*"
        )
    ratio_T = df_T / far_T
    last = slice(None, None, -1)
    q, observed = (np.maximum.accumulate((x[1:] / x[:-1])[last])[last] for x in (far_T, df_T))
    mu = np.minimum.accumulate(ratio_T[last])[last]
    smoothness = np.maximum.accumulate(ratio_T[last])[last]
    return [
        ContractionRate(t + 1, float(q[t]), float(mu[t]), float(smoothness[t]), float(observed[t]))
        for t in range(len(far_T) - 1)
    ]
