"""Tables: Parquet files, here or at any fsspec address; and CSV files, which are read whole.

A shard is a run of whole row groups of one file, so that one huge file is resumed and shared out like
many small ones. Vectors are columns of lists (fixed or not) of floats, or several columns of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from askance.embedding import Embedding, Ids
from askance.embedding.sources import as_labels
from askance.errors import AskanceError, DataError, InputError, ShardError
from askance.pools import decode, files
from askance.pools.ids import Column, Numbered
from askance.pools.source import Part, Parts, Shard
from askance.selection.selection import Skipped

SUFFIXES = (".parquet", ".pq")
WRITTEN = (".csv", ".tsv")
SHARD_ROWS = 1 << 18
INPUT_SHARD_ROWS = 1 << 13


@dataclass(frozen=True)
class Columns:
    """Which columns hold what.

    Args:
        features: a column of lists, or several of numbers: what the head is given, or, with a model
            and no logits, the model's inputs.
        logits: likewise, what the head gives.
        image: a column of image files' bytes.
        text: a column of texts.
        id: identifiers, texts or whole numbers; `file:row` where left out.
        label: whole numbers, names of classes, or lists of zeros and ones; of a labelled set.

    A table of identifiers and labels alone is joined to the items of a pool (`pools.joined`).
    """

    features: tuple[str, ...] = ()
    logits: tuple[str, ...] = ()
    image: str | None = None
    text: str | None = None
    id: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        inputs = [self.image, self.text, *self.features[:1], *self.logits[:1]]
        if not any(inputs) and not (self.id and self.label):
            raise InputError(
                "a table needs to know which of its columns holds the items: text (--text NAME), image "
                "(--image NAME), or features and logits (--features NAME, --logits NAME)"
            )
        if (self.image or self.text) and (
            self.features or self.logits or (self.image and self.text)
        ):
            raise InputError(
                "a row is an image, a text, or features (and logits): name one of them (--image, "
                "--text, --features)"
            )

    def of(self, wanted: Parts) -> dict[Part, tuple[str, ...]]:
        """The columns of each part that is wanted and there is."""
        held: dict[Part, tuple[str, ...]] = {
            "logits": self.logits,
            "features": self.features,
            "inputs": self.inputs,
            "labels": (self.label,) if self.label else (),
        }
        return {part: names for part, names in held.items() if part in wanted and names}

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that make a model's input."""
        item = self.image or self.text
        return (item,) if item else self.features

    @property
    def holds(self) -> Parts:
        return frozenset(self.of(frozenset({"logits", "features", "inputs", "labels"})))

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns of texts, which a CSV's are taken as they are written: 007 is no 7."""
        return tuple(name for name in (self.text, self.id) if name)

    @property
    def all(self) -> list[str]:
        """The names of all columns, each once."""
        named = [*self.features, *self.logits, self.image, self.text, self.id, self.label]
        return list(dict.fromkeys(name for name in named if name))


@dataclass(frozen=True, eq=False)
class ParquetSource:
    """Rows of Parquet files; see `ParquetSource.open`."""

    address: str
    columns: Columns
    transform: Callable[[Any], Tensor] | None
    shards: tuple[Shard, ...]
    classes: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        address: str,
        columns: Columns,
        *,
        transform: Callable[[Any], Tensor] | None = None,
        shard_rows: int | None = None,
        labeled: bool = False,
    ) -> ParquetSource:
        """List the shards. Every file's footer is read; no row is.

        Args:
            address: a file, a folder, or an fsspec address of either.
            columns: which columns hold what.
            transform: makes a tensor of an image's bytes or a text; picklable. A text needs none where
                an encoder takes it.
            shard_rows: rows of a shard, at most (a row group is never cut).
            labeled: whether labels are wanted. Names of classes are then numbered in their order.
        """
        if transform is None and columns.text:
            transform = decode.Untransformed()
        if transform is None and columns.image:
            transform = decode.image_tensor
        small = columns.image or columns.text
        most = shard_rows or (INPUT_SHARD_ROWS if small else SHARD_ROWS)
        shards = tuple(_shards(address, columns, most))
        classes = _classes(shards, columns) if labeled else ()
        return cls(address, columns, transform, shards, classes)

    @property
    def holds(self) -> Parts:
        return self.columns.holds

    @property
    def unique_ids(self) -> bool:
        return self.columns.id is None

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[Embedding | Skipped]:
        if shard.fault is not None:
            raise ShardError(shard.fault)
        first, groups, row, _ = shard.part
        start = shard.start
        for batch in self._batches(shard, range(first, first + groups), batch_size, wanted):
            count = batch.num_rows
            yield from self._rows(shard, batch, wanted, range(start, start + count), row)
            start, row = start + count, row + count
        if start - shard.start != shard.rows:
            raise ShardError(
                f"{shard.name}: {start - shard.start} rows were read, its footer says {shard.rows}"
            )

    def _batches(
        self, shard: Shard, groups: range, batch_size: int, wanted: Parts
    ) -> Iterator[Any]:
        names = {name for part in self.columns.of(wanted).values() for name in part}
        names |= {self.columns.id} if self.columns.id else set()
        with opened(shard, self.columns.texts) as file:
            if not names:  # positions alone
                for at in range(0, shard.rows or 0, batch_size):
                    yield _Empty(min(batch_size, (shard.rows or 0) - at))
                return
            yield from file.iter_batches(
                batch_size, row_groups=list(groups), columns=sorted(names), use_threads=False
            )

    def _rows(
        self, shard: Shard, batch: Any, wanted: Parts, positions: range, row: int
    ) -> Iterator[Embedding | Skipped]:
        held = self.columns.of(wanted)
        vector = partial(_vectors, batch, shard)
        ids: Ids = Numbered(shard.part[3], row, len(positions))
        if self.columns.id:
            ids = Column(_whole(batch.column(self.columns.id), self.columns.id, shard))
        parts: dict[str, Any] = {part: vector(held[part]) for part in held if part in _FLOATS}
        if "labels" in held:
            parts["labels"] = _labels(batch, shard, held["labels"][0], self.classes)
        if "inputs" in held and self.transform is None:
            parts["inputs"] = vector(held["inputs"])
        rows = Embedding(positions=positions, ids=ids, **parts)
        if "inputs" not in held or self.transform is None:
            yield rows
            return
        items = _whole(batch.column(held["inputs"][0]), held["inputs"][0], shard).to_pylist()
        yield from decode.decoded_rows(rows, items, self.transform, shard)


