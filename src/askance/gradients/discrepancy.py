"""Gradient discrepancy: DF(S, T) = ∇f(θ; S) − ∇f(θ; T), and the score built on it.

The score of a pool point x (Khosravani & Zilles, eq. 11) is

    s(x) = ‖DF(D_L ∪ Ŝ(x), Ŝ(x))‖₂,     Ŝ(x) = {(x, argmax_y p(y|x))}.

For a mean loss ∇f(D_L ∪ Ŝ) = (n ḡ_L + g) / (n + 1), hence exactly

    s(x) = n / (n + 1) · ‖ḡ_L − g(x)‖,     n = |D_L|.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from askance.embedding import Embedding, check_finite, check_logits
from askance.embedding.sources import as_labels
from askance.errors import InputError, LabelError
from askance.gradients.last_layer import (
    UNDERFLOW,
    LossName,
    Objective,
    check_labels,
    mean_gradient,
    pseudo_labels,
    pseudo_residuals,
    residuals,
    sq_lengths,
    sq_norms,
    working,
)

# ‖g‖² − 2⟨g,ḡ⟩ + ‖ḡ‖² loses its digits where g ≈ ḡ. Below this share of ‖g‖² + ‖ḡ‖² it is computed
# again: float32 rows in float64, float64 rows from the difference itself. The shares keep the error of
# s(x) under 1e-5 and 1e-10 of ‖g‖ + ‖ḡ‖.
_NEAR_COPY = {torch.float32: 3e-3, torch.float64: 1e-9}
_DIRECT_BYTES = 64 << 20
# Sums of float32 squares from here on are near its largest number.
_OVERFLOW = 1e36
# ‖ḡ‖ under this share of the mean ‖g‖: the labelled gradients cancel, and float32 sums lose digits.
_CANCELLED = 0.005
_QUICK_FROM = 1 << 24
# Multiply-adds of one piece of a matrix product.
_PIECE = 1 << 27


@dataclass(frozen=True, eq=False)
class ScoreTerms:
    """What a score is made of: s = n/(n+1) · √(‖g‖² − 2⟨g, ḡ⟩ + ‖ḡ‖²).

    Args:
        sq_norms: ‖g‖² of each point, (N,).
        inner: ⟨g, ḡ⟩ of each point, (N,).
        sq_dists: ‖g − ḡ‖² of each point, (N,), never negative.
    """

    sq_norms: Tensor
    inner: Tensor
    sq_dists: Tensor


class Reference(ABC):
    """What scoring a pool point needs of the labelled set."""

    @property
    def norm(self) -> float | None:
        """‖ḡ_L‖, where the score rests on a mean gradient."""
        return None

    def parts(self, block: Embedding) -> ScoreTerms | None:
        """What each point's score is made of, where the score rests on a mean gradient."""
        return None

    @abstractmethod
    def scores(self, block: Embedding) -> Tensor:
        """s(x) of each point of the block, (B,)."""


@dataclass(frozen=True, eq=False)
class LastLayerReference(Reference):
    """ḡ_L over the head, and how many points it stands for.

    Args:
        mean: (C, D + 1) with the bias, (C, D) without; float64.
        count: n = |D_L|, whatever number of points the mean was estimated from.
        bias: whether the last column is the bias.
        loss: the named loss the mean was taken of.
    """

    mean: Tensor
    count: int
    bias: bool = True
    loss: LossName = "cross-entropy"

    @property
    def norm(self) -> float:
        return float(self.mean.norm())

    def parts(self, block: Embedding) -> ScoreTerms:
        return df_parts(*_both(block, "pool"), self)

    def scores(self, block: Embedding) -> Tensor:
        return shrunk(self.count, self.parts(block))


@dataclass(frozen=True, eq=False)
class ObjectiveReference(Reference):
    """The labelled set itself, for an objective that is no mean over points.

    s(x) is then computed from the gradients of both objectives, one pool point after the other.

    Args:
        labeled: embedding of the labelled set.
        labels: its true labels.
        objective: (logits, labels) → scalar of a whole set.
        bias: whether the head's bias takes part.
    """

    labeled: Embedding
    labels: Tensor
    objective: Objective
    bias: bool = True

    def scores(self, block: Embedding) -> Tensor:
        labeled = _both(self.labeled, "labelled")
        scores = []
        for logits_C, features_D in zip(*_both(block, "pool"), strict=True):
            single = logits_C[None], features_D[None]
            pseudo = pseudo_labels_like(self.labels, single[0])
            both = [torch.cat([old, new]) for old, new in zip(labeled, single, strict=True)]
            augmented = self._gradient(both[0], both[1], torch.cat([self.labels, pseudo]))
            scores.append((augmented - self._gradient(*single, pseudo)).norm())
        return torch.stack(scores)

    def _gradient(self, logits_NC: Tensor, features_ND: Tensor, labels: Tensor) -> Tensor:
        return mean_gradient(logits_NC, features_ND, labels, bias=self.bias, loss=self.objective)


