"""From items to input tensors: pixels, standardised features, weighted words, an encoder's features.

An encoder is fitted on the pool's items and applied to them and to the other splits: neither
validation nor test decides a mean, a scale or a word.

Shapes: N items; C channels; D features or words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.data.record import Items, Kind
from askance.encoders import Encoder, encode, get
from askance.errors import DataError, InputError
from askance.images import SIDE, decode_image, normalised, resized

WORDS = 10_000
OnEncode = Callable[[int, int], None] | Literal["cached"]  # called with items done, and all of them


def pixels(train: Items, others: Sequence[Items]) -> list[Tensor]:
    """Images (N, H, W) or (N, H, W, C) of bytes as (N, C, 32, 32), (x/255 − ½)/½ in each channel."""
    return [normalised(resized(np.asarray(items), SIDE)) for items in (train, *others)]


def file_pixels(train: Items, others: Sequence[Items]) -> list[Tensor]:
    """Image files as (N, 3, 32, 32), (x/255 − ½)/½ in each channel."""
    return [
        normalised(np.stack([decode_image(item, f"image {row}") for row, item in enumerate(items)]))
        for items in (train, *others)
    ]


def shown_image(item: bytes) -> NDArray[np.uint8]:
    """An image file as uint8 (H, W, 3)."""
    return np.asarray(decode_image(item, "image", side=None))


def flat_pixels(train: Items, others: Sequence[Items]) -> list[Tensor]:
    """Images at their own size as rows of pixels, (x/255 − ½)/½."""
    return [normalised(np.asarray(items)).flatten(1) for items in (train, *others)]


def sixteenths(train: Items, others: Sequence[Items]) -> list[Tensor]:
    """Images of 17 gray levels as rows of pixels in [0, 1]."""
    return [
        torch.from_numpy(np.asarray(items).astype(np.float32) / 16).flatten(1)
        for items in (train, *others)
    ]


def standardised(train: Items, others: Sequence[Items]) -> list[Tensor]:
    """Features (N, D) with the mean and scale of the pool taken out."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(np.asarray(train, dtype=np.float64))
    return [
        torch.from_numpy(scaler.transform(np.asarray(items, np.float64)).astype(np.float32))
        for items in (train, *others)
    ]


def weighted_words(train: Items, others: Sequence[Items]) -> list[Tensor]:
    """TF-IDF of the pool's 10,000 most frequent words, English stop words left out, dense (N, D)."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    # Weighed in float64, so that the float32 results do not depend on a machine's last digit.
    words = TfidfVectorizer(stop_words="english", max_features=WORDS)
    try:
        first = words.fit_transform(train)
    except ValueError as error:
        raise DataError(f"no words to learn from in the texts: {error}") from error
    return [
        torch.from_numpy(matrix.astype(np.float32).toarray())
        for matrix in (first, *(words.transform(items) for items in others))
    ]


def encoded_by(
    encoder: str | Encoder, kind: Kind, on_encode: OnEncode | None = None
) -> Callable[[Items, Sequence[Items]], list[Tensor]]:
    """What turns items into a pretrained encoder's features (N, D), standardised by the pool's.

    An item is encoded once and kept in the user's cache. `on_encode` is called as the work goes on;
    with "cached" nothing is encoded, and an item that is not in the cache is an error.
    """
    if kind == "tabular":
        raise InputError(
            f"an encoder takes texts or images, the data are numbers; leave encoder = {str(encoder)!r} "
            f"out, or name the column of texts with text"
        )
    model = get(encoder, kind)

    def features(train: Items, others: Sequence[Items]) -> list[Tensor]:
        parts = [list(items) for items in (train, *others)]
        total, done, made = sum(map(len, parts)), 0, []

        def progress(here: int, _: int) -> None:
            if callable(on_encode):
                on_encode(done + here, total)

        for part in parts:
            encoded = encode(
                model,
                part,
                cache=True,
                empty_texts=True,
                only_cached=on_encode == "cached",
                progress=progress,
            )
            made.append(encoded.features)
            done += len(part)
        return standardised(made[0], made[1:])

    return features
