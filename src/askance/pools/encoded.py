"""An encoder in place of a model: a pool of texts or images, as logits and features of `linear`.

The items of a source are encoded as its shards are read; what was encoded before is in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import torch

from askance.embedding import Embedding
from askance.encoders import Encoded, Encoder, FeatureCache, encode, get
from askance.encoders.encoder import Kind
from askance.encoders.linear import LinearFit, Standardiser
from askance.errors import InputError
from askance.pools.decode import ImageTensor, KeepStored, Untransformed
from askance.pools.engine import Engine, LocalEngine
from askance.pools.images import ImageSource
from askance.pools.joined import JoinedSource
from askance.pools.parquet import ParquetSource
from askance.pools.source import Parts, Shard, Source
from askance.pools.tar import TarSource
from askance.selection.selection import Skipped

T = TypeVar("T")

# Items of a block: so many files are in memory at a time, twice over, since the next are read ahead.
ITEM_ROWS = 256


class CachedEncoder:
    """An encoder and the features it computed before; its threads take turns.

    Args:
        encoder: what encodes.
        cache: where features are kept.
        batch_size: items of a forward pass; the encoder's own when None.
        device: where to compute; CUDA where there is one when None.
    """

    def __init__(
        self, encoder: Encoder, cache: FeatureCache, batch_size: int | None, device: str | None
    ) -> None:
        self.encoder = encoder
        self._cache, self._batch_size, self._device = cache, batch_size, device
        self._lock = Lock()

    def encoded(self, items: list[Any]) -> Encoded:
        """The features of some items, those that cannot be read left out."""
        with self._lock:
            return encode(
                self.encoder,
                items,
                cache=self._cache,
                batch_size=self._batch_size,
                device=self._device,
                on_error="skip",
            )

    def __repr__(self) -> str:  # a stopped pass is continued only with the same
        return f"{self.encoder.name} {self.encoder.digest}"


@dataclass(frozen=True, eq=False)
class FeatureSource:
    """Texts or images whose features are an encoder's; see `FeatureSource.of`."""

    items: Source
    by: CachedEncoder

    @classmethod
    def of(cls, source: Source, by: CachedEncoder) -> FeatureSource:
        """A source of texts or images, as it was opened, for an encoder of the same kind."""
        if isinstance(source, JoinedSource):
            return cls(replace(source, items=cls.of(source.items, by).items), by)
        if not isinstance(source, (ParquetSource, ImageSource, TarSource)):
            raise InputError(
                f"{source.address}: an encoder takes texts or images: a column of a Parquet file, a "
                f"folder of images, or members of tar files; got {type(source).__name__}"
            )
        kind = _kind(source.address, source.transform)
        get(by.encoder, kind)
        return cls(replace(source, transform=KeepStored(kind)), by)

    @property
    def address(self) -> str:
        return self.items.address

    @property
    def shards(self) -> Sequence[Shard]:
        return self.items.shards

    @property
    def holds(self) -> Parts:
        return self.items.holds - {"inputs"} | {"features"}

    @property
    def unique_ids(self) -> bool:
        return self.items.unique_ids

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[Embedding | Skipped]:
        if "features" not in wanted:
            yield from self.items.read(shard, batch_size, wanted)
            return
        parts: Parts = wanted & {"labels"} | {"inputs"}
        blocks = self.items.read(shard, min(batch_size, ITEM_ROWS), parts)
        for rows in read_ahead(blocks):
            if isinstance(rows, Skipped):
                yield rows
            else:
                yield from self._encoded(rows, shard)

    def _encoded(self, rows: Embedding, shard: Shard) -> Iterator[Embedding | Skipped]:
        encoded = self.by.encoded(rows.inputs)
        assert rows.ids is not None
        for place, reason in encoded.unreadable.items():
            name = rows.ids.take(np.array([place]))[0]
            yield Skipped(f"{shard.name}, {name}: {reason}", 1, False)
        if len(encoded):
            named = replace(rows, inputs=None)
            named = named if len(encoded) == len(rows) else named[encoded.rows]
            yield replace(named, features=torch.from_numpy(encoded.features))


@dataclass(frozen=True, eq=False)
class LinearSource:
    """An encoder's features, standardised, and the logits of a regression on them.

    Args:
        features: the features as the encoder gives them.
        standardise: by the pool.
        fit: the regression; None where there are no labelled points.
    """

    features: FeatureSource
    standardise: Standardiser
    fit: LinearFit | None

    @property
    def address(self) -> str:
        return self.features.address

    @property
    def shards(self) -> Sequence[Shard]:
        return self.features.shards

    @property
    def holds(self) -> Parts:
        return self.features.holds | (frozenset() if self.fit is None else {"logits"})

    @property
    def unique_ids(self) -> bool:
        return self.features.unique_ids

    def read(self, shard: Shard, batch_size: int, wanted: Parts) -> Iterator[Embedding | Skipped]:
        embedded = wanted & {"logits", "features"}
        parts: Parts = wanted & {"labels"} | (frozenset({"features"}) if embedded else frozenset())
        for rows in self.features.read(shard, batch_size, parts):
            if isinstance(rows, Skipped) or rows.features is None:
                yield rows
                continue
            z_BD = self.standardise(rows.features.numpy())
            made: dict[str, Any] = {"features": None}
            if "features" in wanted:
                made["features"] = torch.from_numpy(z_BD.astype(np.float32))
            if "logits" in wanted and self.fit is not None:
                made["logits"] = torch.from_numpy(self.fit.logits(z_BD).astype(np.float32))
            yield replace(rows, **made)


def encoder_of(
    name: str | Encoder,
    batch_size: int | None,
    device: str | None,
    engine: Engine,
    head: str | None,
    stack: ExitStack,
) -> CachedEncoder:
    """The encoder with its cache, which is open as long as `stack`."""
    if head is not None:
        raise InputError("the head of a regression on an encoder's features is found by itself")
    if not isinstance(engine, LocalEngine):
        raise InputError(
            f"an encoder runs on this machine, where its cache of features is, not on engine "
            f"{engine.name!r}; use the local engine"
        )
    encoder = get(name)
    return CachedEncoder(encoder, stack.enter_context(FeatureCache(encoder)), batch_size, device)


def _kind(address: str, transform: Any) -> Kind:
    """What a source's items are, by what would make a network's input of them."""
    if isinstance(transform, Untransformed):
        return "text"
    if isinstance(transform, ImageTensor):
        return "image"
    came = "rows of numbers" if transform is None else "a transform that makes a network's input"
    raise InputError(
        f"{address}: an encoder takes texts or images as they are stored, got {came}; name their "
        f"column (--text or --image), and no transform"
    )


def read_ahead(blocks: Iterator[T]) -> Iterator[T]:
    """The same blocks; each is read by a thread while the one before it is worked on."""
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(next, blocks, None)
        while (block := waiting.result()) is not None:
            waiting = thread.submit(next, blocks, None)
            yield block
