"""The paper's networks, by name, and the way to a user's own.

A network is an ordinary `nn.Module` from a batch (B, *shape) to logits (B, C): B points in the
mini-batch, C classes. The four here are made of common layers alone, `nn.Flatten` included, and draw
nothing in the forward pass, so copies of one can be stacked and trained side by side.
They are trained from random weights: PyTorch's default initialisation, unless `init` says otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from askance._checks import check_whole
from askance.embedding.factory import imported
from askance.embedding.guard import default_dtype, preserved_rng, reseed
from askance.errors import InputError, UnknownError
from askance.models import own
from askance.models.head import Shape
from askance.models.lenet import LeNet
from askance.models.linear import Linear
from askance.models.mlp import MLP
from askance.models.resnet18 import ResNet18
from askance.models.vgg16 import VGG16
from askance.seeding import Draws

_BUILTIN: dict[str, type[nn.Module]] = {
    "mlp": MLP,
    "linear": Linear,
    "lenet": LeNet,
    "vgg16": VGG16,
    "resnet18": ResNet18,
}


def names() -> list[str]:
    """Every network of askance's own."""
    return list(_BUILTIN)


def get(name: str) -> Callable[..., Any]:
    """The function that makes the network: askance's class, or the user's "module:function".

    Example:
        >>> from askance import models
        >>> models.get("lenet").__name__
        'LeNet'
    """
    if name in _BUILTIN:
        return _BUILTIN[name]
    if isinstance(name, str) and ":" in name:
        return imported(name)
    raise UnknownError.of("model", name, [*names(), "module:function"])


def build(name: str, shape: Sequence[int], classes: int, draws: Draws, **options: Any) -> nn.Module:
    """A network with initial weights that depend on `draws` alone, made on the CPU.

    Weights are float32 whatever PyTorch's default dtype, and the global generators are afterwards as
    they were. A user's factory is called as `function(shape=..., classes=..., **options)` with
    PyTorch's, NumPy's and Python's generators seeded, and what it returns is tried on two points in
    evaluation mode.

    Args:
        name: one of `names()`, or "module:function" for the user's own.
        shape: of one example: (features,) or (channels, 32, 32).
        classes: C, the width of the logits.
        draws: the randomness of one (seed, round).
        options: the network's own: `init` for all four, `batch_norm` for vgg16, `stem` for resnet18.

    Example:
        >>> from askance import models
        >>> from askance.seeding import Draws
        >>> model = models.build("lenet", (3, 32, 32), classes=10, draws=Draws(seed=0, round=1))
        >>> sum(weights.numel() for weights in model.parameters())
        342082
    """
    sizes = _sizes(shape)
    classes = check_whole("classes", classes, 1)
    # Under these defaults, weights are drawn alike whatever the machine computes on.
    with preserved_rng(), torch.device("cpu"), default_dtype(torch.float32):
        factory = get(name)
        _check_options(name, factory, options)
        # After the import of a user's module, which may draw or seed on its own.
        reseed(int(draws.generator("weights").integers(2**63)))
        if name in _BUILTIN:
            return factory(shape=sizes, classes=classes, **options)
        return own.made(name, factory, sizes, classes, options)


def _check_options(name: str, factory: Callable[..., Any], options: dict[str, Any]) -> None:
    try:
        parameters = inspect.signature(factory).parameters
    except ValueError:  # a callable without a signature says for itself what it does not take
        return
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    named = [
        label
        for label, p in parameters.items()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    missing = [label for label in ("shape", "classes") if label not in named]
    if missing and not takes_any:
        raise InputError(
            f"model {name!r} must be a function with parameters named shape and classes, it has "
            f"{', '.join(named) or 'none'}; add {' and '.join(missing)}"
        )
    possible = [label for label in named if label not in ("shape", "classes")]
    unknown = [label for label in options if label not in named]
    if unknown and not takes_any:
        raise InputError(
            f"model {name!r} has no option {', '.join(map(repr, unknown))}; "
            f"its options: {', '.join(possible) or 'none'}"
        )


def _sizes(shape: Sequence[int]) -> Shape:
    if not isinstance(shape, Sequence) or not shape:
        raise InputError(
            f"shape must be the sizes of one example, such as (617,) or (3, 32, 32), got {shape!r}"
        )
    return tuple(check_whole("each size in shape", size, 1) for size in shape)


__all__ = ["MLP", "VGG16", "LeNet", "Linear", "ResNet18", "build", "get", "names"]