def shrunk(count: int, parts: ScoreTerms) -> Tensor:
    """s = n/(n+1) · ‖ḡ − g‖."""
    return parts.sq_dists.sqrt() * (count / (count + 1))


def last_layer_reference(
    labeled: Embedding,
    labels: Tensor,
    *,
    count: int | None = None,
    bias: bool = True,
    loss: LossName = "cross-entropy",
) -> LastLayerReference:
    """ḡ_L of a labelled set under its true labels."""
    logits_LC, features_LD = _both(labeled, "labelled")
    if len(labeled) == 0:
        raise LabelError("the labelled set must hold at least one point, it is empty")
    labels = as_labels(labels, len(labeled)).to(logits_LC.device)
    mean = _quick_mean(logits_LC, features_LD, labels, bias, loss)
    if mean is None:
        mean = mean_gradient(logits_LC, features_LD, labels, bias=bias, loss=loss)
    return LastLayerReference(mean, len(labeled) if count is None else count, bias, loss)


def _quick_mean(
    logits_LC: Tensor, features_LD: Tensor, labels: Tensor, bias: bool, loss: LossName
) -> Tensor | None:
    """ḡ_L of a large set summed in float32, or None where float64 costs little or is needed.

    Where terms cancel, partial sums stay small, and so do their roundings: the sum is off by some
    3e-8 of the mean ‖g‖, which is 6e-6 of ‖ḡ‖ at the limit. On a GPU a float32 product may be TF32,
    and float64 is cheap.
    """
    small = logits_LC.numel() * features_LD.shape[1] < _QUICK_FROM
    if small or logits_LC.is_cuda or not logits_LC.dtype == features_LD.dtype == torch.float32:
        return None
    check_labels(labels, logits_LC, loss)
    a_LC = residuals(logits_LC, labels, loss)
    total = (a_LC.T @ features_LD).double()
    if bias:
        total = torch.cat([total, a_LC.double().sum(0)[:, None]], dim=1)
    mean = total / len(logits_LC)
    typical = sq_norms(a_LC, features_LD, bias).sqrt_().mean()
    # Sums of numbers this small or this large have been too much for float32.
    kept = UNDERFLOW < mean.norm() < torch.inf
    return mean if kept and mean.norm() > _CANCELLED * typical else None


def df(
    S: tuple[Embedding, Tensor],
    T: tuple[Embedding, Tensor],
    *,
    bias: bool = True,
    loss: LossName | Objective = "cross-entropy",
) -> Tensor:
    """DF(S, T) = ∇f(θ; S) − ∇f(θ; T) over the last layer, (C, D + 1) in float64.

    Args:
        S, T: (Embedding, labels) of two labelled or pseudo-labelled sets.
        bias: whether the bias takes part; without it the result is (C, D).
        loss: a named mean loss, or any objective (logits, labels) → scalar of a whole set.
    """
    both = _both(S[0], "S"), _both(T[0], "T")
    check_same_widths(S[0], T[0], "S and T")
    gradients = []
    for name, (logits, features), labels in zip("ST", both, (S[1], T[1]), strict=True):
        if len(logits) == 0:
            raise LabelError(f"the set {name} must hold at least one point, it is empty")
        for kind, matrix in (("logits", logits), ("features", features)):
            check_finite(kind, matrix, range(len(logits)), of=name)
        if not callable(loss):  # an objective may be made for probabilities
            check_logits(logits, f"the set {name}")
        labels = as_labels(labels, len(logits)).to(logits.device)
        gradients.append(mean_gradient(logits, features, labels, bias=bias, loss=loss))
    return gradients[0] - gradients[1]


def df_parts(logits_NC: Tensor, features_ND: Tensor, ref: LastLayerReference) -> ScoreTerms:
    """Norm, inner product with ḡ_L and squared distance to it for each pool point."""
    logits_NC, features_ND = working(logits_NC), working(features_ND)
    if logits_NC.dtype != features_ND.dtype:
        logits_NC, features_ND = logits_NC.double(), features_ND.double()
    dtype = features_ND.dtype
    mean = ref.mean.to(dtype)
    a_NC = pseudo_residuals(logits_NC, ref.loss)
    # ⟨a ⊗ [h;1], ḡ⟩ = ⟨a, Ḡ [h;1]⟩: one matrix product for all points.
    inner_N = _times_mean(features_ND, mean, ref.bias).mul_(a_NC).sum(dim=1)
    sq_lengths_N = sq_lengths(features_ND, ref.bias)
    sq_norms_N = a_NC.square_().sum(dim=1) * sq_lengths_N
    scale_N = sq_norms_N + float(ref.mean.square().sum())
    if dtype == torch.float32 and len(scale_N):
        low, high = torch.aminmax(scale_N)
        if sq_lengths_N.dtype != dtype or not (low >= UNDERFLOW and high <= _OVERFLOW):
            return df_parts(logits_NC.double(), features_ND.double(), ref)
    sq_dists_N = torch.sub(scale_N, inner_N, alpha=2)
    near = (sq_dists_N < _NEAR_COPY[dtype] * scale_N).nonzero().flatten()
    if len(near):
        rows = logits_NC[near].double(), features_ND[near].double()
        if dtype == torch.float32:
            sq_dists_N[near] = df_parts(*rows, ref).sq_dists.float()
        else:
            sq_dists_N[near] = _direct_sq_dists(pseudo_residuals(rows[0], ref.loss), rows[1], ref)
    return ScoreTerms(sq_norms_N, inner_N, sq_dists_N)


