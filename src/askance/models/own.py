"""A user's own network, named "module:function"."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from askance.embedding.factory import called, described_error
from askance.embedding.guard import evaluating
from askance.errors import InputError
from askance.models.head import Shape


def made(
    name: str, factory: Callable[..., Any], shape: Shape, classes: int, options: dict[str, Any]
) -> nn.Module:
    """The network that the user's factory returns, after a check that it gives (B, C) logits."""
    model = called(name, factory, {"shape": shape, "classes": classes, **options})
    _check_logits(name, model, shape, classes)
    return model


def _check_logits(name: str, model: nn.Module, shape: Shape, classes: int) -> None:
    tensors = list(chain(model.named_parameters(), model.named_buffers()))
    # Drawn at the first forward pass, their weights would not depend on the seed alone.
    lazy = [label for label, tensor in tensors if is_lazy(tensor)]
    if lazy:
        raise InputError(
            f"model {name!r} must return a network with its weights made, {', '.join(lazy)} are lazy; "
            f"call the network once on torch.zeros(2, {', '.join(map(str, shape))}) before returning it"
        )
    dtypes = [tensor.dtype for _, tensor in tensors if tensor.is_floating_point()]
    # On copies of the state, because a layer may write to its buffers in evaluation mode too.
    state = {label: tensor.detach().clone() for label, tensor in tensors}
    with evaluating(model, None) as device:
        batch = torch.zeros(2, *shape, device=device, dtype=dtypes[0] if dtypes else None)
        try:
            logits = functional_call(model, state, (batch,))
        except Exception as cause:
            raise InputError(
                f"model {name!r} must take batches of shape (B, {', '.join(map(str, shape))}), one of "
                f"shape {tuple(batch.shape)} raised {described_error(cause)}; build the network "
                f"for the shape the factory is given"
            ) from cause
    if not isinstance(logits, Tensor) or logits.shape != (2, classes):
        came = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise InputError(
            f"model {name!r} must return logits of shape (B, classes), here (2, {classes}), it "
            f"returned {came}; end the network in a linear layer with `classes` outputs"
        )
