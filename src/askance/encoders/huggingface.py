"""Encoders from Hugging Face: a folder on disk, or a name that its hub knows.

Weights are read from safetensors alone, so that no file runs code, and no repository's own code is run.
Texts: the mean of the last hidden states over the tokens that are no padding. Images: the first token
where the model has a class token, else the mean over all places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from askance.encoders.encoder import Encoder, Kind, Prepared, digest_of
from askance.errors import DataError, ExtraError, InputError

# What a folder must hold of a model, whichever it is; weights in other formats are left alone.
_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
# A tokenizer without a limit of its own says a number like 10^30.
_LONGEST = 100_000
_CLASS_TOKENS = ("cls_token", "class_token", "class_embedding")


def hugging_face(name: str, kind: Kind | None = None) -> Encoder:
    """The encoder in a folder, or of a name on Hugging Face's hub.

    Args:
        name: a folder, or a name such as "facebook/dinov2-small".
        kind: "text" or "image", for models that take both; found from the folder when None.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _from_hub(name)
    return from_folder(folder, kind, name=f"hf:{name}")


def from_folder(
    folder: Path, kind: Kind | None, *, name: str, longest: int | None = None, unit: bool = False
) -> Encoder:
    """The encoder in a folder of Hugging Face's form.

    Args:
        folder: with config.json, *.safetensors, and the files of a tokenizer or an image processor.
        kind: "text" or "image"; found from the folder when None.
        name: what users call it.
        longest: the most tokens a text may have; the tokenizer's own limit when None.
        unit: whether features are scaled to length 1.
    """
    kinds = _kinds(folder)
    if kind is None and len(kinds) > 1:
        raise InputError(f"{name} takes texts and images; say which the data are")
    if not kinds or (kind is not None and kind not in kinds):
        wanted = kind or "text or image"
        raise DataError(
            f"{folder}: no {wanted} encoder in Hugging Face's form: it needs config.json, weights as "
            f"*.safetensors, and tokenizer.json (texts) or preprocessor_config.json (images); save the "
            f"model and its tokenizer or processor there with save_pretrained"
        )
    digest = digest_of(
        *(part for file in _files(folder) for part in (file.name, file.read_bytes())),
        f"{longest} {unit}",
    )
    with quiet():
        if (kind or kinds[0]) == "text":
            return TextEncoder(folder, name, digest, longest, unit)
        return ImageEncoder(folder, name, digest)


class TextEncoder(Encoder):
    """Texts by a transformer: the mean over tokens of its last hidden states."""

    kind = "text"
    batch_size = 64

    def __init__(
        self, folder: Path, name: str, digest: str, longest: int | None, unit: bool
    ) -> None:
        transformers = _transformers()
        self.name, self.digest, self.unit = name, digest, unit
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self._model = _loaded(transformers, folder)
        if getattr(self._model.config, "is_encoder_decoder", False):
            self._model = self._model.get_encoder()
        if hasattr(self._model, "text_model"):
            self._model = self._model.text_model
        self.dimension = int(self._model.config.hidden_size)
        places = getattr(self._model.config, "max_position_embeddings", _LONGEST)
        self.longest = int(longest or min(self._tokenizer.model_max_length, places, _LONGEST))

    def prepare(self, loaded: Sequence[Any]) -> Prepared:
        return tokenized(self._tokenizer, loaded, self.longest)

    def features(self, inputs: Any) -> Tensor:
        hidden_BTD = self._model(**inputs).last_hidden_state
        features_BD = mean_over_tokens(hidden_BTD, inputs["attention_mask"])
        return nn.functional.normalize(features_BD, dim=1) if self.unit else features_BD

    def to(self, device: torch.device | str) -> None:
        self._model.to(device)


