"""Gradients of the last linear layer, from their factors alone.

For logits z = W h + b the gradient of a loss at one point is the outer product

    g = a ⊗ [h; 1],     a = ∂ℓ/∂z  (C numbers),     h the head's input  (D numbers),

so N gradients are N·(C + D) numbers, never N·C·D:

    ⟨g_i, g_j⟩ = ⟨a_i, a_j⟩ (⟨h_i, h_j⟩ + 1),     ‖g‖² = ‖a‖² (‖h‖² + 1),

without the "+ 1" where the bias is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from askance.errors import InputError, LabelError

LossName = Literal["cross-entropy", "multilabel", "squared"]
# Float32 squares under this have lost digits to underflow: confident points, a labelled set fitted to
# the last digit, features of that size.
UNDERFLOW = 1e-30

Objective = Callable[[Tensor, Tensor], Tensor]
"""(logits (N, C), labels) → the scalar objective of that set."""

LOSSES = ("cross-entropy", "multilabel")


def check_loss(loss: Any, *, objectives: bool = False, losses: tuple[str, ...] = LOSSES) -> None:
    """Raise unless `loss` is one of the names (or a callable, where objectives are allowed)."""
    if (isinstance(loss, str) and loss in losses) or (objectives and callable(loss)):
        return
    more = ", or a callable (logits, labels) → scalar" if objectives else ""
    raise InputError(f"loss must be one of {', '.join(map(repr, losses))}{more}; got {loss!r}")


def working(tensor: Tensor) -> Tensor:
    """The tensor in a dtype to compute with: float32 at least."""
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def pseudo_labels(logits_NC: Tensor, loss: LossName = "cross-entropy") -> Tensor:
    """What the model would answer: argmax (lowest class first), or 1[z > 0] in each class."""
    return (logits_NC > 0).long() if loss == "multilabel" else logits_NC.argmax(dim=1)


def check_outputs(classes: int, loss: Any = "cross-entropy", labels: Tensor | None = None) -> None:
    """Raise where a softmax would be over one output, and every point as certain as the next.

    Labels that are not all 0 or 1 are a regression's.
    """
    if loss != "cross-entropy" or classes != 1:
        return
    regression = (
        "the model has one output, whose softmax is 1 whatever the input. A regression model cannot "
        "be asked by this rule, which is for classes; for regression take 'kcenter', 'maxherding', "
        "'typiclust' or Badge(loss='squared')"
    )
    if labels is not None and not ((labels == 0) | (labels == 1)).all():
        raise InputError(f"{regression}, and the labels are not 0 and 1")
    raise InputError(
        f"{regression}. Where the output stands for two classes (a sigmoid), use a rule with "
        f"loss='multilabel', and labels of zeros and ones of shape (L, 1); or give the model two "
        f"outputs"
    )


def check_labels(labels: Tensor, logits_NC: Tensor, loss: LossName = "cross-entropy") -> None:
    """Raise unless the labels can be labels of these logits under this loss."""
    count, classes = logits_NC.shape
    check_outputs(classes, loss, labels)
    if loss == "multilabel":
        if labels.shape != logits_NC.shape:
            raise LabelError(
                f"multi-label labels must be zeros and ones of shape {(count, classes)}, "
                f"got shape {tuple(labels.shape)}"
            )
        low, high = 0, 1
    else:
        if labels.shape != (count,):
            hint = "; for several labels a point use loss='multilabel'" if labels.ndim == 2 else ""
            raise LabelError(
                f"labels must be ({count},) class indices, got shape {tuple(labels.shape)}{hint}"
            )
        low, high = 0, classes - 1
    if count and (int(labels.min()) < low or int(labels.max()) > high):
        outside = ((labels < low) | (labels > high)).reshape(count, -1).any(1).nonzero().flatten()
        raise LabelError(
            f"labels must be between {low} and {high} (the model has {classes} outputs); "
            f"{len(outside)} are not, the first is {labels[outside[0]].tolist()} at labelled point "
            f"{int(outside[0])}"
        )


def residuals(logits_NC: Tensor, labels: Tensor, loss: LossName = "cross-entropy") -> Tensor:
    """a = ∂ℓ/∂z at each point, (N, C), with every digit of a confident point kept.

    Cross-entropy: a = p − e_y, its own class computed as a_y = −Σ_{k≠y} p_k, because p_y − 1 loses
    all digits as p_y → 1. Multi-label (binary cross-entropy summed over classes): a_k = −σ(−z_k)
    where y_k = 1 and σ(z_k) elsewhere.
    """
    logits_NC = working(logits_NC)
    if loss == "multilabel":
        sign_NC = 1 - 2 * labels.to(logits_NC.dtype)
        return sign_NC * torch.sigmoid(sign_NC * logits_NC)
    peak_N1 = logits_NC.amax(dim=1, keepdim=True)
    return _softmax_residuals(logits_NC, peak_N1, labels.unsqueeze(1))


def pseudo_residuals(logits_NC: Tensor, loss: LossName = "cross-entropy") -> Tensor:
    """`residuals` under the model's own pseudo-labels.

    Under the squared loss, where the model's own answer has no residual, it is one unit: the
    gradient is then that of the prediction itself, [h; 1].
    """
    if loss == "squared":
        return working(logits_NC).new_ones(len(logits_NC), 1)
    if loss == "multilabel":
        return residuals(logits_NC, pseudo_labels(logits_NC, loss), loss)
    # One pass gives both the peak and the (first) class it is at.
    return _softmax_residuals(working(logits_NC), *working(logits_NC).max(dim=1, keepdim=True))


def _softmax_residuals(logits_NC: Tensor, peak_N1: Tensor, own_N1: Tensor) -> Tensor:
    exps_NC = (logits_NC - peak_N1).exp_()
    own_exps_N1 = exps_NC.gather(1, own_N1)
    others_N1 = exps_NC.scatter_(1, own_N1, 0.0).sum(dim=1, keepdim=True)
    scale_N1 = (others_N1 + own_exps_N1).reciprocal_()
    return exps_NC.mul_(scale_N1).scatter_(1, own_N1, -others_N1 * scale_N1)


def sq_lengths(features_ND: Tensor, bias: bool) -> Tensor:
    """‖[h; 1]‖² at each point, or ‖h‖² without the bias.

    In float64 where a square of float32 features is too large or too small for float32.
    """
    sq_N = torch.linalg.vector_norm(working(features_ND), dim=1).square_()
    if sq_N.dtype == torch.float32:
        # Beside a bias's 1 a square of that size is nothing, and a row of zeros has lost none.
        lost_N = sq_N.isinf() if bias else sq_N.isinf() | (sq_N < UNDERFLOW)
        lost = lost_N.nonzero().flatten()
        lost = lost[features_ND[lost].any(dim=1)]
        if len(lost):
            sq_N = sq_N.double()
            sq_N[lost] = features_ND[lost].double().square().sum(dim=1)
    return sq_N.add_(1.0) if bias else sq_N


def sq_norms(residuals_NC: Tensor, features_ND: Tensor, bias: bool = True) -> Tensor:
    """‖g‖² at each point, in float64, where squares of confident points do not underflow."""
    return residuals_NC.double().square().sum(dim=1) * sq_lengths(features_ND, bias)


def gradient_matrix(residuals_NC: Tensor, features_ND: Tensor, bias: bool = True) -> Tensor:
    """Σ a ⊗ [h; 1] over the points, (C, D + 1), or (C, D) without the bias; in float64."""
    residuals_NC, features_ND = residuals_NC.double(), features_ND.double()
    weight_CD = residuals_NC.T @ features_ND
    return torch.cat([weight_CD, residuals_NC.sum(0)[:, None]], dim=1) if bias else weight_CD


def mean_gradient(
    logits_LC: Tensor,
    features_LD: Tensor,
    labels: Tensor,
    *,
    bias: bool = True,
    loss: LossName | Objective = "cross-entropy",
) -> Tensor:
    """∇f(θ; S) over the last layer for a labelled set S, (C, D + 1) in float64.

    f is the mean loss, or any `loss(logits, labels) → scalar` objective of the whole set: its gradient
    passes through the logits, so that path needs no shortcut and assumes no additivity.
    """
    if callable(loss):
        return gradient_matrix(objective_residuals(loss, logits_LC, labels), features_LD, bias)
    check_labels(labels, logits_LC, loss)
    total = gradient_matrix(residuals(logits_LC.double(), labels, loss), features_LD, bias)
    return total / len(logits_LC)


def objective_residuals(objective: Objective, logits_NC: Tensor, labels: Tensor) -> Tensor:
    """∂f/∂z of a whole set's objective, (N, C) in float64."""
    with torch.enable_grad():
        logits_NC = logits_NC.detach().double().requires_grad_()
        try:
            value = objective(logits_NC, labels)
        except RuntimeError as error:
            if "dtype" not in str(error) and "scalar type" not in str(error):
                raise
            raise InputError(
                f"an objective is given float64 logits and this one does not take them ({error}); "
                f"make its own tensors follow, e.g. weights.to(logits.dtype)"
            ) from error
        if not isinstance(value, Tensor) or not value.requires_grad:
            raise InputError(
                f"an objective must be a tensor computed from the logits it is given, it gave a "
                f"{type(value).__name__} that cannot be differentiated"
            )
        if value.numel() != 1:
            raise InputError(
                f"an objective must give one number for a set, it gave shape "
                f"{tuple(value.shape)}; reduce it, e.g. with .mean()"
            )
        return torch.autograd.grad(value.reshape(()), logits_NC)[0]
