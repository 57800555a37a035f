"""Floored gradient descent, the method that the bound holds for.

Luo, Luo & Li (2022, Definition 5.1 and Algorithm 1): with g = ∇f(W; S) and g_J = ∇f(W; S_J),

    W_t = W_{t−1} + α (W_{t−1} − W_{t−2}) − γ_t g_J − ε_t floor(γ_t (g − g_J)/ε_t),

floor(x) = sign(x) ⌊|x|⌋. What S_J does not foresee moves the weights by whole multiples of ε_t. As
ε_t → 0 it is gradient descent on S; where every |γ_t (g − g_J)| < ε_t it is gradient descent on S_J
alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from askance.errors import InputError

Closure = Callable[[], Any]


class FlooredSGD(torch.optim.Optimizer):
    """Floored (stochastic) gradient descent: FGD and FSGD of Luo, Luo & Li (2022).

    A step needs two gradients, so it takes two closures. Each clears the gradients, computes a mean
    loss, calls `backward()`, and returns the loss: the first on S, the second on S_J. For the
    stochastic form the first is on a mini-batch, the second on those of its points that are in S_J.

    Args:
        params: what to train, as for any optimizer of PyTorch.
        lr: γ.
        precision: ε.
        momentum: α.

    Example:
        >>> import torch
        >>> weight = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = FlooredSGD([weight], lr=0.1, precision=0.1)
        >>> def loss_on(point):
        ...     optimizer.zero_grad()
        ...     loss = (weight - point).square().sum()
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(lambda: loss_on(-3.0), lambda: loss_on(0.0))
        >>> round(weight.item(), 6)  # 1 − 0.1·2, less 0.1·floor(0.6/0.1)
        0.2

    Deviations:
        In the definition of the stochastic form g and g_J are not multiplied by γ_t, which we take
        for a
        slip: it would leave no step size. For a mini-batch without a point of S_J the source defines no
        g_J. The mean loss over no points is not a number, and is refused.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        precision: float,
        momentum: float = 0.0,
    ) -> None:
        for name, value in (("lr", lr), ("precision", precision)):
            if not value > 0:
                raise InputError(f"{name} must be above 0, got {value!r}")
        if not 0 <= momentum < 1:
            raise InputError(f"momentum must be in [0, 1), got {momentum!r}")
        super().__init__(params, {"lr": lr, "precision": precision, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Closure | None = None, prior: Closure | None = None) -> Any:
        """One step; returns what `closure` returned.

        Args:
            closure: the mean loss on S (or on a mini-batch), with its gradients.
            prior: the same on S_J (or on the mini-batch's points in S_J).
        """
        if closure is None or prior is None:
            raise InputError("a floored step needs two closures: the loss on S, and that on S_J")
        chosen = [(group, p) for group in self.param_groups for p in group["params"]]
        _evaluated(prior)
        prior_grads = [_gradient(p).clone() for _, p in chosen]
        result = _evaluated(closure)
        for (group, p), prior_grad in zip(chosen, prior_grads, strict=True):
            rate, precision = group["lr"], group["precision"]
            whole = torch.trunc(rate * (_gradient(p) - prior_grad) / precision)
            change = -rate * prior_grad - precision * whole
            if group["momentum"]:
                state = self.state[p]
                if "change" in state:
                    change += group["momentum"] * state["change"]
                state["change"] = change
            p += change
        return result


def _evaluated(closure: Closure) -> Any:
    with torch.enable_grad():
        loss = closure()
    if loss is None or not math.isfinite(float(loss)):
        raise InputError(
            f"a closure must return its mean loss, a number; got {loss!r}. A mean over no points is "
            "not a number: does every mini-batch hold a point of S_J?"
        )
    return loss


def _gradient(parameter: Tensor) -> Tensor:
    """A parameter's gradient; zeros where the loss does not depend on it."""
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
