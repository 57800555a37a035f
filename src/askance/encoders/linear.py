"""`linear`: multinomial logistic regression on frozen features, solved to its one minimum.

Over W (C, D) and b (C,), of L labelled points with standardised features x:

    Σ_i −log softmax(W x_i + b)_{y_i}  +  ‖W‖² / (2·strength)

The features are standardised by the whole pool, which needs no labels, so a model of few labels knows
their scale. Where L < D the minimum lies in the span of the labelled points, so W is sought there: C·L
numbers instead of C·D.

Shapes: N pool points, L labelled, C classes, D features, R ≤ min(L, D) the rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp
from torch import Tensor, nn

from askance.errors import InputError, LabelError, NonFiniteError

Floats = NDArray[np.float64]

# The logit of a class that has no label yet: its probability is below 1e-12, so it is never guessed and
# adds nothing to a gradient.
NO_LABEL = -30.0
# Standardised features have ‖x‖² ≈ D, so that strength·D is the scale of the logits' prior variance.
PRIOR_VARIANCE = 32.0
# The strengths that cross-validation tries, as factors of the fixed one.
FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_FOLDS = 3
_UNSEEN_FOLDS = 5
# The prior standard deviation of the logarithm of a temperature below 1.
_SURER = 0.2
# The largest entry of the gradient at the end, of the fit and of those that choose the strength.
_TOLERANCE, _ROUGH = 1e-5, 1e-2
_STEPS = 1000


ONE_CLASS = (
    "all labelled items are of one class, so the model's answer is the same for every item and the "
    "picks are no better than the pool's order; label an item of another class"
)


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Shift and scale of each feature, from a pool.

    Args:
        mean: (D,).
        scale: (D,), the standard deviation; 1 where a feature is constant.

    Example:
        >>> import numpy as np
        >>> Standardiser.of(np.array([[0.0, 5.0], [2.0, 5.0]]))(np.array([[3.0, 5.0]])).tolist()
        [[2.0, 0.0]]
    """

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, pool_ND: NDArray[np.floating]) -> Standardiser:
        """That of (N, D) features."""
        mean = pool_ND.mean(axis=0, dtype=np.float64)
        return cls.of_moments(mean, pool_ND.std(axis=0, dtype=np.float64))

    @classmethod
    def of_moments(cls, mean_D: Floats, deviation_D: Floats) -> Standardiser:
        """That of features with these means and standard deviations."""
        # A constant feature's deviation is rounding error alone.
        constant = deviation_D <= 1e-6 * np.abs(mean_D)
        return cls(mean_D, np.where(constant | (deviation_D == 0), 1.0, deviation_D))

    def __call__(self, features_ND: NDArray[np.floating]) -> Floats:
        return (features_ND - self.mean) / self.scale


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A fitted model.

    Args:
        weight: (C, D), of standardised features.
        bias: (C,).
        strength: the inverse of the penalty's weight.
        temperature: what logits are divided by for the probabilities that people see; 1 where too few
            labels tell. Rules see the logits as they are.
        cross_validated: whether `strength` and `temperature` come from held-out folds.
    """

    weight: Floats
    bias: Floats
    strength: float
    temperature: float = 1.0
    cross_validated: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether every item gets the same answer, as where all labels are of one class."""
        return not self.weight.any()

    def logits(self, features_ND: NDArray[np.floating]) -> Floats:
        """(N, C) of standardised features."""
        return features_ND @ self.weight.T + self.bias

    def probabilities(self, features_ND: NDArray[np.floating]) -> Floats:
        """(N, C), calibrated."""
        return np.exp(log_softmax(self.logits(features_ND) / self.temperature, axis=1))

    def module(self, standardiser: Standardiser) -> LinearModel:
        """The model as a network, from features as they come."""
        return LinearModel(self, standardiser)


