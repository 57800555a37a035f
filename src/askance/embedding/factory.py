"""A user's own function, named "module:function"."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from askance.embedding.guard import default_dtype
from askance.errors import InputError


def import_from(folder: str | Path) -> None:
    """Let modules be found in this folder too, after everywhere else."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


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
            f"({described_error(cause)}); install it, or put its folder on PYTHONPATH"
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


def called(name: str, factory: Callable[..., Any], arguments: dict[str, Any]) -> nn.Module:
    """The module that the user's factory returns; called with float32 as the default dtype."""
    try:
        with default_dtype(torch.float32):
            model = factory(**arguments)
    except Exception as cause:
        options = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        raise InputError(
            f"model {name!r} must return a torch.nn.Module, it raised {described_error(cause)}, when "
            f"called with {options or 'nothing'}; correct it, or the options it is given"
        ) from cause
    if not isinstance(model, nn.Module):
        raise InputError(
            f"model {name!r} must return a torch.nn.Module, it returned {type(model).__name__}"
            f"{'; return an instance, not the class' if isinstance(model, type) else ''}"
        )
    return model


def described_error(error: Exception) -> str:
    """An error in words, with its type."""
    return f"{type(error).__name__}: {error}"
