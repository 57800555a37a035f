"""A model behind wrappers that train it in parallel or compile it: the module inside has the layers."""

from __future__ import annotations

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

_PREFIXES = ("module", "_orig_mod")


def unwrapped(model: nn.Module) -> nn.Module:
    """The module inside, which shares every parameter.

    A compiled module's hooks may be traced away, and one behind DataParallel is copied for each device,
    so that its layers are called several times in a pass.
    """
    while True:
        inner = getattr(model, "_orig_mod", None)
        if isinstance(model, (DataParallel, DistributedDataParallel)):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def has_compiled_layer(model: nn.Module) -> bool:
    """Whether a layer is compiled by itself; its hooks are called if it runs as written."""
    return any(hasattr(module, "_orig_mod") for module in model.modules())


def name_within(model: nn.Module, name: str) -> str:
    """A layer's name inside the wrappers, also where it was given with theirs: `module.fc`."""
    names = dict(model.named_modules())
    stripped = name
    while stripped not in names and stripped.partition(".")[0] in _PREFIXES:
        stripped = stripped.partition(".")[2]
    if stripped not in names:  # a layer that is compiled by itself
        inner = f"{stripped}._orig_mod"
        stripped = inner if inner in names else name
    elif f"{stripped}._orig_mod" in names:
        stripped = f"{stripped}._orig_mod"
    return stripped