class LinearModel(nn.Module):
    """Features as they come → standardised → logits. Its last layer is the regression itself."""

    mean: Tensor
    scale: Tensor

    def __init__(self, fit: LinearFit, standardiser: Standardiser) -> None:
        super().__init__()
        classes, features = fit.weight.shape
        self.register_buffer("mean", torch.as_tensor(standardiser.mean, dtype=torch.float32))
        self.register_buffer("scale", torch.as_tensor(standardiser.scale, dtype=torch.float32))
        self.head = nn.Linear(features, classes, dtype=torch.float32)
        with torch.no_grad():
            self.head.weight.copy_(torch.as_tensor(fit.weight))
            self.head.bias.copy_(torch.as_tensor(fit.bias))

    @classmethod
    def untrained(cls, features: int, classes: int) -> LinearModel:
        """One of zeros, for weights that are loaded into it."""
        zeros = LinearFit(np.zeros((classes, features)), np.zeros(classes), strength=1.0)
        return cls(zeros, Standardiser(np.zeros(features), np.ones(features)))

    def forward(self, features_BD: Tensor) -> Tensor:
        logits: Tensor = self.head((features_BD - self.mean) / self.scale)
        return logits


def fit_linear(
    features_LD: NDArray[np.floating],
    labels_L: Sequence[int] | NDArray[np.integer],
    classes: int,
    *,
    strength: float | None = None,
    start: LinearFit | None = None,
    calibrated: bool = True,
) -> LinearFit:
    """The regression of some labelled points.

    Args:
        features_LD: standardised features.
        labels_L: 0 to C − 1. A class without a label gets weights of zero and the logit −30.
        classes: C.
        strength: of the fit; when None, by cross-validation where every class that is seen has two
            labels or more, else 32 / D.
        start: an earlier fit, to begin from. It changes how long the fit takes, not what it comes to.
        calibrated: whether to find the temperature, which takes fits to parts of the labels.

    Example:
        >>> import numpy as np
        >>> x = np.array([[-1.0], [-0.8], [0.9], [1.1]])
        >>> fit_linear(x, [0, 0, 1, 1], classes=3).logits(x).argmax(axis=1).tolist()
        [0, 0, 1, 1]
    """
    x_LD = np.asarray(features_LD, dtype=np.float64)
    labels = np.asarray(labels_L, dtype=np.int64)
    _check(x_LD, labels, classes, strength)
    seen, index_L = np.unique(labels, return_inverse=True)
    fixed = PRIOR_VARIANCE / x_LD.shape[1]
    if len(seen) == 1:
        return _expanded(
            np.zeros((1, x_LD.shape[1])), np.zeros(1), seen, classes, strength or fixed
        )
    z_LR, basis_RD = _rotated(x_LD)
    fewest = int(np.bincount(index_L).min())
    temperature, validated = 1.0, fewest >= 2 and (calibrated or strength is None)
    if validated:
        tried = [fixed * factor for factor in FACTORS] if strength is None else [strength]
        strength, held_out_LS = _cross_validated(z_LR, index_L, tried)
        temperature = _temperature(held_out_LS, index_L)
    first = None if start is None else (start.weight[seen] @ basis_RD.T, start.bias[seen])
    weight_SR, bias_S = _minimum(z_LR, index_L, len(seen), strength or fixed, first)
    return _expanded(
        weight_SR @ basis_RD, bias_S, seen, classes, strength or fixed, temperature, validated
    )


def _rotated(x_LD: Floats) -> tuple[Floats, Floats]:
    """(z, basis) with x = z·basis: x along its principal axes, the orthonormal rows of basis.

    From the smaller of x·xᵀ and xᵀ·x, whose eigenvalues are the squared lengths of z's columns. Axes
    along which x has next to no length are left out: the fit has none there either.
    """
    wide = len(x_LD) < x_LD.shape[1]
    sq_lengths, axes = np.linalg.eigh(x_LD @ x_LD.T if wide else x_LD.T @ x_LD)
    kept = sq_lengths > 1e-12 * max(float(sq_lengths[-1]), 1e-300)
    lengths, axes = np.sqrt(sq_lengths[kept]), axes[:, kept]
    if wide:
        return axes * lengths, (axes / lengths).T @ x_LD
    return x_LD @ axes, axes.T


