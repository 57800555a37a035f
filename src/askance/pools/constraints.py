"""Constraints on the picks from a pool in shards: groups and costs are columns of it.

Two columns of a pool are small beside its embedding: they are read before the pass, and take 4 and 8
bytes a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from askance.errors import InputError, ShardError
from askance.pools.encoded import FeatureSource
from askance.pools.parquet import ParquetSource, opened
from askance.pools.reader import OnError
from askance.pools.source import Shard, Source, rows_in
from askance.selection.constraints import PREDICTED, Constraints, GroupCodes


@dataclass(frozen=True)
class ColumnConstraints:
    """As the arguments of `select` of the same names, with columns for groups and costs.

    Args:
        groups: "predicted", or a column of texts or whole numbers of a Parquet or CSV pool.
        at_most: the most picks of each group.
        at_least: the fewest picks of each group.
        costs: a column of numbers of a Parquet or CSV pool.
        budget: what the picks together may cost.
        max_similarity: the cosine that the features of two picks may not reach.
    """

    groups: str | None = None
    at_most: int | Mapping[Any, int] | None = None
    at_least: int | Mapping[Any, int] | None = None
    costs: str | None = None
    budget: float | None = None
    max_similarity: float | None = None

    def read(
        self, source: Source, on_error: OnError, classes: tuple[str, ...] | None = None
    ) -> Constraints:
        """The constraints, with the columns of a pool; `classes` are the names of predicted ones."""
        groups: Any = self.groups
        if self.groups is not None and self.groups != PREDICTED:
            groups = _codes(_column(source, self.groups, on_error))
        costs = None
        if self.costs is not None:
            costs = _numbers(_column(source, self.costs, on_error), source, self.costs)
        at_most, at_least = (
            _keyed(limit, groups, classes) for limit in (self.at_most, self.at_least)
        )
        limits = groups, at_most, at_least, costs, self.budget, self.max_similarity
        return Constraints(*limits, classes=classes)


def _keyed(limit: Any, groups: Any, classes: tuple[str, ...] | None) -> Any:
    """A limit of groups as they are named in the pool; on a command line every name is a text."""
    if not isinstance(limit, Mapping):
        return limit
    if classes is not None and not isinstance(groups, GroupCodes):
        return dict(limit)
    if isinstance(groups, GroupCodes):
        names = {str(name): name for name in groups.names}
        return {names.get(str(name), name): number for name, number in limit.items()}
    whole = {name: str(name).isdigit() for name in limit}
    return {int(name) if whole[name] else name: number for name, number in limit.items()}


def _column(source: Source, name: str, on_error: OnError) -> list[Any]:
    """A column of each shard, in order; None for a shard that is skipped, whose rows nobody picks."""
    items = source.items if isinstance(source, FeatureSource) else source
    if not isinstance(items, ParquetSource):
        raise InputError(
            f"{source.address}: groups and costs are columns of a Parquet or CSV pool, and this is "
            f"none; groups='predicted' and max_similarity work for every pool"
        )
    parts = []
    for shard in items.shards:
        try:
            parts.append(_of_shard(shard, name, items.columns.texts))
        except ShardError:
            if on_error == "raise":
                raise
            parts.append(pa.nulls(shard.rows or 0))
    assert rows_in(items.shards) == sum(map(len, parts))
    return parts


def _of_shard(shard: Shard, name: str, as_text: tuple[str, ...]) -> Any:
    if shard.fault is not None:
        raise ShardError(shard.fault)
    first, groups, _, _ = shard.part
    with opened(shard, as_text) as file:
        there = file.schema_arrow.names
        if name not in there:
            raise InputError(f"{shard.name}: no column {name!r}; it has {', '.join(there)}")
        table = file.read_row_groups(list(range(first, first + groups)), columns=[name])
    column = table.column(name).combine_chunks()
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if len(column) != shard.rows:
        raise ShardError(f"{shard.name}: {len(column)} rows were read, {shard.rows} are listed")
    if column.null_count:
        raise ShardError(f"{shard.name}: {column.null_count} empty values in column {name!r}")
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _codes(parts: list[Any]) -> GroupCodes:
    """The groups by number, in the order of their names; 0 for rows that are not read."""
    place: dict[Any, int] = {}
    codes = []
    for part in parts:
        if pa.types.is_null(part.type):
            codes.append(np.zeros(len(part), np.int32))
            continue
        kind = part.type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_string(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_large_string(kind)
        ):
            raise InputError(f"a column of groups must hold texts or whole numbers, got {kind}")
        encoded = part.dictionary_encode()
        own = [place.setdefault(name, len(place)) for name in encoded.dictionary.to_pylist()]
        codes.append(np.array(own, np.int32)[encoded.indices.to_numpy(zero_copy_only=False)])
    names = sorted(place, key=lambda name: (str(type(name)), name))
    rank = np.empty(max(1, len(names)), np.int32)
    rank[[place[name] for name in names]] = np.arange(len(names))
    return GroupCodes(rank[np.concatenate(codes)], names or [None])


def _numbers(parts: list[Any], source: Source, name: str) -> NDArray[np.float64]:
    numbers = []
    for part in parts:
        kind = part.type
        if pa.types.is_null(kind):
            numbers.append(np.zeros(len(part)))
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            numbers.append(part.to_numpy(zero_copy_only=False).astype(np.float64))
        else:
            raise InputError(f"{source.address}: costs must be numbers, column {name!r} is {kind}")
    return np.concatenate(numbers)
