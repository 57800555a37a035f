"""A user's own network, named "module:function"."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from askance.embedding.guard import default_dtype, evaluating
from askance.errors import InputError
from askance.models.head import Shape


def imported(name: str, what: str = "model") -> Callable[..., Any]:
    """The function that "module:function" names; error messages call it `what`."""
    module_name, _, function = name.partition(":")
    if not module_name or not function:
        raise InputError(
            f"{what} {name!r} must be a module and a function in it, 'package.module:function'"
        )
    try:
        module = import_module(module_name)
    except Exception as cause:
        raise InputError(
            f"{what} {name!r}: the module {module_name!r} could not be imported "
            f"({_show(cause)}); install it, or put its folder on PYTHONPATH"
        ) from cause
    try:
        factory = getattr(module, function)
    except AttributeError as cause:
        raise InputError(
            f"{what} {name!r}: the module {module_name!r} has no {function!r}; define there a function "
            f"of that name"
        ) from cause
    if not callable(factory):
        raise InputError(
            f"{what} {name!r} must be a function, it is of type {type(factory).__name__}"
        )
    return factory


def made(
    name: str, factory: Callable[..., Any], shape: Shape, classes: int, options: dict[str, Any]
) -> nn.Module:
    """The network that the user's factory returns, after a check that it gives (B, C) logits."""
    model = called(name, factory, {"shape": shape, "classes": classes, **options})
    _check_logits(name, model, shape, classes)
    return model


def called(name: str, factory: Callable[..., Any], arguments: dict[str, Any]) -> nn.Module:
    """The module that the user's factory returns; called with float32 as the default dtype."""
    try:
        with default_dtype(torch.float32):
            model = factory(**arguments)
    except Exception as cause:
        listed = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        raise InputError(
            f"model {name!r} must return a torch.nn.Module, it raised {_show(cause)}, when called with "
            f"{listed or 'nothing'}; correct it, or the options it is given"
        ) from cause
    if not isinstance(model, nn.Module):
        raise InputError(
            f"model {name!r} must return a torch.nn.Module, it returned {type(model).__name__}"
            f"{'; return an instance, not the class' if isinstance(model, type) else ''}"
        )
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
                f"shape {tuple(batch.shape)} raised {_show(cause)}; build the network for the shape "
                f"the factory is given"
            ) from cause
    if not isinstance(logits, Tensor) or logits.shape != (2, classes):
        came = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise InputError(
            f"model {name!r} must return logits of shape (B, classes), here (2, {classes}), it "
            f"returned {came}; end the network in a linear layer with `classes` outputs"
        )


def _show(cause: Exception) -> str:
    return f"{type(cause).__name__}: {cause}"
