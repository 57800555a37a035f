"""Files by local path or by any fsspec address, and whether they are still what was listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import fsspec

from askance.errors import DataError, ShardError
from askance.pools.source import Shard


def is_remote(address: str) -> bool:
    """Whether it is an fsspec address rather than a local path."""
    return "://" in address


def system(address: str) -> tuple[Any, str]:
    """(file system, path in it) of an address."""
    try:
        return fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise DataError(f"{address}: {error}") from error


def listed(address: str, suffixes: Sequence[str]) -> list[tuple[str, str, str]]:
    """(address, name under the folder, stamp) of a file, or of all such files in a folder, in order.

    Hidden files, and files in hidden folders, are left out, as are those that begin with "_".
    """
    files, path = system(address)
    scheme = f"{address.split('://', 1)[0]}://" if is_remote(address) else ""
    if not files.exists(path):
        raise DataError(f"{address}: no such file or folder")
    if files.isfile(path):
        return [(scheme + path, path.rsplit("/", 1)[-1], _stamp(files.info(path)))]
    rows = []
    for file in sorted(files.find(path)):
        name = file.removeprefix(path).lstrip("/")
        hidden = any(part.startswith((".", "_")) for part in name.split("/"))
        if not hidden and name.lower().endswith(tuple(suffixes)):
            rows.append((scheme + file, name, _stamp(files.info(file))))
    if not rows:
        raise DataError(f"{address}: no file in it ends in {' or '.join(suffixes)}")
    return rows


@contextmanager
def reading(shard: Shard) -> Iterator[Any]:
    """The shard's file, open; an error names a shard that is gone or has changed."""
    files, path = system(shard.path)
    try:
        check_stamp(shard, files, path)
        with files.open(path, "rb") as file:
            yield file
    except FileNotFoundError as error:
        raise gone(shard) from error


def check_stamp(shard: Shard, files: Any = None, path: str = "") -> None:
    """Raise unless the shard's file is the one that was listed."""
    if files is None:
        files, path = system(shard.path)
    try:
        stamp = _stamp(files.info(path))
    except FileNotFoundError as error:
        raise gone(shard) from error
    if stamp != shard.stamp:
        raise ShardError(
            f"{shard.name}: the file changed after the pool was listed (size and time were "
            f"{shard.stamp}, they are {stamp}); start again with the pool as it is now"
        )


def gone(shard: Shard) -> ShardError:
    """The error for a shard whose file is no longer there."""
    return ShardError(
        f"{shard.name}: {shard.path} was there when the pool was listed and is gone; put it back, or "
        f"start again without it"
    )


# What file systems call the time, or the tag, of a file's last change.
_CHANGED = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "created")


def _stamp(info: dict[str, Any]) -> str:
    changed = next((str(info[key]) for key in _CHANGED if key in info), "")
    return f"{info.get('size')} {changed}".strip()
