"""What a file holds, in short: a digest, made again only where the file's size or times have changed.

A look at the data is one `stat` a file. Size and both times together tell a changed file: the time of
the content can be set back by whoever copies a file, that of the entry cannot.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path

from askance._io.atomic import atomic_write
from askance.errors import DataError, StoreError
from askance.images import SUFFIXES

log = logging.getLogger(__name__)

Mark = tuple[int, int, int]  # size, time of the content, time of the entry

FILE = "digests.json"
_MISSING: Mark = (-1, 0, 0)  # a link that leads nowhere, or a file that vanished just now
_READERS = 4  # files read at a time: the disk is waited for, not the processor


def digest_of(content: bytes) -> str:
    """A short hash by which equal contents are known."""
    return blake2b(content, digest_size=8).hexdigest()


def checked_content(file: Path, digest: str | None, where: str) -> bytes:
    """The content of a file that still has this digest; an error names it `where`."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DataError(f"{where}: cannot be read ({error.strerror})") from error
    if digest not in (None, digest_of(content)):
        raise DataError(f"{where}: has other content now than when the folder was read")
    return content


def marks_of(path: Path) -> dict[str, Mark]:
    """Size and times of a file, or of all images under a folder, by name; empty where nothing is."""
    try:
        if not path.is_dir():
            return {path.name: _mark(path.stat())}
        return dict(_marks_in(path, ""))
    except OSError as error:
        log.info("%s cannot be looked at: %s", path, error)
        return {}


def _marks_in(folder: str | Path, before: str) -> Iterator[tuple[str, Mark]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _marks_in(entry.path, f"{before}{entry.name}/")
            elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:  # noqa: PTH122 (20,000 times)
                yield f"{before}{entry.name}", _mark_of(entry) or _MISSING


def _mark(stat: os.stat_result) -> Mark:
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


class Digests:
    """Digests of the files of a folder, kept in a file of their own between two starts.

    That file only saves time: without it every file is read once more.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._entries = {} if file is None else _loaded(file)
        self._stale = False

    def of(self, root: Path, names: Sequence[str]) -> list[str | None]:
        """The digest of each file under `root`; None where it cannot be read."""
        looked_up = {name: _mark_of(root / name) for name in names}
        marks = {name: mark for name, mark in looked_up.items() if mark is not None}
        changed = [
            name for name, mark in marks.items() if self._entries.get(name, (None,))[0] != mark
        ]
        with ThreadPoolExecutor(_READERS) as readers:
            digests = dict(
                zip(changed, readers.map(_digest, map(root.joinpath, changed)), strict=True)
            )
        entries = {}
        for name, mark in marks.items():
            digest = digests[name] if name in digests else self._entries[name][1]
            if digest is not None:
                entries[name] = mark, digest
        self._stale = self._stale or entries != self._entries
        self._entries = entries
        return [entries[name][1] if name in entries else None for name in names]

    def save(self) -> None:
        """Write what is new to the file."""
        if self._file is None or not self._stale:
            return
        rows = {name: [*mark, digest] for name, (mark, digest) in self._entries.items()}
        try:
            atomic_write(self._file, json.dumps(rows, ensure_ascii=False).encode())
            self._stale = False
        except StoreError as error:
            log.info("digests are made again at the next start: %s", error)


def _mark_of(file: Path | os.DirEntry[str]) -> Mark | None:
    try:
        return _mark(file.stat())
    except OSError:
        return None


def _digest(file: Path) -> str | None:
    try:
        return digest_of(file.read_bytes())
    except OSError as error:
        log.warning("left out for now: %s cannot be read (%s)", file, error.strerror)
        return None


def _loaded(file: Path) -> dict[str, tuple[Mark, str]]:
    try:
        rows = json.loads(file.read_bytes())
        return {
            str(name): ((int(size), int(content), int(entry)), str(digest))
            for name, (size, content, entry, digest) in rows.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        log.info("%s cannot be read (%s); files are read again", file, error)
        return {}
