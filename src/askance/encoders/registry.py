"""Encoders by name."""

from __future__ import annotations

from pathlib import Path

from askance.embedding.factory import imported
from askance.encoders.encoder import Encoder, Kind
from askance.errors import InputError, UnknownError

# Name → (kind, the function of `askance.encoders.wheels` that makes it). That module imports large
# libraries, so it waits.
_WHEELS = {"minilm": ("text", "minilm"), "efficientnet-lite0": ("image", "efficientnet_lite0")}
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
        others = [each for each, (its, _) in _WHEELS.items() if its == kind]
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
    if name in _WHEELS:
        return _made(name, f"askance.encoders.wheels:{_WHEELS[name][1]}")
    form, _, rest = name.partition(":")
    if form == "hf":
        from askance.encoders.huggingface import hugging_face

        return hugging_face(rest, kind)
    if form == "onnx":
        from askance.encoders.onnx import onnx_file

        return onnx_file(Path(rest))
    return _made(name, name)


def _made(name: str, function: str) -> Encoder:
    encoder = imported(function, "encoder")()
    if not isinstance(encoder, Encoder):
        raise InputError(
            f"encoder {name!r} must return an askance.encoders.Encoder, it returned "
            f"{type(encoder).__name__}; a FunctionEncoder makes one of a function"
        )
    return encoder
