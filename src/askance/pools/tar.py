"""WebDataset-style tar shards: the members of a sample share a key, `key.jpg` beside `key.cls`."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askance.embedding import Embedding, Listed
from askance.embedding.sources import as_tensor
from askance.errors import AskanceError, DataError, ShardError
from askance.images import SUFFIXES as IMAGES
from askance.pools import decode, files
from askance.pools.source import Part, Parts, Shard
from askance.selection.selection import Skipped

SUFFIXES = (".tar", ".tar.gz", ".tgz")
# A larger member is no row of a pool; nothing is read past it.
MOST_BYTES = 256 << 20
PICTURES = tuple(suffix.removeprefix(".") for suffix in IMAGES)
LABEL = "cls"

Sample = tuple[str, dict[str, bytes]]


@dataclass(frozen=True, eq=False)
class TarSource:
    """Samples of tar files; a shard is one file, whose names alone are read when it is listed.

    Args:
        address: a tar file or a folder of them, here or at an fsspec address.
        extensions: which member holds what: {"inputs": ("jpg", "png")}, {"logits": ("logits.npy",)}.
        transform: the bytes of `inputs` to a tensor.
    """

    address: str
    extensions: dict[Part, tuple[str, ...]]
    transform: Callable[[bytes], Any]
    shards: tuple[Shard, ...]
    unique_ids: bool = False

    @classmethod
    def open(
        cls,
        address: str,
        extensions: dict[Part, tuple[str, ...]] | None = None,
        *,
        transform: Callable[[bytes], Any] | None = None,
        labeled: bool = False,
    ) -> TarSource:
        """List the shards and count their samples."""
        held: dict[Part, tuple[str, ...]] = dict(extensions or {"inputs": PICTURES})
        if labeled:
            held.setdefault("labels", (LABEL,))
        shards: list[Shard] = []
        start = 0
        for path, name, stamp in files.listed(address, SUFFIXES):
            shard, fault = Shard(len(shards), name, path, start, 0, stamp), None
            rows = 0
            try:
                rows = sum(1 for _ in _samples(shard, ()))
            except ShardError as error:
                fault = str(error)
            shards.append(Shard(shard.index, name, path, start, rows, stamp, (), fault))
            start += rows
        return cls(address, held, transform or decode.image_tensor, tuple(shards))

    @property
    def holds(self) -> Parts:
        return frozenset(self.extensions)

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[Embedding | Skipped]:
        if shard.fault is not None:
            raise ShardError(shard.fault)
        endings = tuple(e for part in wanted for e in self.extensions.get(part, ()))
        start, waiting = shard.start, list[Sample]()
        for sample in _samples(shard, endings):
            waiting.append(sample)
            if len(waiting) == batch_size:
                yield from self._rows(shard, start, waiting, wanted)
                start, waiting = start + len(waiting), []
        if waiting:
            yield from self._rows(shard, start, waiting, wanted)
        read = start + len(waiting) - shard.start
        if read != shard.rows:
            raise ShardError(
                f"{shard.name}: {read} samples, there were {shard.rows} when it was listed"
            )

    def _rows(
        self, shard: Shard, start: int, samples: list[Sample], wanted: Parts
    ) -> Iterator[Embedding | Skipped]:
        keys = Listed([key for key, _ in samples])
        rows = Embedding(positions=range(start, start + len(samples)), ids=keys)
        parts = sorted(wanted & self.holds)
        if not parts:
            yield rows
            return

        def parts_of(members: dict[str, bytes]) -> dict[str, Any]:
            return {part: self._part(members, part) for part in parts}

        items = [members for _, members in samples]
        yield from decode.decoded_rows(rows, items, parts_of, shard)

    def _part(self, members: dict[str, bytes], part: Part) -> Any:
        ending = next((e for e in self.extensions[part] if e in members), None)
        if ending is None:
            wanted = " or ".join(f".{e}" for e in self.extensions[part][:3])
            raise DataError(f"no member {wanted} in the sample")
        data = members[ending]
        if part == "labels" and not ending.endswith("npy"):
            return torch.tensor(int(data.decode().strip()))
        if ending.endswith("npy") and part != "inputs":
            return as_tensor(_array(data))
        return self.transform(data)


class _Bounded:
    """A stream that reads no more at once than a member may have: headers say sizes too."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int) -> bytes:
        if not 0 <= size <= MOST_BYTES:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        return self._stream.read(size)


# What tarfile and gzip raise for a file that is cut short or altered; the last for headers in headers.
_DAMAGED = (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, RecursionError)


@contextmanager
def _opened(shard: Shard) -> Iterator[tarfile.TarFile]:
    """The members of a shard, whose file is sound to its end when this is left without an error.

    tarfile's reader of gzip checks no sum, and it takes a broken header, or a cut before one, for the
    end. So gzip unpacks here, and what comes after the last member must be there and be zeros.
    """
    try:
        with files.reading(shard) as file, _unpacked(file) as stream:
            bounded: Any = _Bounded(stream)
            with tarfile.open(fileobj=bounded, mode="r:") as archive:
                yield archive
                end = archive.offset
            stream.seek(end)
            rest = stream.read(tarfile.BLOCKSIZE)
            if len(rest) < tarfile.BLOCKSIZE:
                raise tarfile.ReadError("no mark of its end")
            while rest:
                if rest.strip(b"\0"):
                    raise tarfile.ReadError(f"no header at byte {end:,}")
                rest = stream.read(1 << 20)
    except AskanceError:
        raise
    except _DAMAGED as error:
        raise ShardError(f"{shard.name}: cut short, corrupt or not a tar file ({error})") from error


@contextmanager
def _unpacked(file: Any) -> Iterator[Any]:
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    if packed:
        with gzip.GzipFile(fileobj=file) as stream:
            yield stream
    else:
        yield file


def _samples(shard: Shard, endings: tuple[str, ...]) -> Iterator[Sample]:
    """(key, members with those endings) of each sample; a sample is a run of members of one key."""
    with _opened(shard) as archive:
        key: str | None = None
        members: dict[str, bytes] = {}
        there: set[str] = set()
        for info in archive:
            if info.isdir():
                continue
            if info.size < 0:  # what follows would be what was before
                raise tarfile.ReadError(f"{info.name!r} has {info.size:,} bytes")
            if not info.isreg():
                raise ShardError(
                    f"{shard.name}: member {info.name!r} is a link or a device; a pool's shard holds "
                    f"files alone"
                )
            folder, _, base = info.name.rpartition("/")
            stem, _, ending = base.partition(".")
            sample = f"{folder}/{stem}" if folder else stem
            if sample != key:
                if key is not None:
                    yield key, members
                key, members, there = sample, {}, set()
            ending = ending.lower()
            if ending in there:
                raise ShardError(f"{shard.name}: member {info.name!r} is there twice")
            there.add(ending)
            if ending in endings:
                members[ending] = _content(archive, info, shard)
        if key is not None:
            yield key, members


def _content(archive: tarfile.TarFile, info: tarfile.TarInfo, shard: Shard) -> bytes:
    if info.size > MOST_BYTES:
        raise ShardError(
            f"{shard.name}: {info.name} has {info.size:,} bytes; {MOST_BYTES:,} are read"
        )
    file = archive.extractfile(info)
    assert file is not None
    data = file.read()
    if len(data) != info.size:
        raise ShardError(f"{shard.name}: cut short in {info.name}")
    return data


def _array(data: bytes) -> NDArray[Any]:
    return np.load(io.BytesIO(data), allow_pickle=False)
