"""What an encoder is: a pretrained model that turns items into features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from askance.errors import InputError
from askance.images import open_image

Kind = Literal["text", "image"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A batch that is ready for the model.

    Args:
        inputs: what `Encoder.features` takes; tensors, or a dict of tensors.
        cut: how many of its texts were longer than the model reads.
    """

    inputs: Any
    cut: int = 0


class Encoder(ABC):
    """A pretrained model from items to features.

    `load` and `prepare` are called by several threads at a time, `features` by one.

    Attributes:
        name: what users call it.
        kind: "text" or "image".
        dimension: D, the number of features.
        digest: changes whenever the same item would get other features. Cached features carry it.
        batch_size: how many items a batch has unless the caller says otherwise.
        draft: the side of pixels of an image that is enough, so that a large photo is read faster.
    """

    name: str
    kind: Kind
    dimension: int
    digest: str
    batch_size: int = 32
    draft: int | None = None

    def load(self, item: Any) -> Any:
        """One item as `prepare` takes it. The default opens images and leaves texts as they are.

        Raises `DataError` where the item cannot be read.
        """
        return rgb(item, self.draft) if self.kind == "image" else item

    @abstractmethod
    def prepare(self, loaded: Sequence[Any]) -> Prepared:
        """B loaded items as a batch on the CPU."""

    @abstractmethod
    def features(self, inputs: Any) -> Tensor:
        """(B, D) features of a batch's inputs, which are on the encoder's device."""

    def to(self, device: torch.device | str) -> None:  # noqa: B027 (a model may have one place alone)
        """Move the model to a device. The default does nothing."""

    def __repr__(self) -> str:
        return f"Encoder({self.name}: {self.kind}, {self.dimension} features, {self.digest[:12]})"


class FunctionEncoder(Encoder):
    """An encoder made of a function.

    Args:
        function: takes a list of B texts, or of B images as uint8 arrays (H, W, 3); returns (B, D).
        kind: "text" or "image".
        version: change it whenever the function's features change, so that old ones are not reused.
        name: what users call it; the function's own name when None.

    Example:
        >>> from askance import encoders
        >>> lengths = encoders.FunctionEncoder(lambda ts: [[len(t), 1.0] for t in ts], "text", "1")
        >>> encoders.encode(lengths, ["one", "three"]).features.tolist()
        [[3.0, 1.0], [5.0, 1.0]]
    """

    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        kind: Kind,
        version: str,
        *,
        name: str | None = None,
    ) -> None:
        if kind not in ("text", "image"):
            raise InputError(f"kind must be 'text' or 'image', got {kind!r}")
        self.function, self.kind = function, kind
        self.name = name or f"{function.__module__}:{function.__qualname__}"
        self.digest = digest_of(self.name, str(version))
        probe = "text" if kind == "text" else np.zeros((32, 32, 3), dtype=np.uint8)
        self.dimension = self._matrix([probe]).shape[1]

    def load(self, item: Any) -> Any:
        return np.asarray(rgb(item, self.draft)) if self.kind == "image" else item

    def prepare(self, loaded: Sequence[Any]) -> Prepared:
        return Prepared(list(loaded))

    def features(self, inputs: Any) -> Tensor:
        return self._matrix(inputs)

    def _matrix(self, items: list[Any]) -> Tensor:
        value = self.function(items)
        matrix = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
        if matrix.ndim != 2 or len(matrix) != len(items) or matrix.shape[1] == 0:
            raise InputError(
                f"encoder {self.name!r} must return one row of features for each item, shape "
                f"({len(items)}, D); it returned {tuple(matrix.shape)}"
            )
        return matrix.float()


def digest_of(*parts: str | bytes) -> str:
    """32 hex digits of some parts, kept apart."""
    digest = blake2b(digest_size=16)
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def rgb(item: Any, draft: int | None = None) -> Image.Image:
    """An image of any form as Pillow's RGB, upright.

    Args:
        item: the path of an image file or its bytes, a Pillow image, or a uint8 array (H, W) or
            (H, W, 3).
        draft: see `askance.images.open_image`.
    """
    if isinstance(item, (bytes, str, Path)):
        data = Path(item) if isinstance(item, str) else item
        return open_image(data, "the image" if isinstance(item, bytes) else str(item), draft=draft)
    if isinstance(item, Image.Image):
        return ImageOps.exif_transpose(item).convert("RGB")
    if not isinstance(item, np.ndarray):
        raise InputError(
            f"an image must be a path, the bytes of a file, a Pillow image or a uint8 array, got "
            f"{type(item).__name__}"
        )
    coloured = item.ndim == 3 and item.shape[2] == 3
    if item.dtype != np.uint8 or not (item.ndim == 2 or coloured):
        raise InputError(
            f"an image must be a uint8 array (H, W) or (H, W, 3), got {item.dtype} of shape "
            f"{item.shape}"
        )
    return Image.fromarray(item).convert("RGB")
