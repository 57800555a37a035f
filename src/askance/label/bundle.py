"""A trained model as one file: weights, class names, and how an item becomes an input.

The file is safetensors: numbers and a JSON header, no code to run. `load` gives back something that
answers:

    bundle = askance.label.load("model.safetensors")
    names, confidence = bundle.predict(["a text", "another"])

A file whose network or encoder is a function of yours only names that function. To load it means to
import and run what the file names, so the caller has to say `trust=True`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import askance
from askance import encoders, models
from askance._io.atomic import atomic_write
from askance.data.encode import WORDS, pixels
from askance.embedding import embed
from askance.encoders.linear import LinearModel
from askance.errors import AskanceError, DataError, InputError
from askance.images import decode_image
from askance.label.pretrained import PretrainedInputs, inputs_of
from askance.label.source import LINEAR, Kind
from askance.seeding import Draws

FORM = "askance-label-1"
_WEIGHTS = "model."
_ARRAYS = {"image": (), "text": ("idf",), "features": ("mean", "scale")}


@dataclass(frozen=True, eq=False)
class ItemEncoder:
    """Turns items into inputs. It is fitted on all items of the project.

    Images become (x/255 − ½)/½, texts TF-IDF of the most frequent words without English stop words,
    and features lose their mean and scale.

    Args:
        kind: what the items are.
        arrays: "mean" and "scale" (D,) of features, "idf" (D,) of words.
        words: the D words of texts.
    """

    kind: Kind
    arrays: Mapping[str, NDArray[np.float64]]
    words: tuple[str, ...] = ()

    def header(self) -> dict[str, Any]:
        """What a model's file says of it, beside the arrays."""
        return {"words": list(self.words)} if self.words else {}

    @property
    def shape(self) -> list[int]:
        """The shape of one input."""
        return [len(next(iter(self.arrays.values())))] if self.arrays else [3, 32, 32]

    def __call__(self, items: Any) -> Tensor:
        """Images (N, 32, 32, 3) of bytes or files of them, N texts, or features (N, D), as inputs."""
        if self.kind == "image":
            if not isinstance(items, np.ndarray):
                items = np.stack([decode_image(Path(file), str(file)) for file in items])
            return pixels(items, [])[0]
        if self.kind == "text":
            vectorizer = _vectorizer(vocabulary=list(self.words))
            vectorizer.idf_ = self.arrays["idf"]
            return torch.from_numpy(vectorizer.transform(items).astype(np.float32).toarray())
        features = np.asarray(items, np.float64)
        if features.ndim != 2 or features.shape[1:] != tuple(self.shape):
            raise InputError(f"features must have shape (N, {self.shape[0]}), got {features.shape}")
        scaled = (features - self.arrays["mean"]) / self.arrays["scale"]
        return torch.from_numpy(scaled.astype(np.float32))


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(stop_words="english", **options)


def encoder_for(kind: Kind, raw: Any) -> ItemEncoder:
    """The encoder of that kind, fitted on all items; answers play no part."""
    if kind == "image":
        return ItemEncoder(kind, {})
    if kind == "features":
        features = np.asarray(raw, np.float64)
        scale = features.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        return ItemEncoder(kind, {"mean": features.mean(axis=0), "scale": scale})
    vectorizer = _vectorizer(max_features=WORDS)
    try:
        vectorizer.fit(raw)
    except ValueError as error:
        raise DataError(f"no words to learn from in the texts: {error}") from error
    words = tuple(vectorizer.get_feature_names_out())
    return ItemEncoder(kind, {"idf": np.asarray(vectorizer.idf_)}, words)


