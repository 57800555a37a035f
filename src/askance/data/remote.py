"""Official files, from a folder where someone put them or downloaded, and always checked.

A file put by hand lies at `<folder>/<dataset>/<official file name>`. A file without a published
checksum is trusted the first time: once it has been parsed whole its sha256 is kept in the cache as
`downloads/<dataset>/<official file name>.sha256`, and any later copy must be the same.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from askance.data.catalog import Entry, OfficialFile
from askance.data.parquet import write_file
from askance.errors import DataError

logger = logging.getLogger(__name__)


def official_files(
    entry: Entry, folders: Iterable[Path], downloads: Path, *, download: bool, progress: bool
) -> list[Path]:
    """The path of each official file, downloaded into `downloads` where no folder has it."""
    paths = []
    for file in entry.files:
        places = [place / entry.name / file.name for place in (*folders, downloads)]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            if not download:
                raise DataError(_absent(entry, file, "and downloading is off"))
            path = _downloaded(entry, file, downloads / entry.name, progress)
        _verify(path, file, _record(entry, file, downloads))
        paths.append(path)
    return paths


def remember(entry: Entry, paths: Sequence[Path], downloads: Path) -> None:
    """Keep the sha256 of the files that have no published checksum. Call when they have been parsed."""
    for file, path in zip(entry.files, paths, strict=True):
        record = _record(entry, file, downloads)
        if file.checksum is None and not record.exists():
            write_file(record, _digest(path, "sha256").encode())


def _record(entry: Entry, file: OfficialFile, downloads: Path) -> Path:
    return downloads / entry.name / f"{file.name}.sha256"


def _verify(path: Path, file: OfficialFile, record: Path) -> None:
    if file.checksum is not None:
        kind, _, expected = file.checksum.partition(":")
        whose = "the published one"
    elif record.is_file():
        kind, expected = "sha256", record.read_text().strip()
        whose = f"that of the first copy, kept in {record},"
    else:
        logger.warning("%s: no checksum is published for it; this copy is trusted", path.name)
        return
    digest = _digest(path, kind)
    if digest != expected:
        raise DataError(
            f"{path}: its {kind} is {digest}, {whose} is {expected}; delete the file and fetch it again"
        )


def _digest(path: Path, kind: str) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, kind).hexdigest()


def _downloaded(entry: Entry, file: OfficialFile, folder: Path, progress: bool) -> Path:
    try:
        import pooch
    except ImportError as error:
        raise DataError(
            _absent(entry, file, "and downloading needs pooch: pip install pooch")
        ) from error
    downloader = pooch.HTTPDownloader(progressbar=_Bar(file.name) if progress else False)
    try:
        # pooch downloads to a temporary file and moves it into place when its checksum is right.
        path = pooch.retrieve(
            file.url,
            known_hash=file.checksum,
            fname=file.name,
            path=folder,
            downloader=downloader,
        )
    # Anything from a refused connection to a wrong checksum, in the classes of pooch and requests.
    except Exception as error:
        raise DataError(_absent(entry, file, f"and downloading failed ({error})")) from error
    return Path(path)


def _absent(entry: Entry, file: OfficialFile, why: str) -> str:
    return (
        f"{entry.name}: {file.name} is not at hand {why}. Download {file.url} elsewhere and put it "
        f"at <folder>/{entry.name}/{file.name}, or put {entry.name}.parquet in <folder>, and name "
        "that folder in ASKANCE_DATA or data_dir"
    )


class _Bar:
    """A progress bar with the methods that pooch calls, drawn by rich."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

        columns: tuple[Any, ...] = (
            "{task.description}",
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
        )
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task = self._progress.add_task(name, total=None)
        self.total = 0

    def update(self, count: int) -> None:
        self._progress.start()
        self._progress.update(self._task, advance=count, total=self.total or None)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.stop()
