"""The generalization bound that inspired the score (the paper's eq. 6), and its simplified form.

With probability at least 1 − δ over S of n points and S_J of m among them,

    R(W_T, D) ≤ η C_η R(W_T, S_I) + (C_η ln(1/δ) + 3)/(n − m) + C_η ln(dT)/(n − m) · Σ_t (γ_t²/ε_t²)
    ‖DF_t‖²

for the weights W_T after T steps of floored gradient descent (`FlooredSGD`), I the indices outside J.
Luo, Luo & Li (2022, Theorem 5.2) prove it with C_η = 1/(1 − e^{−η}), Catoni's constant. In their
theorem C_η stands before the 3 as well; as the paper prints it, the bound is lower by 3 (C_η −
1)/(n − m).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from askance.errors import InputError

Floats = NDArray[np.float64]
Sizes = float | Sequence[float] | Floats
"""A number for every step, or one a step."""


@dataclass(frozen=True)
class Bound:
    """The three terms of the bound.

    Args:
        empirical: η C_η R(W_T, S_I).
        confidence: what δ and the number of points outside S_J cost.
        discrepancy: what the steps cost that S_J does not foresee.
    """

    empirical: float
    confidence: float
    discrepancy: float

    @property
    def total(self) -> float:
        """The bound of R(W_T, D); it says something where it is below 1."""
        return self.empirical + self.confidence + self.discrepancy


def catoni_constant(eta: float) -> float:
    """C_η = 1/(1 − e^{−η}), for η > 0 (Luo, Luo & Li 2022, Lemma 3.2)."""
    if not (eta > 0 and math.isfinite(eta)):
        raise InputError(f"eta must be a number above 0, got {eta!r}")
    return -1 / math.expm1(-eta)


def bound(
    risk: float,
    norms: Sequence[float] | Floats,
    *,
    gamma: Sizes,
    epsilon: Sizes,
    n: int,
    m: int,
    d: int,
    delta: float = 0.1,
    eta: float = 1.0,
    c_eta: float | None = None,
    first: int | None = None,
    source: Literal["paper", "luo"] = "paper",
) -> Bound:
    """The bound of the population risk after T steps, term by term.

    Args:
        risk: R(W_T, S_I), the share of errors on the points outside S_J.
        norms: (T,) ‖DF(S, S_J, t)‖ over all d parameters, of the weights that step t starts from.
        gamma: γ_t, the step sizes: one number, or (T,).
        epsilon: ε_t, the precisions: one number, or (T,).
        n: points of S.
        m: points of S_J.
        d: parameters.
        delta: the bound holds with probability 1 − δ. Luo, Luo & Li take 0.1.
        eta: η. They take 1 and 3.
        c_eta: C_η; `catoni_constant(eta)` if None.
        first: t₀ from 1, for the simplified form: κ ‖DF(t₀)‖² with κ = (T − t₀ + 1) max_{t ≥ t₀}
            γ_t²/ε_t² in
            the place of the sum. It bounds the sum where ‖DF‖ never rises from t₀ on *and* t₀ = 1;
            else the steps before t₀ are missing from it, in the paper too.
        source: "paper" has (C_η ln(1/δ) + 3)/(n − m), "luo" C_η (ln(1/δ) + 3)/(n − m), as it was
            proved.
    """
    constant = catoni_constant(eta) if c_eta is None else c_eta
    norms_T, ratios_T = _steps(norms, gamma, epsilon)
    _check(risk, n, m, d * len(norms_T), delta, constant)
    log = math.log(1 / delta)
    if source not in ("paper", "luo"):
        raise InputError(f'source must be "paper" or "luo", got {source!r}')
    confidence = constant * log + 3 if source == "paper" else constant * (log + 3)
    steps = (
        cumulative_sum(norms_T, ratios_T)
        if first is None
        else simplified_sum(norms_T, ratios_T, first)
    )
    return Bound(
        empirical=eta * constant * risk,
        confidence=confidence / (n - m),
        discrepancy=constant * math.log(d * len(norms_T)) / (n - m) * steps,
    )


def cumulative_sum(norms_T: Floats, ratios_T: Floats) -> float:
    """Σ_t (γ_t/ε_t)² ‖DF_t‖², `ratios_T` being γ_t/ε_t."""
    return float(((ratios_T * norms_T) ** 2).sum())


def simplified_sum(norms_T: Floats, ratios_T: Floats, first: int) -> float:
    """κ ‖DF(t₀)‖² with κ = (T − t₀ + 1) max_{t ≥ t₀} (γ_t/ε_t)², `first` being t₀ from 1."""
    if not 1 <= first <= len(norms_T):
        raise InputError(f"first must be a step from 1 to {len(norms_T)}, got {first!r}")
    kappa = (len(norms_T) - first + 1) * float((ratios_T[first - 1 :] ** 2).max())
    return float(kappa * norms_T[first - 1] ** 2)


def _steps(norms: Sequence[float] | Floats, gamma: Sizes, epsilon: Sizes) -> tuple[Floats, Floats]:
    """‖DF_t‖ and γ_t/ε_t of every step."""
    norms_T = np.asarray(norms, dtype=np.float64)
    if norms_T.ndim != 1 or len(norms_T) == 0 or not np.all((norms_T >= 0) & np.isfinite(norms_T)):
        raise InputError(
            f"norms must be one number of at least 0 for each step, got shape {norms_T.shape} "
            f"with {int((~(norms_T >= 0)).sum())} below 0 or not a number"
        )
    sizes = []
    for name, given in (("gamma", gamma), ("epsilon", epsilon)):
        size_T = np.asarray(given, dtype=np.float64)
        if size_T.shape not in ((), norms_T.shape) or not np.all(
            (size_T > 0) & np.isfinite(size_T)
        ):
            raise InputError(
                f"{name} must be above 0: one number, or one for each of {len(norms_T)} steps; "
                f"got {given!r}"
            )
        sizes.append(np.broadcast_to(size_T, norms_T.shape))
    return norms_T, sizes[0] / sizes[1]


def _check(risk: float, n: int, m: int, cells: int, delta: float, constant: float) -> None:
    if not 0 <= risk <= 1:
        raise InputError(f"risk must be a share of errors, from 0 to 1, got {risk!r}")
    if not 0 <= m < n:
        raise InputError(f"S_J must have fewer points than S, got m = {m!r} of n = {n!r}")
    if not 0 < delta < 1:
        raise InputError(f"delta must be between 0 and 1, got {delta!r}")
    if not (constant > 0 and math.isfinite(constant)):
        raise InputError(f"c_eta must be a number above 0, got {constant!r}")
    if cells <= 3:
        raise InputError(f"the proof needs d · T above 3, got {cells}")