def _times_mean(features_ND: Tensor, mean: Tensor, bias: bool) -> Tensor:
    """Ḡ [h; 1] of each point, (N, C), in pieces whose operands stay in a CPU's cache."""
    weight_CD, bias_C = (mean[:, :-1], mean[:, -1]) if bias else (mean, mean.new_zeros(len(mean)))
    products_NC = features_ND.new_empty(len(features_ND), len(mean))
    rows = max(1, _PIECE // weight_CD.numel())
    for piece, features in zip(products_NC.split(rows), features_ND.split(rows), strict=True):
        torch.addmm(bias_C, features, weight_CD.T, out=piece)
    return products_NC


def _direct_sq_dists(a_NC: Tensor, features_ND: Tensor, ref: LastLayerReference) -> Tensor:
    """‖a ⊗ [h; 1] − ḡ‖² with the difference formed first, a bounded chunk at a time."""
    if ref.bias:
        features_ND = torch.cat([features_ND, features_ND.new_ones(len(features_ND), 1)], dim=1)
    rows = max(1, _DIRECT_BYTES // (8 * ref.mean.numel()))
    return torch.cat(
        [
            (a[:, :, None] * h[:, None, :] - ref.mean).square_().sum(dim=(1, 2))
            for a, h in zip(a_NC.split(rows), features_ND.split(rows), strict=True)
        ]
    )


def pseudo_labels_like(labels: Tensor, logits_NC: Tensor) -> Tensor:
    """Pseudo-labels of the kind the labelled set's labels are: a class each, or zeros and ones."""
    return pseudo_labels(logits_NC, "multilabel" if labels.ndim == 2 else "cross-entropy")


def df_scores(pool: Embedding, labeled: Embedding, labels: Tensor, *, bias: bool = True) -> Tensor:
    """The paper's score s(x) of every pool point over the last layer, the factor n/(n+1) included.

    Args:
        pool: embedding of the N pool points; pseudo-labels come from its logits.
        labeled: embedding of the L labelled points.
        labels: (L,) their true classes.
        bias: whether the head's bias takes part in the gradient.

    Returns:
        (N,) scores, higher is more discrepant; float64 for float64 embeddings, else float32.

    Example:
        >>> import askance, torch
        >>> pool = askance.Embedding(logits=torch.randn(6, 3), features=torch.randn(6, 4))
        >>> labeled = askance.Embedding(logits=torch.randn(2, 3), features=torch.randn(2, 4))
        >>> askance.df_scores(pool, labeled, torch.tensor([0, 2])).shape
        torch.Size([6])

    Reference:
        Khosravani & Zilles, *Gradient-Discrepancy Acquisition for Pool-Based Active Learning*, eq. 11.
    """
    both = _both(pool, "pool"), _both(labeled, "labelled")
    check_same_widths(pool, labeled)
    for name, matrices in zip(("pool", "labelled"), both, strict=True):
        for kind, matrix in zip(("logits", "features"), matrices, strict=True):
            check_finite(kind, matrix, range(len(matrix)), of=name)
    for name, (logits, _) in zip(("the pool", "the labelled set"), both, strict=True):
        check_logits(logits, name)
    ref = last_layer_reference(labeled, as_labels(labels, len(labeled)), bias=bias)
    return shrunk(ref.count, df_parts(*both[0], ref))


def _both(embedding: Embedding, what: str) -> tuple[Tensor, Tensor]:
    """(logits, features), or an error where one is missing."""
    if not isinstance(embedding, Embedding):
        raise InputError(
            f"the {what} points must be an Embedding, which askance.embed(model, data) makes; got a "
            f"{type(embedding).__name__}"
        )
    if embedding.logits is None or embedding.features is None:
        missing = "logits" if embedding.logits is None else "features"
        raise InputError(
            f"last-layer gradients need logits and features; the {what} Embedding has no {missing}"
        )
    return embedding.logits, embedding.features


def check_same_widths(pool: Embedding, labeled: Embedding, what: str = "pool and labelled") -> None:
    """Raise unless pool and labelled set come from heads of one shape."""
    for name in ("logits", "features"):
        a, b = getattr(pool, name), getattr(labeled, name)
        if a is not None and b is not None and a.shape[1] != b.shape[1]:
            raise InputError(
                f"{what} {name} must have the same number of columns, got "
                f"{a.shape[1]} and {b.shape[1]}: are both from the same model?"
            )
