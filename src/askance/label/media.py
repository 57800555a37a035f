"""An image as it is shown: decoded, made smaller, and encoded anew.

What reaches the browser was written here: no byte of the user's file, no metadata, no script in it.
"""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from askance.errors import DataError
from askance.images import decode_image
from askance.label.contents import checked_content

SIDE = 1024
MOST_BYTES = 100_000_000
_SMALL = 256 * 256  # pixels up to which PNG is small enough, and exact


def page_image(file: Path, root: Path, digest: str | None = None) -> tuple[bytes, str]:
    """An image's new encoding and its media type.

    A file outside `root` is refused, and one with other content than the digest says: an answer to it
    would be kept as one to what was there before.
    """
    where = file.name
    try:
        real = file.resolve(strict=True)
        # Looked at when it is shown, not only when the folder was read: links change.
        if not real.is_relative_to(root.resolve(strict=True)):
            raise DataError(f"{where}: leaves the data's folder")
        if not real.is_file():
            raise DataError(f"{where}: is not a file")
        if real.stat().st_size > MOST_BYTES:
            raise DataError(f"{where}: is larger than {MOST_BYTES:,} bytes")
    except OSError as error:
        raise DataError(f"{where}: cannot be read ({error.strerror})") from error
    content = checked_content(real, digest, where)
    image = Image.fromarray(decode_image(content, where, side=None))
    image.thumbnail((SIDE, SIDE))
    small = image.width * image.height <= _SMALL
    out = io.BytesIO()
    if small:
        image.save(out, "PNG")
        return out.getvalue(), "image/png"
    image.save(out, "WEBP", quality=88)
    return out.getvalue(), "image/webp"