def _minimum(
    z_LR: Floats,
    index_L: NDArray[np.intp],
    classes: int,
    strength: float,
    start: tuple[Floats, Floats] | None = None,
    tolerance: float = _TOLERANCE,
) -> tuple[Floats, Floats]:
    """W (S, R) and b (S,) of least loss; b is centred, as W is by its penalty.

    Along a column of z of squared length s² the loss bends by about s²/S + 1/strength. L-BFGS moves in
    units of the root of that, in which it bends alike in all directions.
    """
    count, rank = z_LR.shape
    rows = np.arange(count)
    unit_R = 1.0 / np.sqrt((z_LR * z_LR).sum(axis=0) / classes + 1.0 / strength)
    unit_bias = 1.0 / np.sqrt(count / classes)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weight_SR = flat[: classes * rank].reshape(classes, rank) * unit_R
        logits_LS = z_LR @ weight_SR.T + flat[classes * rank :] * unit_bias
        log_p_LS = logits_LS - logsumexp(logits_LS, axis=1, keepdims=True)
        residual_LS = np.exp(log_p_LS)
        residual_LS[rows, index_L] -= 1.0
        grad_SR = (residual_LS.T @ z_LR + weight_SR / strength) * unit_R
        grad_S = residual_LS.sum(axis=0) * unit_bias
        penalty = 0.5 * float((weight_SR * weight_SR).sum()) / strength
        total = penalty - float(log_p_LS[rows, index_L].sum())
        return total, np.concatenate([grad_SR.ravel(), grad_S])

    first = np.zeros(classes * (rank + 1))
    if start is not None:
        bias_S = np.clip(start[1], NO_LABEL, -NO_LABEL) / unit_bias
        first = np.concatenate([(start[0] / unit_R).ravel(), bias_S])
    options = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "gtol": tolerance, "ftol": 0.0}
    best: Floats = minimize(loss, first, jac=True, method="L-BFGS-B", options=options).x
    weight_SR = best[: classes * rank].reshape(classes, rank) * unit_R
    bias_S = best[classes * rank :] * unit_bias
    return weight_SR, bias_S - bias_S.mean()


def _folds(index_L: NDArray[np.intp], folds: int) -> NDArray[np.intp]:
    """Each point's fold: the points of a class are dealt out in turn, so that no fold lacks one."""
    fold_L = np.empty(len(index_L), dtype=np.intp)
    turn = 0
    for label in range(int(index_L.max()) + 1):
        rows = np.flatnonzero(index_L == label)
        fold_L[rows] = (turn + np.arange(len(rows))) % folds
        turn += len(rows)
    return fold_L


def _cross_validated(
    z_LR: Floats, index_L: NDArray[np.intp], strengths: Sequence[float]
) -> tuple[float, Floats]:
    """(the rising strength before held-out labels become less likely, their logits (L, S) under it)."""
    fold_L = _folds(index_L, min(_FOLDS, int(np.bincount(index_L).min())))
    classes, folds = int(index_L.max()) + 1, int(fold_L.max()) + 1
    fits: list[tuple[Floats, Floats] | None] = [None] * folds
    best: tuple[float, float, Floats] | None = None
    for strength in strengths:
        logits_LS = np.empty((len(z_LR), classes))
        for fold in range(folds):
            rest = fold_L != fold
            fits[fold] = weight_SR, bias_S = _minimum(
                z_LR[rest], index_L[rest], classes, strength, fits[fold], _ROUGH
            )
            logits_LS[~rest] = z_LR[~rest] @ weight_SR.T + bias_S
        loss = _nll(logits_LS, index_L)
        if best is not None and loss >= best[0]:
            break
        best = loss, strength, logits_LS
    assert best is not None
    return best[1], best[2]


