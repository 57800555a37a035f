"""The items to label: images of a folder, or rows of a table, each with an id that stays.

An image's name is its path within the folder, a row's is its id column or, without one, its number. The
name is the item's id when it comes, and stays it (`identity`). Hidden files, and files not named like
images, are left out; a link out of the folder is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from askance.data.columns import column, lists
from askance.data.folder import images_in
from askance.data.table import open_table, texts_of
from askance.errors import DataError
from askance.label.contents import Digests, Mark, digest_of, marks_of
from askance.label.source import ItemSource, Kind

MOST_SHOWN = 100_000  # characters of a text
_CELL = 500  # characters of a cell beside the item
_COLUMNS = 40  # columns that are shown beside the item


@dataclass(frozen=True, eq=False)
class Items:
    """What was found at the source.

    Args:
        source: where they are from.
        kind: what they are.
        ids: one a row, unique.
        names: where each is at the source, in the order of ids.
        digests: short hashes of their contents, in the order of ids.
        marks: what the source looked like just before it was read.
        files: image files, in the order of ids.
        texts: texts, in the order of ids.
        features: (N, D) vectors.
        table: the columns beside the texts or features.
        left_out: how many files of each suffix the folder has that are not read.
    """

    source: ItemSource
    kind: Kind
    ids: list[str]
    names: list[str]
    digests: list[str]
    marks: dict[str, Mark]
    files: list[Path] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    features: NDArray[np.float32] | None = None
    table: Any = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def position(self) -> dict[str, int]:
        """The row of each item."""
        return {item: row for row, item in enumerate(self.ids)}

    def name(self, item: str) -> str | None:
        """Where an item is at the source now; None where it is not there."""
        row = self.position.get(item)
        return None if row is None else self.names[row]

    def media(self, item: str) -> str | None:
        """The address of an item's picture."""
        return f"/media/{quote(item)}" if self.kind == "image" else None

    def text(self, item: str) -> str | None:
        """What is shown of an item that is no picture."""
        row = self.position.get(item)
        if row is None or self.kind == "image":
            return None
        if self.kind == "text":
            return self.texts[row][:MOST_SHOWN]
        lines = [f"{name}: {value}" for name, value in self._cells(row).items()]
        assert self.features is not None
        first = ", ".join(f"{value:.3g}" for value in self.features[row][:8])
        width = self.features.shape[1]
        lines.append(f"{self.source.features}: {width} numbers, {first}{', …' * (width > 8)}")
        return "\n".join(lines)

    def columns(self, item: str) -> dict[str, str]:
        """The other columns of a text's row, as they are shown beside it; empty cells are left out."""
        row = self.position.get(item)
        if row is None or self.kind != "text":
            return {}
        return {name: value for name, value in self._cells(row).items() if value.strip()}

    def rows_with(self, sought: str) -> set[int]:
        """The rows of whose other columns one contains this text, which has no capitals."""
        if self.table is None:
            return set()
        rows: set[int] = set()
        for values in self.table.columns[:_COLUMNS]:
            cells = enumerate(values.to_pylist())
            rows |= {row for row, value in cells if sought in str(value).casefold()}
        return rows

    def _cells(self, row: int) -> dict[str, str]:
        cells = {} if self.table is None else self.table.slice(row, 1).to_pylist()[0]
        return {
            name: "" if value is None else str(value)[:_CELL]
            for name, value in list(cells.items())[:_COLUMNS]
        }

    def with_ids(self, ids: Sequence[str]) -> Items:
        """The same items under the ids that a project knows them by."""
        return replace(self, ids=list(ids))

    def for_training(self) -> Items:
        """Without what is only shown."""
        return replace(self, table=None)


def listed_files(counts: Mapping[str, int]) -> str:
    """How many files of each suffix, in words, the most first."""
    order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{n:,} {suffix or 'without a suffix'}" for suffix, n in order)


def read(source: ItemSource, digests: Digests | None = None) -> Items:
    """All items of the source, named as they are there.

    Args:
        source: where they are.
        digests: of files as they were, so that only changed ones are read.
    """
    marks = marks_of(source.path)  # first: what changes while it is read is seen at the next look
    if source.path.is_dir():
        return _folder(source, marks, digests or Digests())
    if not source.path.exists():
        raise DataError(
            f"{source.path}: no such folder or file; --data takes a folder of images, or a CSV, TSV "
            f"or Parquet file"
        )
    return _table(source, marks)


