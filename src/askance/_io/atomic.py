"""Write a file whole, or leave what was there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

from askance.errors import AskanceError, StoreError


def atomic_write(
    out: str | os.PathLike[str],
    content: bytes | Callable[[Path], object],
    *,
    error: type[AskanceError] = StoreError,
) -> None:
    """Make `content` the whole of the file `out`, at once or not at all.

    It is written to a hidden file beside `out`, flushed to the disk and renamed. A process killed
    meanwhile leaves the old file, and perhaps a hidden one whose name ends in `.part`.

    Args:
        out: the file.
        content: its bytes, or what writes them to a path that it is given.
        error: raised where the file cannot be written.
    """
    path = Path(out)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise error(f"{path} is a device or a pipe, not a file; name another file")
    partial = path.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        try:
            if callable(content):
                content(partial)
            else:
                partial.write_bytes(content)
            _flush(partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as failed:
        raise error(
            f"cannot write {path}: {failed.strerror or failed}; is the disk full? Make room, or name "
            f"another file"
        ) from failed


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