def unseen_probabilities(
    features_LD: NDArray[np.floating], labels_L: NDArray[np.integer], fit: LinearFit
) -> Floats:
    """(L, C): what models that have not seen a point's label say of it, one model for each of 5 folds.

    A row is NaN where its class has no other label, so that such a model cannot know the class.

    Args:
        features_LD: the standardised features that `fit` was fitted to.
        labels_L: their labels.
        fit: gives the strength and the temperature.
    """
    x_LD, labels = np.asarray(features_LD, np.float64), np.asarray(labels_L, np.int64)
    seen, index_L = np.unique(labels, return_inverse=True)
    p_LC = np.full((len(labels), len(fit.bias)), np.nan)
    if len(seen) < 2:
        return p_LC
    z_LR, _ = _rotated(x_LD)
    fold_L = _folds(index_L, _UNSEEN_FOLDS)
    for fold in np.unique(fold_L).tolist():
        here = fold_L == fold
        known, known_index = np.unique(index_L[~here], return_inverse=True)
        if len(known) < 2:
            continue
        weight_SR, bias_S = _minimum(
            z_LR[~here], known_index, len(known), fit.strength, tolerance=_ROUGH
        )
        told = np.flatnonzero(here)[np.isin(index_L[here], known)]
        logits_NS = (z_LR[told] @ weight_SR.T + bias_S) / fit.temperature
        p_LC[told] = 0.0
        p_LC[np.ix_(told, seen[known])] = np.exp(log_softmax(logits_NS, axis=1))
    return p_LC


def _nll(logits_LS: Floats, index_L: NDArray[np.intp], temperature: float = 1.0) -> float:
    log_p_LS = log_softmax(logits_LS / temperature, axis=1)
    return -float(log_p_LS[np.arange(len(index_L)), index_L].sum())


def _temperature(logits_LS: Floats, index_L: NDArray[np.intp]) -> float:
    """The likeliest temperature between 1/10 and 10, given held-out labels.

    One below 1 makes the model surer, and needs evidence: its log has the prior N(0, 0.2²). The few
    labels of a first batch are typical of their classes, and a model is right more often on them than
    elsewhere.
    """

    def loss(log_t: float) -> float:
        surer = min(log_t, 0.0) / _SURER
        return _nll(logits_LS, index_L, float(np.exp(log_t))) + 0.5 * surer**2

    least = minimize_scalar(
        loss,
        bounds=(-np.log(10), np.log(10)),
        method="bounded",
    )
    return float(np.exp(least.x))


def _expanded(
    weight_SD: Floats,
    bias_S: Floats,
    seen: NDArray[np.int64],
    classes: int,
    strength: float,
    temperature: float = 1.0,
    validated: bool = False,
) -> LinearFit:
    """The fit of all C classes from that of the seen ones."""
    weight, bias = np.zeros((classes, weight_SD.shape[1])), np.full(classes, NO_LABEL)
    weight[seen], bias[seen] = weight_SD, bias_S
    return LinearFit(weight, bias, strength, temperature, validated)


def _check(x_LD: Floats, labels: NDArray[np.int64], classes: int, strength: float | None) -> None:
    if x_LD.ndim != 2 or labels.shape != (len(x_LD),) or len(labels) == 0:
        raise InputError(
            f"expected features (L, D) and labels (L,) of at least one point, got shapes {x_LD.shape} "
            f"and {labels.shape}"
        )
    if labels.min() < 0 or labels.max() >= classes:
        raise LabelError(
            f"labels must be 0 to {classes - 1}, found {labels.min()} to {labels.max()}"
        )
    if not np.isfinite(x_LD).all():
        raise NonFiniteError("the labelled points have features that are NaN or infinite")
    if strength is not None and not 0 < strength < float("inf"):
        raise InputError(f"strength must be a number above 0, got {strength!r}")
