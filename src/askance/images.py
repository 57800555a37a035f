"""Image files to pixels: the same for a dataset, a pool, a labelling page and an encoder."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from askance.errors import DataError

SIDE = 32
MOST_PIXELS = 64_000_000
THUMBNAIL = 256
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
# No other of Pillow's many readers is let at the bytes. Tried in this order.
FORMATS = ("WEBP", "PNG", "PPM", "JPEG", "BMP", "GIF", "TIFF")

# The brands of HEIF's container that mean HEIC or AVIF.
_HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")


class PixelBudget:
    """Lets threads unpack images as long as these have at most so many pixels together.

    A large image is unpacked alone: one of 64 million pixels takes up to 700 MB for a moment.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.reset()

    def reset(self) -> None:
        """Forget the threads there were: a forked process has none of them."""
        self._used = 0
        self._next, self._changed = threading.Lock(), threading.Condition()

    @contextmanager
    def reserve(self, pixels: int) -> Iterator[None]:
        """Wait until there is room for so many; who came first is let in first."""
        with self._next, self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + pixels <= self._most)
            self._used += pixels
        try:
            yield
        finally:
            with self._changed:
                self._used -= pixels
                self._changed.notify_all()


_UNPACKING = PixelBudget(MOST_PIXELS)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_UNPACKING.reset)


def open_image(
    data: bytes | Path, name: str, *, most: int = MOST_PIXELS, draft: int | None = None
) -> Image.Image:
    """One image file as Pillow's RGB, turned as its EXIF orientation says.

    The size written in the header is checked against `most` pixels before anything is unpacked.

    Args:
        data: the file, or its bytes.
        name: what messages call it.
        most: the most pixels it may have.
        draft: a side of pixels that is enough: a JPEG may be read at a half, a quarter or an eighth of
            its size, as long as neither side falls below.
    """
    try:
        content = data if isinstance(data, bytes) else data.read_bytes()
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror})") from error
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            image: Image.Image = opened
            width, height = image.size
            if width * height > most:
                raise DataError(
                    f"{name}: an image of {width}×{height} pixels; at most {most:,} are read"
                )
            if draft is not None:
                image.draft("RGB", (draft, draft))
            with _UNPACKING.reserve(image.width * image.height):
                image = _in_eight_bits(image, name)
                ImageOps.exif_transpose(image, in_place=True)
                return image.convert("RGB")
    except DataError:
        raise
    except Exception as error:  # whatever a damaged file makes one of Pillow's readers raise
        if content[4:8] == b"ftyp" and content[8:12] in _HEIF_BRANDS:
            raise DataError(
                f"{name}: HEIC images cannot be read; save it as JPEG or PNG"
            ) from error
        reason = "of no known format" if isinstance(error, UnidentifiedImageError) else str(error)
        raise DataError(f"{name}: not a readable image ({reason})") from error


def decode_image(
    data: bytes | Path, name: str, *, side: int | None = SIDE, most: int = MOST_PIXELS
) -> Any:
    """One image file as uint8 (side, side, 3); at its own size where `side` is None."""
    colour = open_image(data, name, most=most)
    if side is not None and colour.size != (side, side):
        colour = colour.resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(colour)


def _in_eight_bits(image: Image.Image, name: str) -> Image.Image:
    """The image with a byte a channel; Pillow by itself would make white of all above 255."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
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


def normalised(images: NDArray[Any]) -> Tensor:
    """Images (N, H, W) or (N, H, W, C) of bytes as (N, C, H, W), (x/255 − ½)/½ in each channel."""
    images_NHWC = images if images.ndim == 4 else images[..., None]
    # One float32 copy, then in place: a pool of 100,000 images is 1.2 GB.
    inputs = torch.from_numpy(np.ascontiguousarray(np.moveaxis(images_NHWC, 3, 1))).float()
    return inputs.div_(127.5).sub_(1.0)
