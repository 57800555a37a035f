"""Reading archives without trusting them. Nothing is ever written to disk.

Every member is looked at, wanted or not: a name that leaves the archive, a link, a device, a name
given twice, or more bytes than the dataset can have, and the whole archive is refused.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from askance.errors import DataError

GIB = 2**30

# What the standard library raises for an archive that is cut short or altered.
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,  # zipfile, for a member under a password
)

Wanted = Callable[[str], bool]


def tar_members(path: Path, wanted: Wanted, *, limit: int = 4 * GIB) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of the wanted files of a tar, gzipped or not, in its own order.

    tarfile's own reader of compressed streams checks no sum and takes a broken header for the end, so
    gzip does the unpacking here, and what comes after the last member is read to the end and must be
    zeros.
    """
    seen: set[str] = set()
    try:
        with _unpacked(path, limit) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    name = _safe(member.name, path, seen, folder=member.isdir())
                    if member.isdir():
                        continue
                    if not member.isreg():
                        raise DataError(
                            f"{path.name}: member {member.name!r} is a link or a device"
                        )
                    _check_limit(member.size, limit, path)
                    if wanted(name):
                        content = archive.extractfile(member)
                        data = b"" if content is None else content.read()
                        _check_length(data, member.size, name, path)
                        yield name, data
            while rest := stream.read(2**20):
                if rest.strip(b"\0"):
                    raise DataError(f"{path.name}: corrupt after {len(seen)} members")
    except DataError:
        raise
    except _DAMAGED as error:
        raise damaged(path, error) from error


def zip_members(path: Path, wanted: Wanted, *, limit: int = 4 * GIB) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of the wanted files of a zip, in its own order."""
    seen: set[str] = set()
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_limit(sum(member.file_size for member in members), limit, path)
            names = [
                _safe(member.filename, path, seen, folder=member.is_dir()) for member in members
            ]
            for name, member in zip(names, members, strict=True):
                if stat.S_ISLNK(member.external_attr >> 16):
                    raise DataError(f"{path.name}: member {member.filename!r} is a link")
                if not member.is_dir() and wanted(name):
                    with archive.open(member) as stream:
                        # One byte more than promised, so that a member that lies is seen.
                        data = stream.read(member.file_size + 1)
                    _check_length(data, member.file_size, name, path)
                    yield name, data
    except DataError:
        raise
    except _DAMAGED as error:
        raise damaged(path, error) from error


def gunzipped(path: Path, *, limit: int = GIB) -> bytes:
    """The whole of a gzip file, refused where it unpacks to more than `limit` bytes."""
    try:
        with gzip.open(path) as stream:
            data = stream.read(limit + 1)
    except _DAMAGED as error:
        raise damaged(path, error) from error
    _check_limit(len(data), limit, path)
    return data


class _Counted:
    """A stream that gives at most `limit` bytes and a little for headers."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile, limit: int, path: Path) -> None:
        self._stream, self._limit, self._path = stream, limit, path
        self._total = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._total += len(data)
        # 512 bytes of header and as many of padding a member: an eighth more, and some for small tars.
        _check_limit(self._total, self._limit + self._limit // 8 + 2**20, self._path)
        return data


@contextmanager
def _unpacked(path: Path, limit: int) -> Iterator[Any]:
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=raw) as stream:
                yield _Counted(stream, limit, path)
        else:
            yield _Counted(raw, limit, path)


def needed(found: dict[str, bytes], names: tuple[str, ...], path: Path) -> list[bytes]:
    """The bytes of `names`, in that order; an error names those the archive does not have."""
    missing = [name for name in names if name not in found]
    if missing:
        raise DataError(
            f"{path.name}: {', '.join(missing)} missing; is the archive complete and the official one?"
        )
    return [found[name] for name in names]


def damaged(path: Path, error: BaseException) -> DataError:
    return DataError(
        f"{path}: cut short, corrupt or of another format ({error}); delete it and fetch it again"
    )


def base_name(name: str) -> str:
    return PurePosixPath(name).name


def _safe(name: str, path: Path, seen: set[str], *, folder: bool) -> str:
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or ":" in (pure.parts or ("",))[0]:
        raise DataError(f"{path.name}: member {name!r} leaves the archive")
    if str(pure) in seen and not folder:
        raise DataError(f"{path.name}: member {name!r} is there twice")
    seen.add(str(pure))
    return str(pure)


def _check_limit(total: int, limit: int, path: Path) -> None:
    if total > limit:
        raise DataError(
            f"{path.name}: unpacks to more than {limit:,} bytes, the most this dataset can have"
        )


def _check_length(data: bytes, expected: int, name: str, path: Path) -> None:
    if len(data) != expected:
        raise DataError(f"{path.name}: {name} is not the {expected:,} bytes its header says")