_FLOATS = ("logits", "features")


@dataclass(frozen=True)
class _Empty:
    num_rows: int


def _shards(address: str, columns: Columns, most: int) -> Iterator[Shard]:
    index = start = 0
    first: tuple[str, dict[str, Any]] | None = None
    for path, name, stamp in _listed(address):
        whole = Shard(index, name, path, start, 0, stamp)
        try:
            with opened(whole, columns.texts) as file:
                meta, schema = file.metadata, file.schema_arrow
                _ = schema.names  # which may be no UTF-8
                sizes = [meta.row_group(group).num_rows for group in range(meta.num_row_groups)]
        except ShardError as error:
            yield Shard(index, name, path, start, 0, stamp, fault=str(error))
            index += 1
            continue
        types = {field.name: field.type for field in schema if field.name in columns.all}
        fault = _missing(name, columns, schema.names)
        if fault is None:
            first = first or (name, types)
            fault = _changed(name, types, *first)
        row = 0
        for begin, groups, rows in _runs(sizes, most):
            part = f"#{begin}" if groups < len(sizes) else ""
            yield Shard(
                index, name + part, path, start, rows, stamp, (begin, groups, row, name), fault
            )
            index, start, row = index + 1, start + rows, row + rows


def _listed(address: str) -> list[tuple[str, str, str]]:
    """The Parquet files at an address; where there is none, the CSV files."""
    with suppress(DataError):
        return files.listed(address, SUFFIXES)
    return files.listed(address, (*SUFFIXES, *WRITTEN))


def _runs(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int, int]]:
    """(first row group, how many, rows) of runs of at most `most` rows, one group at least."""
    begin = rows = 0
    for group, size in enumerate(sizes):
        if rows and rows + size > most:
            yield begin, group - begin, rows
            begin, rows = group, 0
        rows += size
    if rows:
        yield begin, len(sizes) - begin, rows


def _missing(name: str, columns: Columns, there: Sequence[str]) -> str | None:
    missing = [column for column in columns.all if column not in there]
    if not missing:
        return None
    return f"{name}: no column {', '.join(map(repr, missing))}; it has {', '.join(there) or 'none'}"


def _changed(name: str, types: dict[str, Any], first: str, expected: dict[str, Any]) -> str | None:
    for column, kind in types.items():
        if kind != expected[column]:
            return (
                f"{name}: column {column!r} is of type {kind}, in {first} it is of type "
                f"{expected[column]}; all shards of a pool must have one schema"
            )
    return None


