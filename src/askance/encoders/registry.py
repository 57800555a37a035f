"""Encoders by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from askance.encoders.encoder import Encoder, Kind
from askance.errors import InputError, UnknownError

# Name → (module with a function `build`, kind). The modules import large libraries, so they wait.
_WHEELS = {"minilm": "text", "efficientnet-lite0": "image"}
_FORMS = ["hf:NAME-OR-FOLDER", "onnx:FILE", "module:function"]


def check_name(name: str) -> None:
    """Raise unless `name` could be an encoder's; nothing is imported or read."""
    form, _, rest = name.partition(":")
    if name not in _WHEELS and not (form and rest):
        raise UnknownError.of("encoder", name, [*names(), *_FORMS])


def names() -> list[str]:
    """The encoders whose weights come with `askance[encoders]`."""
    return list(_WHEELS)


def get(name: str | Encoder, kind: Kind | None = None) -> Encoder:
    """The encoder of a name, with its weights read and checked.

    Args:
        name: one of `names()`, "hf:NAME-OR-FOLDER", "onnx:FILE", "module:function" (a function without
            arguments that returns an `Encoder`), or an `Encoder`, which is returned as it is.
        kind: what it must take, "text" or "image"; whatever it does when None.

    Example:
        >>> from askance import encoders
        >>> encoders.names()
        ['minilm', 'efficientnet-lite0']
    """
    encoder = name if isinstance(name, Encoder) else _built(name, kind)
    if kind is not None and encoder.kind != kind:
        others = [each for each, its in _WHEELS.items() if its == kind]
        raise InputError(
            f"encoder {encoder.name!r} takes {encoder.kind}s, the data are {kind}s; use one for "
            f"{kind}s, such as {', '.join(map(repr, others))}"
        )
    return encoder


def _built(name: object, kind: Kind | None) -> Encoder:
    if not isinstance(name, str):
        raise InputError(
            f"an encoder is named by a string, or is an Encoder; got {type(name).__name__}"
        )
    check_name(name)
    if name == "minilm":
        from askance.encoders.wheels import minilm

        return minilm()
    if name == "efficientnet-lite0":
        from askance.encoders.wheels import efficientnet_lite0

        return efficientnet_lite0()
    form, _, rest = name.partition(":")
    if form == "hf":
        from askance.encoders.huggingface import hugging_face

        return hugging_face(rest, kind)
    if form == "onnx":
        from askance.encoders.onnx import onnx_file

        return onnx_file(Path(rest))
    return _own(name)


def _own(name: str) -> Encoder:
    module_name, _, function = name.partition(":")
    try:
        make: Callable[[], object] = getattr(import_module(module_name), function)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"encoder {name!r} cannot be imported ({error}); name a function of a module on "
            f"PYTHONPATH that takes no arguments and returns an askance.encoders.Encoder"
        ) from error
    encoder = make()
    if not isinstance(encoder, Encoder):
        raise InputError(
            f"encoder {name!r} must return an askance.encoders.Encoder, it returned "
            f"{type(encoder).__name__}; a FunctionEncoder makes one of a function"
        )
    return encoder
