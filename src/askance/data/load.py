"""A dataset by name, from the folders named for data, the cache, or its official source; or by path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from askance._io.filenames import is_path
from askance.data import parquet, remote
from askance.data.catalog import Entry, entry, names
from askance.data.encode import OnEncode, encoded_by
from askance.data.folder import from_image_folder
from askance.data.prepare import prepared, shortfall
from askance.data.record import Dataset, Kind
from askance.data.splits import Imbalance
from askance.data.table import from_table
from askance.encoders import Encoder
from askance.errors import DataError

Location = str | os.PathLike[str]


@dataclass(frozen=True)
class Description:
    """One line of a listing.

    `available` says where the data is at hand, None where it is not; `fetchable` says whether `fetch`
    can get it.
    """

    name: str
    kind: Kind
    classes: int
    train: int
    test: int
    licence: str
    citation: str
    homepage: str
    checksums: str
    available: str | None
    fetchable: bool


def load(
    name: Location,
    data_dir: Location | None = None,
    *,
    label: str | None = None,
    text: str | None = None,
    features: str | Sequence[str] | None = None,
    encoder: str | Encoder | None = None,
    imbalance: Imbalance | None = None,
    on_encode: OnEncode | None = None,
    download: bool = True,
    progress: bool = True,
) -> Dataset:
    """A dataset of the catalogue by its name, or your own by its path.

    A name is looked for in `data_dir`, in the folders of the variable ASKANCE_DATA, in the cache, and
    then at its official source unless `download` is False. A path has a separator or a dot in it
    (`./pets`, `pets.csv`): a folder is read by `from_image_folder`, a file by `from_table` with
    `label` and `text`, or `features`. The splits depend on the data alone, never on a seed. With an
    `encoder`, or its name, images and texts become its features, standardised by the pool's. An
    `imbalance` makes some classes rare in the pool; which ones, a draw named for the dataset says.
    `on_encode` is called with (items done, items) while an encoder works;
    with "cached" nothing is encoded, and an item that is not in the cache is an error.
    """
    if not isinstance(name, str) or is_path(name):
        return _your_own(
            Path(name).expanduser(), label, text, features, encoder, imbalance, on_encode
        )
    if name not in names() and Path(name).exists():
        raise DataError(
            f"no dataset is called {name!r}; for the folder of that name say './{name}'"
        )
    what = entry(name)
    if encoder is not None:
        what = replace(what, encode=encoded_by(encoder, what.kind, on_encode))
    if any(each is not None for each in (label, text, features)):
        raise DataError(
            f"label, text and features are for a table of your own; {what.name} has its own labels"
        )
    if what.parse is not None and what.is_bundled:
        return prepared(what, what.parse(what.classes), source="scikit-learn", imbalance=imbalance)
    folders = data_folders(data_dir)
    paths = parquet.find(what.name, folders)
    if paths:
        splits, subset = parquet.read(what, paths)
        source = _local_source(paths)
    else:
        path = _fetched(what, folders, download=download, progress=progress)
        splits, subset = parquet.read(what, (path,))
        source = f"official, {what.homepage}"
    if encoder is not None and what.shrunk is not None:
        subset = what.shrunk if subset is None else f"{what.shrunk}, {subset}"
    return prepared(what, splits, source=source, subset=subset, read=what.read, imbalance=imbalance)


def fetch(
    name: str, *, data_dir: Location | None = None, download: bool = True, progress: bool = True
) -> Path | None:
    """Download and parse `name` into the cache; None where there is nothing to get.

    A dataset whose official files are not read is there as a compact copy, or not to be had.
    """
    what = entry(name)
    if what.is_bundled:
        return None
    if what.parse is None and (paths := parquet.find(what.name, data_folders(data_dir))):
        return paths[0]
    return _fetched(what, data_folders(data_dir), download=download, progress=progress)


def describe(name: str, *, data_dir: Location | None = None) -> Description:
    """What is known of `name` without reading it."""
    what = entry(name)
    return Description(
        name=name,
        kind=what.kind,
        classes=len(what.classes),
        train=what.official[0],
        test=what.official[1],
        licence=what.licence,
        citation=what.citation,
        homepage=what.homepage,
        checksums=what.checksums,
        available=_where(what, data_dir),
        fetchable=what.parse is not None,
    )


def data_folders(data_dir: Location | None = None) -> list[Path]:
    """The folders searched for data, first to last: `data_dir`, then those of ASKANCE_DATA."""
    named = ["" if data_dir is None else os.fspath(data_dir), os.environ.get("ASKANCE_DATA", "")]
    folders = [Path(part).expanduser() for text in named for part in text.split(os.pathsep) if part]
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise DataError(
            f"no such folder: {', '.join(missing)}; data_dir and ASKANCE_DATA must name folders, "
            f"separated by {os.pathsep!r}"
        )
    return folders


def _your_own(
    path: Path,
    label: str | None,
    text: str | None,
    features: str | Sequence[str] | None,
    encoder: str | Encoder | None,
    imbalance: Imbalance | None,
    on_encode: OnEncode | None,
) -> Dataset:
    if not path.exists():
        raise DataError(f"{path}: no such folder or file; known names: {', '.join(names())}")
    if not path.is_dir():
        named = "label" if label is None else label
        return from_table(
            path,
            named,
            text,
            features=features,
            encoder=encoder,
            imbalance=imbalance,
            on_encode=on_encode,
        )
    if any(each is not None for each in (label, text, features)):
        raise DataError(
            f"{path}: a folder of images has no columns; leave label, text and features out"
        )
    return from_image_folder(path, encoder=encoder, imbalance=imbalance, on_encode=on_encode)


def _local_source(paths: tuple[Path, ...]) -> str:
    return "local file " + " and ".join(path.name for path in paths)


def _fetched(what: Entry, folders: list[Path], *, download: bool, progress: bool) -> Path:
    path = _cached(what)
    if path.is_file():
        return path
    if what.parse is None:
        yours = (
            f". For the folder of that name say './{what.name}'" if Path(what.name).exists() else ""
        )
        raise DataError(
            f"{what.name}: askance reads no official file of it, so it cannot be fetched. Put a "
            f"compact copy, {what.name}.parquet with the columns {what.kind}, label and split, in a "
            f"folder, and name that folder in ASKANCE_DATA or data_dir. The owners' page is "
            f"{what.homepage}{yours}"
        )
    downloads = path.parent / "downloads"
    files = remote.official_files(what, folders, downloads, download=download, progress=progress)
    splits = what.parse(what.classes, *files)
    fewer = shortfall(splits, what)
    if fewer:
        raise DataError(f"{what.name}: the official files hold only {fewer}; are they complete?")
    parquet.write(path, what, splits)
    remote.remember(what, files, downloads)
    return path


def _cached(what: Entry) -> Path:
    return parquet.cache_folder() / f"{what.name}.parquet"


def _where(what: Entry, data_dir: Location | None) -> str | None:
    if what.is_bundled:
        return "scikit-learn"
    paths = parquet.find(what.name, data_folders(data_dir))
    if paths:
        return _local_source(paths)
    return "cache" if _cached(what).is_file() else None
