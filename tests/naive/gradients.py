"""Gradients and the scores built on them, written straight from their definitions.

Two kinds of twin. The *exact* ones work in 120 decimal digits, so that p − e_ŷ can be written down
as it stands even where p_ŷ = 1 − 1e-80. The *autograd* ones differentiate a real model's mean loss
over a real set, twice, and subtract; they know nothing of rank-one factors or of n/(n+1).

Nothing here is shared with the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import wraps
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

Label = int | Sequence[int]
"""A class, or a zero or one for each class."""
Point = tuple[Sequence[float], Sequence[float], Label]
"""(logits, features, label)"""
Vector = list[Decimal]


def exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run with 120 significant digits."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with localcontext(prec=120):
            return function(*args, **kwargs)

    return wrapped


# --- exact ----------------------------------------------------------------------------------------


@exactly
def softmax(logits: Sequence[float]) -> Vector:
    exps = [Decimal(z).exp() for z in logits]
    return [e / sum(exps) for e in exps]


@exactly
def sigmoid(z: float) -> Decimal:
    return 1 / (1 + (-Decimal(z)).exp())


@exactly
def entropy(probabilities: Sequence[Decimal]) -> Decimal:
    return -sum((p * p.ln() for p in probabilities if p > 0), Decimal(0))


def pseudo_label(logits: Sequence[float], multilabel: bool = False) -> Label:
    if multilabel:
        return [int(z > 0) for z in logits]
    return list(logits).index(max(logits))


@exactly
def residual(logits: Sequence[float], label: Label) -> Vector:
    """∂ℓ/∂z: p − e_y, or σ(z) − y in each class."""
    if isinstance(label, int):
        return [p - (k == label) for k, p in enumerate(softmax(logits))]
    return [sigmoid(z) - y for z, y in zip(logits, label, strict=True)]


@exactly
def gradient(point: Point, bias: bool = True) -> Vector:
    """∂ℓ/∂W (and ∂ℓ/∂b), flattened: row k is a_k·h, then a_k."""
    logits, features, label = point
    inputs = [Decimal(h) for h in features] + [Decimal(1)] * bias
    return [a * h for a in residual(logits, label) for h in inputs]


@exactly
def mean_gradient(points: Sequence[Point], bias: bool = True) -> Vector:
    gradients = [gradient(point, bias) for point in points]
    return [sum(column) / len(points) for column in zip(*gradients, strict=True)]


@exactly
def minus(u: Vector, v: Vector) -> Vector:
    return [a - b for a, b in zip(u, v, strict=True)]


@exactly
def dot(u: Vector, v: Vector) -> Decimal:
    return sum((a * b for a, b in zip(u, v, strict=True)), Decimal(0))


@exactly
def norm(v: Vector) -> Decimal:
    return dot(v, v).sqrt()


@exactly
def df_score(
    logits: Sequence[float],
    features: Sequence[float],
    labeled: Sequence[Point],
    bias: bool = True,
    multilabel: bool = False,
) -> tuple[float, float]:
    """s(x) = ‖∇f(D_L ∪ {x̂}) − ∇f({x̂})‖, and ‖g‖ + ‖ḡ_L‖, which its error is measured by."""
    new = (logits, features, pseudo_label(logits, multilabel))
    difference = minus(mean_gradient([*labeled, new], bias), mean_gradient([new], bias))
    scale = norm(gradient(new, bias)) + norm(mean_gradient(labeled, bias))
    return float(norm(difference)), float(scale)


@exactly
def expected_gradient_length(
    logits: Sequence[float], features: Sequence[float], bias: bool = True
) -> float:
    """Σ_y p(y|x) ‖∇ℓ(x, y)‖."""
    lengths = [norm(gradient((logits, features, y), bias)) for y in range(len(logits))]
    return float(sum(p * g for p, g in zip(softmax(logits), lengths, strict=True)))


# --- autograd -------------------------------------------------------------------------------------


def summed_bce(logits: Tensor, labels: Tensor) -> Tensor:
    """The multi-label loss: binary cross-entropy summed over classes, its mean over points."""
    total = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="sum")
    return total / len(logits)


def objective_gradient(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    objective: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    names: Sequence[str] | None = None,
) -> Tensor:
    """∇f(θ; S) over the named parameters (all when None), flattened."""
    chosen = [p for name, p in model.named_parameters() if names is None or name in names]
    value = objective(model(inputs), labels)
    gradients = torch.autograd.grad(value, chosen, allow_unused=True)
    return torch.cat(
        [
            (torch.zeros_like(p) if g is None else g).flatten()
            for p, g in zip(chosen, gradients, strict=True)
        ]
    )


def autograd_df_scores(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    pool: Tensor,
    objective: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    names: Sequence[str] | None = None,
) -> tuple[Tensor, Tensor]:
    """s(x) of each pool point and ‖g‖ + ‖ḡ_L‖, from two backward passes a point."""
    scores, scales = [], []
    for i in range(len(pool)):
        x = pool[i : i + 1]
        z = model(x).detach()
        pseudo = (z > 0).long() if labels.ndim == 2 else z.argmax(dim=1)
        union = torch.cat([inputs, x]), torch.cat([labels, pseudo])
        alone = objective_gradient(model, x, pseudo, objective, names)
        scores.append((objective_gradient(model, *union, objective, names) - alone).norm())
        reference = objective_gradient(model, inputs, labels, objective, names)
        scales.append(alone.norm() + reference.norm())
    return torch.stack(scores), torch.stack(scales)


def jacobian_gradient(
    model: nn.Module, x: Tensor, label: Label, names: Sequence[str] | None = None
) -> Tensor:
    """∇ℓ(θ; x, y) = Σ_k a_k ∇z_k, with a exact: for points too confident for log-softmax."""
    logits = model(x)[0]
    total: Tensor | None = None
    for k, a in enumerate(residual(logits.tolist(), label)):
        row = objective_gradient(model, x, torch.empty(0), lambda z, _, k=k: z[0, k], names)
        total = float(a) * row if total is None else total + float(a) * row
    assert total is not None
    return total
