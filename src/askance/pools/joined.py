"""Labels in a table of their own, joined to the items of a pool by identifier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor

from askance.embedding import Embedding, sources, texts
from askance.errors import LabelError, ShardError
from askance.pools.parquet import ParquetSource
from askance.pools.source import Parts, Shard, Source
from askance.selection.classes import checked_names
from askance.selection.selection import Skipped

_ROWS = 1 << 14
_NAMED = 5


@dataclass(frozen=True, eq=False)
class LabelsById:
    """The label of each identifier.

    Args:
        labels: class numbers.
    """

    labels: Mapping[str, int]

    @classmethod
    def read(cls, table: ParquetSource) -> LabelsById:
        """Of a table with a column of identifiers and one of labels."""
        labels: dict[str, int] = {}
        for shard in table.shards:
            for rows in table.read(shard, _ROWS, frozenset({"labels"})):
                assert isinstance(rows, Embedding)
                assert rows.ids is not None
                assert rows.labels is not None
                for name, label in zip(texts(rows.ids), rows.labels.tolist(), strict=True):
                    if labels.setdefault(name, label) != label:
                        raise LabelError(f"{table.address}: {name!r} has two different labels")
        if not labels:
            raise LabelError(f"{table.address}: the labelled set is empty")
        return cls(labels)

    def of(self, names: Sequence[str]) -> Tensor:
        """The labels of some identifiers."""
        return torch.tensor([self.labels[name] for name in names])

    def __repr__(self) -> str:  # a stopped pass is continued only with the same
        return blake2b(repr(sorted(self.labels.items())).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class JoinedSource:
    """The items of a pool that have a label; see `JoinedSource.of`."""

    address: str
    items: Source
    by_id: LabelsById
    shards: tuple[Shard, ...]
    classes: tuple[str, ...] = ()
    unique_ids: bool = False

    @classmethod
    def of(cls, table: ParquetSource, items: Source) -> JoinedSource:
        """The items that the table names; identifiers alone are read to find them.

        Args:
            table: columns of identifiers and of labels, and nothing else.
            items: the pool.
        """
        by_id = LabelsById.read(table)
        wanted = frozenset(by_id.labels)
        found: set[str] = set()
        shards: list[Shard] = []
        start = 0
        for shard in items.shards:
            names = [] if shard.fault else _names_among(items, shard, wanted)
            twice = sorted({name for name in names if name in found or names.count(name) > 1})
            if twice:
                raise LabelError(f"{items.address}: {twice[0]!r} is the identifier of several rows")
            found.update(names)
            if names:
                stamp = f"{shard.stamp} {shard.index}"
                whole = (shard,)
                shards.append(
                    Shard(len(shards), shard.name, shard.path, start, len(names), stamp, whole)
                )
                start += len(names)
        missing = sorted(wanted - found)
        if missing:
            some = ", ".join(map(repr, missing[:_NAMED])) + (", …" if missing[_NAMED:] else "")
            raise LabelError(
                f"{table.address}: {len(missing)} of {len(wanted)} labels are of identifiers that the "
                f"pool does not have: {some}"
            )
        return cls(table.address, items, by_id, tuple(shards), table.classes)

    @property
    def holds(self) -> Parts:
        return self.items.holds | {"labels"}

    def with_classes(self, names: tuple[str, ...]) -> JoinedSource:
        """The same items, their labels numbered in the order of these names."""
        place = [names.index(name) for name in self.classes]
        labels = {name: place[label] for name, label in self.by_id.labels.items()}
        return replace(self, by_id=LabelsById(labels), classes=names)

    @property
    def ids(self) -> list[str]:
        """The identifiers of all labelled items."""
        return list(self.by_id.labels)

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[Embedding | Skipped]:
        (whole,) = shard.part
        names = frozenset(self.by_id.labels)
        start = shard.start
        for rows in self.items.read(whole, batch_size, wanted - {"labels"}):
            if isinstance(rows, Skipped):
                continue
            assert rows.ids is not None
            some = rows.ids.find(names)
            if not len(some):
                continue
            kept = replace(rows, inputs=None)[some]
            inputs: Any = rows.inputs
            if isinstance(inputs, list):  # stored items, as an encoder takes them
                inputs = [inputs[row] for row in some]
            elif inputs is not None:
                inputs = sources.rows_of(inputs, torch.from_numpy(some))
            labels = self.by_id.of(rows.ids.take(some)) if "labels" in wanted else None
            positions = range(start, start + len(some))
            yield replace(kept, positions=positions, inputs=inputs, labels=labels)
            start += len(some)
        if start - shard.start != shard.rows:
            raise ShardError(
                f"{shard.name}: {shard.rows} rows have a label in {self.address}, and "
                f"{start - shard.start} of them can be read"
            )


def with_class_names(
    labeled: Source | None, classes: Sequence[str] | None
) -> tuple[Source | None, tuple[str, ...] | None]:
    """A labelled set whose classes are numbered as they are given, and their names.

    Where none are given they are its own, in alphabetical order; None where its labels are numbers.
    """
    own: tuple[str, ...] = getattr(labeled, "classes", ())
    if classes is None:
        return labeled, own or None
    names = checked_names(classes)
    unknown = [name for name in own if name not in names]
    if unknown:
        assert labeled is not None
        raise LabelError(
            f"{labeled.address}: the classes are {', '.join(map(repr, names))}; its labels also have "
            f"{', '.join(map(repr, unknown[:_NAMED]))}"
        )
    if not own:
        return labeled, names
    if isinstance(labeled, JoinedSource):
        return labeled.with_classes(names), names
    record: Any = labeled
    return replace(record, classes=names), names


def _names_among(items: Source, shard: Shard, wanted: frozenset[str]) -> list[str]:
    names: list[str] = []
    for rows in items.read(shard, _ROWS, frozenset()):
        if isinstance(rows, Embedding) and rows.ids is not None:
            names += rows.ids.take(np.asarray(rows.ids.find(wanted)))
    return names
