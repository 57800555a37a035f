"""An image as it is shown: decoded, made smaller, and encoded anew.

What reaches the browser was written here: no byte of the user's file, no metadata, no script in it.
"""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Literal, NamedTuple

from PIL import Image

from askance.errors import DataError
from askance.images import open_image
from askance.label.contents import checked_content
from askance.label.items import Items

Size = Literal["small", "page", "full"]
SIDES: dict[Size, int | None] = {"small": 240, "page": 1600, "full": None}
MOST_BYTES = 100_000_000
_SMALL = 256 * 256  # pixels up to which PNG is small enough, and exact
_JPEG_SIDE = 65_000  # pixels that a side of a JPEG may have
_KEPT_BYTES = 96_000_000


class UndecodableImageError(DataError):
    """A file whose content is no image that can be shown, however often it is looked at."""


class PageImage(NamedTuple):
    """An image for the browser: its content and media type."""

    content: bytes
    kind: str


class PageImages:
    """The images of a project as the page shows them, each made once, as long as there is room.

    Safe to use from several threads; two that ask for the same image at once may both make it.
    """

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[Path, int, str, Size], PageImage | str] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, items: Items, row: int, size: Size = "page") -> PageImage:
        """The image of a row; a `DataError` says why it cannot be shown."""
        file, digest = items.files[row], items.digests[row]
        try:
            changed = file.stat().st_mtime_ns
        except OSError as error:
            raise DataError(f"{items.names[row]}: is gone ({error.strerror})") from error
        key = (file, changed, digest, size)
        with self._lock:
            made = self._made.get(key)
            if made is not None:
                self._made.move_to_end(key)
        if made is None:
            try:
                made = page_image(file, items.source.path, digest, size)
            except UndecodableImageError as error:
                made = str(error)
            self._keep(key, made)
        if isinstance(made, str):
            raise UndecodableImageError(made)
        return made

    def problem(self, items: Items, item: str) -> str | None:
        """Why an item's content cannot be shown; None where it can, or where its file is gone now."""
        row = items.position.get(item)
        if row is None or items.kind != "image":
            return None
        try:
            self.get(items, row)
        except UndecodableImageError as error:
            return str(error)
        except DataError:
            return None  # the next look at the data tells what became of it
        return None

    def _keep(self, key: tuple[Path, int, str, Size], made: PageImage | str) -> None:
        with self._lock:
            if key not in self._made:
                self._bytes += _length(made)
            self._made[key] = made
            while self._bytes > _KEPT_BYTES and len(self._made) > 1:
                self._bytes -= _length(self._made.popitem(last=False)[1])


def _length(made: PageImage | str) -> int:
    return len(made) if isinstance(made, str) else len(made.content)


def page_image(file: Path, root: Path, digest: str | None = None, size: Size = "page") -> PageImage:
    """An image encoded anew, as large as the page wants it.

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
    side = SIDES[size]
    # The shorter side of most photos is three quarters of the longer, or less.
    try:
        image = open_image(content, where, draft=None if side is None else side * 3 // 4)
    except DataError as error:
        raise UndecodableImageError(str(error)) from error
    if side is not None:
        image.thumbnail((side, side))
    # Nothing but the pixels goes on: a format's own notes would be written again.
    image = Image.frombytes("RGB", image.size, image.tobytes())
    out = io.BytesIO()
    if image.width * image.height <= _SMALL or max(image.size) > _JPEG_SIDE:
        image.save(out, "PNG")
        return PageImage(out.getvalue(), "image/png")
    image.save(out, "JPEG", quality=90 if side else 95, subsampling=0)
    return PageImage(out.getvalue(), "image/jpeg")