def _folder(source: ItemSource, marks: dict[str, Mark], digests: Digests) -> Items:
    for option in ("text", "features", "id"):
        if getattr(source, option) is not None:
            raise DataError(
                f"{source.path} is a folder of images, which has no columns; --{option} is for tables"
            )
    root = source.path
    others: list[Path] = []
    files = images_in(root, root, others)
    left_out = Counter(file.suffix.lower() for file in others)
    if not files:
        there = f" ({listed_files(left_out)})" if others else ""
        raise DataError(
            f"{root}: no images in it{there}; expected .png, .jpg, .webp, .gif, .bmp or .tif"
        )
    names = [file.relative_to(root).as_posix() for file in files]
    for name in names:
        _check_id(name, str(root))
    readable = {
        name: digest
        for name, digest in zip(names, digests.of(root, names), strict=True)
        if digest is not None
    }
    if not readable:
        raise DataError(
            f"{root}: none of its {len(names)} images can be read; see their permissions"
        )
    files = [file for file, name in zip(files, names, strict=True) if name in readable]
    return Items(
        source,
        "image",
        [*readable],
        [*readable],
        [*readable.values()],
        marks,
        files=files,
        left_out=left_out,
    )


def _table(source: ItemSource, marks: dict[str, Mark]) -> Items:
    file, where = source.path, source.path.name
    named = [name for name in (source.text, source.id) if name is not None]
    table = open_table(file, as_text=named)
    if table.num_rows == 0:
        raise DataError(f"{where}: no rows")
    if source.text is None and source.features is None:
        raise DataError(
            f"{where}: name the column of texts with --text, or that of features with --features; it "
            f"has {', '.join(table.column_names)}"
        )
    ids = _ids(table, source, where)
    if source.features is None:
        assert source.text is not None
        texts = texts_of(column(table, source.text, where), source.text, where)
        for text, item in zip(texts, ids, strict=True):
            _check_text(text, item, where)
        hashes = [digest_of(text.encode()) for text in texts]
        others = [name for name in table.column_names if name != source.text]
        rest = _shown(table, others)
        return Items(source, "text", ids, ids, hashes, marks, texts=texts, table=rest)
    vectors = lists(table, source.features, where)
    wanted = [source.text] if source.text else table.column_names
    for name in wanted:
        column(table, name, where)  # says which there are
    rest = _shown(table, [name for name in wanted if name != source.features])
    hashes = [digest_of(row.tobytes()) for row in vectors]
    return Items(source, "features", ids, ids, hashes, marks, features=vectors, table=rest)


def _shown(table: Any, names: Sequence[str]) -> Any:
    """The columns of these that can be shown; None where there are none."""
    plain = [name for name in names if _plain(table, name)]
    return table.select(plain) if plain else None


def _plain(table: Any, name: str) -> bool:
    kind = table.schema.field(name).type
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))


def _ids(table: Any, source: ItemSource, where: str) -> list[str]:
    if source.id is None:
        return [str(row) for row in range(table.num_rows)]
    cells = column(table, source.id, where)
    if not (
        pa.types.is_integer(cells.type)
        or pa.types.is_string(cells.type)
        or pa.types.is_large_string(cells.type)
    ):
        raise DataError(
            f"{where}: column {source.id!r} must hold names or whole numbers, got {cells.type}"
        )
    ids = [str(value) for value in cells.to_pylist()]
    if len(set(ids)) != len(ids):
        twice = next(item for item, count in Counter(ids).items() if count > 1)
        raise DataError(f"{where}: column {source.id!r} names {twice!r} twice; ids must be unique")
    for item in ids:
        _check_id(item, where)
    return ids


def _check_id(item: str, where: str) -> None:
    if not item:
        raise DataError(f"{where}: an item's id is empty")
    _check_text(item, item, where)
    if "\x00" in item or "." in item.split("/") or ".." in item.split("/"):
        raise DataError(f"{where}: {item!r} cannot be an item's id")


def _check_text(text: str, item: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{where}: item {item!r} is not UTF-8; rename it, or save the file as UTF-8"
        ) from None
