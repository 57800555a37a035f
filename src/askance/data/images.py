"""Bytes of image files to arrays, and arrays to another size."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from askance.errors import DataError

SIDE = 32
MOST_PIXELS = 64_000_000
THUMBNAIL = 256
# No other of Pillow's many readers is let at the bytes. Tried in this order.
FORMATS = ("WEBP", "PNG", "PPM", "JPEG", "BMP", "GIF", "TIFF")

# What Pillow raises for a file that is no image, or half of one.
_UNREADABLE = (
    UnidentifiedImageError,
    Image.DecompressionBombError,
    OSError,
    SyntaxError,
    ValueError,
)


def decode_image(
    data: bytes | Path, name: str, *, side: int | None = SIDE, most: int = MOST_PIXELS
) -> Any:
    """One image file as uint8 (side, side, 3); at its own size where `side` is None.

    The size written in the header is checked against `most` pixels before anything is unpacked.
    """
    stream: BinaryIO | Path = io.BytesIO(data) if isinstance(data, bytes) else data
    try:
        with Image.open(stream, formats=FORMATS) as image:
            width, height = image.size
            if width * height > most:
                raise DataError(
                    f"{name}: an image of {width}×{height} pixels; at most {most:,} are read"
                )
            colour = _in_eight_bits(image, name).convert("RGB")
            if side is not None and colour.size != (side, side):
                colour = colour.resize((side, side), Image.Resampling.BILINEAR)
            return np.asarray(colour)
    except DataError:
        raise
    except _UNREADABLE as error:
        raise DataError(f"{name}: not a readable image ({error})") from error


def _in_eight_bits(image: Image.Image, name: str) -> Image.Image:
    """The image with a byte a channel; Pillow by itself would make white of all above 255."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return Image.fromarray((np.asarray(image).astype(np.int64) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise DataError(
            f"{name}: an image of 32 bits a pixel, whose range is not known; save it with 8 or 16"
        )
    return image


def thumbnail(path: Path) -> NDArray[np.uint8]:
    """An image file as uint8 (H, W, 3), made smaller where it is larger than 256 pixels."""
    colour = Image.fromarray(decode_image(path, str(path), side=None))
    colour.thumbnail((THUMBNAIL, THUMBNAIL))
    return np.asarray(colour)


def resized(images: NDArray[Any], side: int) -> NDArray[Any]:
    """Images (N, H, W) or (N, H, W, 3) at side×side, bilinear, antialiased where they shrink."""
    if images.shape[1:3] == (side, side):
        return images
    out = np.empty((len(images), side, side, *images.shape[3:]), dtype=np.uint8)
    for row, image in enumerate(images):
        out[row] = Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR)
    return out