@dataclass(frozen=True, eq=False)
class Bundle:
    """A model with its classes and its encoder.

    Args:
        model: inputs to logits.
        name: one of askance's networks, "linear", or "module:function".
        classes: in the order of the logits.
        encoder: items to inputs.
        temperature: what logits are divided by, so that probabilities are about right.
    """

    model: nn.Module
    name: str
    classes: tuple[str, ...]
    encoder: ItemEncoder | PretrainedInputs
    temperature: float = 1.0

    def predict(self, items: Any) -> tuple[list[str], NDArray[np.float32]]:
        """The class of each item and the probability it is given.

        Items are texts, image files or arrays (N, 32, 32, 3) of bytes, or feature vectors (N, D).
        """
        if isinstance(items, (str, bytes, Path)):
            raise InputError(f"items must be a list, got one {type(items).__name__}; pass [item]")
        logits = embed(self.model, self.encoder(items)).logits
        assert logits is not None
        confidence, choice = torch.softmax(logits / self.temperature, dim=1).max(dim=1)
        return [self.classes[c] for c in choice.tolist()], confidence.numpy()

    def card(self, **more: Any) -> dict[str, Any]:
        """What the file says of itself."""
        own = self.name not in (*models.names(), LINEAR)
        if isinstance(self.encoder, PretrainedInputs):
            own = own or self.encoder.name not in encoders.names()
        trust = ", trust=True" if own else ""
        return {
            "form": FORM,
            "askance": askance.__version__,
            "kind": self.encoder.kind,
            "model": self.name,
            "classes": list(self.classes),
            "shape": self.encoder.shape,
            "load": f'askance.label.load("model.safetensors"{trust}).predict(items)',
            **more,
            "temperature": self.temperature,
            "encoder": self.encoder.header(),
        }

    def save(self, path: Path, **more: Any) -> None:
        """Write the file, whole or not at all."""
        from safetensors.torch import save

        model = self.model.cpu()
        tensors = {f"{_WEIGHTS}{key}": value for key, value in model.state_dict().items()}
        for key, array in self.encoder.arrays.items():
            tensors[f"encoder.{key}"] = torch.from_numpy(array)
        header = {"askance": json.dumps(self.card(**more), ensure_ascii=False)}
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(
            path, save({key: value.contiguous() for key, value in tensors.items()}, header)
        )


def load(path: str | os.PathLike[str], *, trust: bool = False) -> Bundle:
    """A model that `askance label` exported.

    Args:
        path: the file.
        trust: whether the file may name a "module:function" to import and run, or an encoder that does
            not come with askance. Without it nothing is imported but askance's own models and encoders.

    A model on a pretrained encoder needs that encoder, with the digest that the file names.
    """
    header, tensors = _content(path)
    if header.get("form") != FORM:
        raise DataError(f"{path}: a safetensors file, but not a model that askance label exported")
    name = header.get("model")
    if name not in (*models.names(), LINEAR) and not (trust and isinstance(name, str)):
        raise InputError(
            f"{path}: expected one of askance's own networks ({', '.join(models.names())}), the file "
            f"names {name!r}; a module:function is code that would be imported and run: if you trust "
            f"whoever made this file, pass trust=True"
        )
    try:
        encoder = _encoder(header, tensors, trust, path)
        temperature = _temperature(header)
        shape, classes = list(header["shape"]), [str(each) for each in header["classes"]]
        if shape != encoder.shape:
            raise ValueError(f"inputs of shape {encoder.shape} and a network for {shape}")
        if name == LINEAR and len(shape) != 1:
            raise ValueError(f"inputs of shape {shape} and a linear model, which takes vectors")
        if isinstance(encoder, PretrainedInputs) and name != LINEAR:
            raise ValueError(f"a pretrained encoder and the network {name!r}")
    except AskanceError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: expected the header of a model that askance label exported, got one that does "
            f"not fit ({type(error).__name__}: {error}); export the model again"
        ) from error
    model: nn.Module
    if name == LINEAR:
        model = LinearModel.untrained(shape[0], len(classes))
    else:
        model = models.build(name, shape, len(classes), Draws())
    weights = {
        key.removeprefix(_WEIGHTS): value
        for key, value in tensors.items()
        if key.startswith(_WEIGHTS)
    }
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(
            f"{path}: expected the weights of {name} for {len(classes)} classes, got others ({error}); "
            f"export the model again"
        ) from error
    return Bundle(model.eval(), name, tuple(classes), encoder, temperature)


def _content(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What the file says of itself, and its tensors."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("askance", "{}"))
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a readable safetensors file ({error})") from error
    return header if isinstance(header, dict) else {}, tensors


def header_of(path: Path) -> dict[str, Any]:
    """What a model's file says of itself."""
    from safetensors import safe_open

    with safe_open(os.fspath(path), framework="pt") as file:
        return json.loads(file.metadata()["askance"])


def _temperature(header: dict[str, Any]) -> float:
    """What the file says; those of earlier versions say nothing."""
    temperature = float(header.get("temperature", 1.0))
    if not 0 < temperature < float("inf"):
        raise ValueError(f"the temperature must be a number above 0, got {temperature}")
    return temperature


def _encoder(
    header: dict[str, Any], tensors: dict[str, Tensor], trust: bool, path: object
) -> ItemEncoder | PretrainedInputs:
    kind = header["kind"]
    if kind not in _ARRAYS:
        raise ValueError(f"kind must be image, text or features, got {kind!r}")
    if "name" in header["encoder"]:
        return inputs_of(header["encoder"], kind, trust, path)
    words = header["encoder"]["words"] if kind == "text" else ()
    arrays = {name: tensors[f"encoder.{name}"].numpy() for name in _ARRAYS[kind]}
    return ItemEncoder(kind, arrays, tuple(words))
