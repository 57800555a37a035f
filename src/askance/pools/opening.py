"""`open_source`: which kind of pool an address is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.utils.data import IterableDataset

from askance.embedding.factory import imported
from askance.errors import DataError, InputError
from askance.images import SIDE
from askance.images import SUFFIXES as IMAGES
from askance.pools import files, parquet, tar
from askance.pools.decode import ImageTensor, Imported, Untransformed
from askance.pools.images import ImageSource
from askance.pools.iterable import IterableSource
from askance.pools.memmap import MemmapSource
from askance.pools.parquet import Columns, ParquetSource
from askance.pools.source import Part, Source
from askance.pools.tar import PICTURES, TarSource

KINDS = (
    "a Parquet, CSV or TSV file or a folder of them, a tar file or folder of them, a folder of images, "
    "a .npy file or folder of them, or module:function that returns an IterableDataset"
)


@dataclass(frozen=True)
class Naming:
    """What holds what: columns of a table, or endings of an archive's members.

    Args:
        features: columns (or one ending) of features.
        logits: columns (or one ending) of logits.
        image: the column (or ending) of image files.
        text: the column (or ending) of texts.
        id: the column of identifiers.
        label: the column (or ending) of labels, of a labelled set.
        transform: "module:function" from an image's bytes or a text to a tensor; texts need one unless
            an encoder takes them.
        image_size: pixels a side of a decoded image, where there is no transform.
        pairs: whether a dataset's items begin with their identifier.
    """

    features: tuple[str, ...] = ()
    logits: tuple[str, ...] = ()
    image: str | None = None
    text: str | None = None
    id: str | None = None
    label: str | None = None
    transform: str | None = None
    image_size: int = SIDE
    pairs: bool = False

    @property
    def columns(self) -> Columns:
        """For a Parquet pool."""
        return Columns(self.features, self.logits, self.image, self.text, self.id, self.label)

    @property
    def made(self) -> Callable[[Any], Any]:
        """What makes a tensor of an image or a text."""
        if self.transform is not None:
            return Imported(self.transform)
        return Untransformed() if self.text else ImageTensor(self.image_size)

    @property
    def endings(self) -> dict[Part, tuple[str, ...]]:
        """For a tar pool: the endings of each part's members."""
        held: dict[Part, tuple[str, ...]] = {
            "features": self.features,
            "logits": self.logits,
            "labels": (self.label,) if self.label else (),
        }
        item = self.image or self.text
        held["inputs"] = (item,) if item else () if self.features or self.logits else PICTURES
        return {part: endings for part, endings in held.items() if endings}


def open_source(address: str, naming: Naming | None = None, *, labeled: bool = False) -> Source:
    """The source at an address: Parquet, tar, images, NumPy arrays, or a dataset of one's own.

    Args:
        address: a path, an fsspec address, or "module:function".
        naming: what holds what.
        labeled: whether labels are wanted as well.
    """
    naming = naming or Naming()
    kind = kind_of(address)
    if kind == "parquet":
        item = naming.transform or naming.image or naming.text
        transform = naming.made if item else None
        if labeled and naming.label is None:
            raise InputError(
                f"{address}: name the column of its labels, with --label (label= in Python)"
            )
        return ParquetSource.open(address, naming.columns, transform=transform, labeled=labeled)
    if kind == "tar":
        return TarSource.open(address, naming.endings, transform=naming.made, labeled=labeled)
    if kind == "npy":
        return MemmapSource.open(address, labeled=labeled)
    if kind == "images":
        return ImageSource.open(address, transform=naming.made, labeled=labeled)
    made = imported(address, "dataset")()
    if not isinstance(made, IterableDataset):
        raise InputError(f"{address} must return an IterableDataset, it gave {type(made).__name__}")
    return IterableSource(made, naming.pairs, labeled, address)


def kind_of(address: str) -> str:
    """ "parquet", "tar", "npy", "images" or "dataset"."""
    plain = not files.is_remote(address)
    if plain and ":" in address and not Path(address).exists():
        return "dataset"
    endings = {"parquet": parquet.SUFFIXES, "tar": tar.SUFFIXES, "npy": (".npy",), "images": IMAGES}
    system, path = files.system(address)
    if not system.exists(path):
        raise DataError(f"{address}: no such file or folder; expected {KINDS}")
    names = [path] if system.isfile(path) else system.find(path)
    if names and all(name.lower().endswith(parquet.WRITTEN) for name in names):
        return "parquet"  # tables, as text
    kinds = sorted(
        kind
        for kind, suffixes in endings.items()
        if any(name.lower().endswith(tuple(suffixes)) for name in names)
    )
    if len(kinds) != 1:
        came = f"it holds {' and '.join(kinds)}" if kinds else "nothing of the kind is there"
        if not names:
            came = "the folder is empty"
        raise DataError(f"{address}: expected {KINDS}; {came}")
    if kinds == ["npy"] and not plain:
        raise DataError(
            f"{address}: NumPy arrays are mapped into memory, so they must be local files"
        )
    if kinds == ["images"] and system.isfile(path):
        raise DataError(f"{address}: an image by itself; name the folder it is in")
    return kinds[0]