class ImageEncoder(Encoder):
    """Images by a vision model, prepared by the folder's own image processor."""

    kind = "image"

    def __init__(self, folder: Path, name: str, digest: str) -> None:
        transformers = _transformers()
        self.name, self.digest = name, digest
        # Pillow's processors need no torchvision, and do not differ between machines.
        try:
            self._processor = transformers.AutoImageProcessor.from_pretrained(
                folder, use_fast=False
            )
        except ImportError as error:
            raise ExtraError(f"{name}: its image processor needs more packages: {error}") from error
        self._model = _loaded(transformers, folder)
        if hasattr(self._model, "vision_model"):
            self._model = self._model.vision_model
        parameters = [each for each, _ in self._model.named_parameters()]
        self._has_class_token = any(each.endswith(_CLASS_TOKENS) for each in parameters)
        with torch.no_grad():
            blank = self.prepare([self.load(np.zeros((32, 32, 3), np.uint8))])
            self.dimension = self.features(blank.inputs).shape[1]

    def prepare(self, loaded: Sequence[Any]) -> Prepared:
        return Prepared(self._processor(images=list(loaded), return_tensors="pt")["pixel_values"])

    def features(self, inputs: Any) -> Tensor:
        hidden: Tensor = self._model(pixel_values=inputs).last_hidden_state
        if hidden.ndim == 4:  # (B, D, H, W) of a convolutional network
            return hidden.mean(dim=(2, 3))
        return hidden[:, 0] if self._has_class_token else hidden.mean(dim=1)

    def to(self, device: torch.device | str) -> None:
        self._model.to(device)


def tokenized(tokenizer: Any, texts: Sequence[str], longest: int) -> Prepared:
    """B texts as token ids and a mask, padded to the longest of them and cut to `longest` tokens."""
    inputs = tokenizer(
        list(texts), padding=True, truncation=True, max_length=longest, return_tensors="pt"
    )
    # A tokenizer without a fast form does not say what it cut: then a text of full length counts.
    if inputs.encodings is None:
        return Prepared(dict(inputs), int((inputs["attention_mask"].sum(dim=1) >= longest).sum()))
    return Prepared(dict(inputs), sum(bool(text.overflowing) for text in inputs.encodings))


def mean_over_tokens(hidden_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    """(B, D): the mean over each text's tokens, padding left out."""
    weights_BT1 = mask_BT.to(hidden_BTD.dtype)[:, :, None]
    return (hidden_BTD * weights_BT1).sum(dim=1) / weights_BT1.sum(dim=1).clamp_min(1.0)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars and notes that transformers prints while it loads."""
    notes = _transformers().utils.logging
    verbosity, bars = notes.get_verbosity(), notes.is_progress_bar_enabled()
    notes.set_verbosity_error()
    notes.disable_progress_bar()
    try:
        yield
    finally:
        notes.set_verbosity(verbosity)
        if bars:
            notes.enable_progress_bar()


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ExtraError.of("transformers", "encoders") from error
    return transformers


def _loaded(transformers: Any, folder: Path) -> Any:
    try:
        model = transformers.AutoModel.from_pretrained(folder, use_safetensors=True)
    except (OSError, ValueError) as error:
        raise DataError(f"{folder}: the model cannot be read ({error})") from error
    return model.eval().requires_grad_(False).float()


def _files(folder: Path) -> list[Path]:
    return sorted({file for pattern in _FILES for file in folder.glob(pattern)})


def _kinds(folder: Path) -> list[Kind]:
    """What the model in a folder takes; nothing where it has no weights."""
    if not (folder / "config.json").exists() or not [*folder.glob("*.safetensors")]:
        return []
    kinds: list[Kind] = []
    if any((folder / file).exists() for file in ("tokenizer.json", "vocab.txt", "tokenizer.model")):
        kinds.append("text")
    if (folder / "preprocessor_config.json").exists():
        kinds.append("image")
    return kinds


def _from_hub(name: str) -> Path:
    """The folder of a model in Hugging Face's own cache, fetched where it is not there yet."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ExtraError.of("huggingface_hub", "encoders") from error
    try:
        return Path(snapshot_download(name, allow_patterns=_FILES))
    except Exception as error:  # of the hub, of the network, or of the name
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(
            f"encoder 'hf:{name}': there is no folder {name!r}, and the hub's model of that name could "
            f"not be fetched ({reason[0]}); with a connection, fetch it by: hf download {name}"
        ) from error
