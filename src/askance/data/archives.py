"""Archives are read without trusting them. Nothing is ever written to disk.

Every member is checked, wanted or not. The whole archive is refused if a name leaves it, if a member is
a link or a device, if a name is there twice, or if it unpacks to more bytes than the dataset can have.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from askance.data.lzw import uncompressed
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

    tarfile's own reader of compressed streams checks no sum and takes a broken header for the end. So
    gzip unpacks here. What comes after the last member is read to the end and must be zeros.
    """
    names: set[str] = set()
    try:
        with _unpacked(path, limit) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    name = _safe(member.name, path, names, folder=member.isdir())
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
                    raise DataError(f"{path.name}: corrupt after {len(names)} members")
    except DataError:
        raise
    except _DAMAGED as error:
        raise damaged(path, error) from error


def zip_members(path: Path, wanted: Wanted, *, limit: int = 4 * GIB) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of the wanted files of a zip, in its own order."""
    names: set[str] = set()
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            _check_limit(sum(member.file_size for member in infos), limit, path)
            paths = [_safe(info.filename, path, names, folder=info.is_dir()) for info in infos]
            for name, member in zip(paths, infos, strict=True):
                if stat.S_ISLNK(member.external_attr >> 16):
                    raise DataError(f"{path.name}: member {member.filename!r} is a link")
                if not member.is_dir() and wanted(name):
                    with archive.open(member) as stream:
                        # One byte more than the header says, so that a longer member is noticed.
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


def members(path: Path, wanted: Wanted, *, limit: int = 4 * GIB) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of the wanted files of a zip or a tar, whichever the path's ending says."""
    reader = zip_members if path.suffix == ".zip" else tar_members
    return reader(path, wanted, limit=limit)


def members_named(path: Path, names: Sequence[str], *, limit: int) -> list[bytes]:
    """The bytes of the files called `names`, in that order, wherever in the archive they lie.

    A file `NAME.Z` of the compress program counts as NAME, unpacked.
    """
    contents: dict[str, bytes] = {}
    wanted = {*names, *(f"{name}.Z" for name in names)}
    for place, data in members(path, lambda place: _base_name(place) in wanted, limit=limit):
        name = _base_name(place)
        packed = name not in names
        contents[name.removesuffix(".Z")] = (
            uncompressed(data, name, limit=limit) if packed else data
        )
    missing = [name for name in names if name not in contents]
    if missing:
        raise DataError(
            f"{path.name}: {', '.join(missing)} missing; is the archive complete and the official one?"
        )
    return [contents[name] for name in names]


def damaged(path: Path, error: BaseException) -> DataError:
    """The error for a file that its reader could not read."""
    return DataError(
        f"{path}: cut short, corrupt or of another format ({error}); delete it and fetch it again"
    )


def _base_name(name: str) -> str:
    return PurePosixPath(name).name


def _safe(name: str, path: Path, names: set[str], *, folder: bool) -> str:
    """A member's name as a plain path, which is added to `names`; refused where it is not safe."""
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or ":" in (pure.parts or ("",))[0]:
        raise DataError(f"{path.name}: member {name!r} leaves the archive")
    if str(pure) in names and not folder:
        raise DataError(f"{path.name}: member {name!r} is there twice")
    names.add(str(pure))
    return str(pure)


def _check_limit(total: int, limit: int, path: Path) -> None:
    if total > limit:
        raise DataError(
            f"{path.name}: unpacks to more than {limit:,} bytes, the most this dataset can have"
        )


def _check_length(data: bytes, expected: int, name: str, path: Path) -> None:
    if len(data) != expected:
        raise DataError(f"{path.name}: {name} is not the {expected:,} bytes its header says")
