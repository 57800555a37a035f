"""A pretrained encoder in labelling: the features of a project's items, and of items to predict.

Shapes: N items, D features.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance import encoders
from askance.encoders import Encoder, FeatureCache, encode
from askance.errors import DataError, InputError
from askance.label.contents import checked_content
from askance.label.items import Items
from askance.label.source import Kind

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
_CHUNK_BATCHES = 4  # batches between two words of progress


@dataclass(frozen=True, eq=False)
class PretrainedInputs:
    """Turns items into features, as a model's file asks for them.

    Args:
        name: by which the encoder is opened.
        encoder: the encoder.
        digest: that of the encoder the model was trained on.
    """

    name: str
    encoder: Encoder
    digest: str

    @property
    def kind(self) -> Kind:
        """What the items are."""
        return self.encoder.kind

    @property
    def shape(self) -> list[int]:
        """The shape of one input."""
        return [self.encoder.dimension]

    @property
    def arrays(self) -> Mapping[str, NDArray[np.float64]]:
        """None: the encoder's weights are not in the model's file."""
        return {}

    def header(self) -> dict[str, Any]:
        """How a model's file names the encoder."""
        return {"name": self.name, "digest": self.digest}

    def check(self) -> None:
        """Refuse another encoder of the same name."""
        if self.encoder.digest != self.digest:
            raise DataError(
                f"the model was trained on the features of {self.name!r} with digest "
                f"{self.digest}, and the encoder here has {self.encoder.digest}, so its features "
                f"differ; install the encoder the model was trained on, or train the model again"
            )

    def __call__(self, items: Any) -> Tensor:
        """(N, D) of images (files, bytes, or uint8 arrays) or texts."""
        self.check()
        return torch.from_numpy(encode(self.encoder, items, empty_texts=True).features)


def inputs_of(
    header: Mapping[str, Any], kind: Kind, trust: bool, where: object
) -> PretrainedInputs:
    """The inputs that a model's file names.

    Only the encoders whose weights come with askance are opened without trust: a file could name code.
    """
    name, digest = header["name"], str(header["digest"])
    if name not in encoders.names() and not (trust and isinstance(name, str)):
        raise InputError(
            f"{where}: expected one of askance's own encoders ({', '.join(encoders.names())}), the "
            f"file names {name!r}, which may be code that would be imported and run, or files that "
            f"would be fetched: if you trust whoever made this file, pass trust=True"
        )
    if kind == "features":
        raise ValueError("an encoder takes images or texts, and the items are features")
    inputs = PretrainedInputs(name, encoders.get(name, kind), digest)
    inputs.check()
    return inputs


class EncodedItems:
    """The features of a project's items: from memory, from the user's cache, or encoded and kept there.

    Args:
        name: the encoder's.
        kind: what the items are.
        device: where to encode.
    """

    def __init__(self, name: str, kind: Kind, device: torch.device) -> None:
        if kind == "features":
            raise InputError(f"encoder {name!r} takes images or texts, the items are features")
        self.encoder = encoders.get(name, kind)
        self.name, self.device = name, device
        self._vectors: dict[str, NDArray[np.float32]] = {}  # by the item's digest

    @property
    def inputs(self) -> PretrainedInputs:
        """How a model's file asks for these features."""
        return PretrainedInputs(self.name, self.encoder, self.encoder.digest)

    def of(
        self, items: Items, progress: Progress | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """((N, D), zeros where there is nothing; the rows that cannot be read)."""
        here = set(items.digests)
        self._vectors = {key: one for key, one in self._vectors.items() if key in here}
        first: dict[str, int] = {}
        for row, digest in enumerate(items.digests):
            if digest not in self._vectors:
                first.setdefault(digest, row)
        missing, total = list(first.values()), len(items)
        step = self.encoder.batch_size * _CHUNK_BATCHES
        if missing:
            with FeatureCache(self.encoder) as cache:
                for start in range(0, len(missing), step):
                    if progress is not None:
                        progress(total - len(missing) + start, total)
                    self._encode(items, missing[start : start + step], cache)
        features_ND = np.zeros((total, self.encoder.dimension), np.float32)
        unreadable = []
        for row, digest in enumerate(items.digests):
            vector = self._vectors.get(digest)
            if vector is None:
                unreadable.append(row)
            else:
                features_ND[row] = vector
        return features_ND, np.asarray(unreadable, np.int64)

    def _encode(self, items: Items, rows: Sequence[int], cache: FeatureCache) -> None:
        content: dict[int, Any] = {}
        for row in rows:
            try:
                content[row] = _content(items, row)
            except DataError as error:
                log.warning("left out: %s", error)
        encoded = encode(
            self.encoder,
            content.values(),
            cache=cache,
            device=str(self.device),
            on_error="skip",
            empty_texts=True,
        )
        order = list(content)
        for place, reason in encoded.unreadable.items():
            log.warning("left out: %s: %s", items.names[order[place]], reason)
        for place, vector in zip(encoded.rows, encoded.features, strict=True):
            self._vectors[items.digests[order[int(place)]]] = vector


def _content(items: Items, row: int) -> Any:
    """A text, or an image's bytes: of just the content that the item is known by."""
    if items.kind == "text":
        return items.texts[row]
    file = items.files[row]
    return checked_content(file, items.digests[row], str(file))