def _classes(shards: Sequence[Shard], columns: Columns) -> tuple[str, ...]:
    """The different names in the column of labels, in alphabetical order; none where it has numbers."""
    names: set[str] = set()
    for shard in shards:
        if shard.fault is not None or columns.label is None:
            continue  # told when it is read
        first, groups, *_ = shard.part
        with opened(shard, columns.texts) as file:
            kind = file.schema_arrow.field(columns.label).type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            if not _is_text(kind):
                return ()
            rows = file.read_row_groups(range(first, first + groups), columns=[columns.label])
        names |= set(rows.column(columns.label).unique().to_pylist()) - {None}
    return tuple(sorted(names))


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@contextmanager
def opened(shard: Shard, as_text: Sequence[str] = ()) -> Iterator[Any]:
    """The shard's Parquet file; whatever goes wrong while it is open is told with the shard's name.

    A CSV is read whole, and is then a Parquet file in memory; its columns `as_text` are texts.
    """
    try:
        with ExitStack() as stack:
            if files.is_remote(shard.path):
                source: Any = stack.enter_context(files.reading(shard))
            else:
                files.check_stamp(shard)
                source = shard.path
            if shard.path.lower().endswith(WRITTEN):
                source = pa.BufferReader(_written(shard, source, tuple(as_text)))
            yield stack.enter_context(pq.ParquetFile(source))
    except AskanceError:
        raise
    except FileNotFoundError as error:
        raise files.gone(shard) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        kind = "UTF-8 text" if shard.path.lower().endswith(WRITTEN) else "Parquet"
        raise ShardError(f"{shard.name}: cut short, corrupt or not {kind} ({error})") from error


# By path and stamp, so that the shards of one file parse it once in each process.
_parsed: dict[tuple[str, str, tuple[str, ...]], Any] = {}


def _written(shard: Shard, source: Any, as_text: tuple[str, ...]) -> Any:
    """A CSV or TSV file as the bytes of a Parquet file."""
    key = shard.path, shard.stamp, as_text
    if key not in _parsed:
        tabs = shard.path.lower().endswith(".tsv")
        table = pa_csv.read_csv(
            source,
            parse_options=pa_csv.ParseOptions(
                delimiter="\t" if tabs else ",", newlines_in_values=True
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types={name: pa.string() for name in as_text}
            ),
        )
        made = pa.BufferOutputStream()
        pq.write_table(table, made, row_group_size=INPUT_SHARD_ROWS)
        _parsed.clear()  # one file at a time is in memory
        _parsed[key] = made.getvalue()
    return _parsed[key]


def _whole(values: Any, name: str, shard: Shard) -> Any:
    if values.null_count:
        raise ShardError(f"{shard.name}: {values.null_count} empty values in column {name!r}")
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if _is_text(values.type):
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ShardError(
                f"{shard.name}: column {name!r} is damaged, or its texts are not UTF-8 ({error})"
            ) from error
    return values


def _vectors(batch: Any, shard: Shard, names: tuple[str, ...]) -> Tensor:
    """(B, K) of one column of lists, without a copy, or of K columns of numbers."""
    columns = [_whole(batch.column(name), name, shard) for name in names]
    if len(columns) == 1 and pa.types.is_nested(columns[0].type):
        return _lists(columns[0], names[0], shard)
    for column, name in zip(columns, names, strict=True):
        kind = column.type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            raise ShardError(
                f"{shard.name}: column {name!r} must hold numbers or lists, got {kind}"
            )
    arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
    matrix = np.stack(arrays, axis=1)
    return torch.from_numpy(matrix if matrix.dtype.kind == "f" else matrix.astype(np.float32))


def _lists(column: Any, name: str, shard: Shard) -> Tensor:
    kind = getattr(column.type, "value_type", None)  # a struct has none
    if kind is None or pa.types.is_map(column.type) or not pa.types.is_floating(kind):
        raise ShardError(
            f"{shard.name}: column {name!r} must hold lists of floats, got {column.type}"
        )
    values = column.flatten()  # of this slice alone
    if values.null_count:
        raise ShardError(f"{shard.name}: {values.null_count} empty values in column {name!r}")
    width, rest = divmod(len(values), max(1, len(column)))
    if not pa.types.is_fixed_size_list(column.type):
        offsets = column.offsets.to_numpy()
        if rest or not (np.diff(offsets) == width).all():
            raise ShardError(f"{shard.name}: the lists in column {name!r} are not of one length")
    # Over Arrow's own memory, which nothing here writes to.
    return from_dlpack(values).reshape(len(column), width)


def _labels(batch: Any, shard: Shard, name: str, classes: Sequence[str] = ()) -> Tensor:
    column = _whole(batch.column(name), name, shard)
    if _is_text(column.type) and classes:
        if "" in classes:
            raise ShardError(f"{shard.name}: a row has no label in column {name!r}; leave it out")
        places = pa.compute.index_in(column, value_set=pa.array(classes, column.type))
        return torch.from_numpy(places.to_numpy(zero_copy_only=False).astype(np.int64))
    if pa.types.is_nested(column.type):
        return as_labels(_vectors(batch, shard, (name,)), batch.num_rows)
    if not pa.types.is_integer(column.type):
        raise ShardError(
            f"{shard.name}: labels must be whole numbers or names, {name!r} is {column.type}"
        )
    return torch.from_numpy(column.to_numpy(zero_copy_only=False).astype(np.int64))
