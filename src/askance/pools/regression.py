"""The regression on an encoder's features, fitted before a pool is scanned.

First the labelled set and the pool are encoded, into the cache of features, and the pool's mean and
deviation are summed, shard after shard. Then the regression is fitted on the labelled points. The scan
of the pool is a second pass, as of any pool: it finds the features in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from askance.embedding import Embedding, concatenated
from askance.embedding.sources import as_labels
from askance.encoders.linear import fit_linear
from askance.encoders.moments import FeatureMoments
from askance.errors import LabelError
from askance.pools.encoded import FeatureSource, LinearSource
from askance.pools.reader import Reader, ShardJob, ShardRows
from askance.pools.source import Source, rows_in
from askance.selection.clock import Clock
from askance.strategies import Strategy

Encoding = Callable[[int, int], None]
"""Called with (items that are encoded or were found in the cache, all items)."""


def check_labeled(rule: Strategy, labeled: Source | None) -> None:
    """Refuse a labelled set that no regression can be fitted on, before anything is encoded."""
    if labeled is None:
        if rule.needs & {"logits", "labeled"}:
            raise LabelError(
                f"{rule.name} needs the answers of a model, and on an encoder's features that is a "
                f"regression on labelled items; give a labelled set, or use a rule that needs none, "
                f"such as 'maxherding'"
            )
        return
    if "labels" not in labeled.holds:
        raise LabelError(
            f"{labeled.address}: a labelled set needs labels; name their column or file"
        )
    if rows_in(labeled.shards) == 0:
        raise LabelError(f"{labeled.address}: the labelled set is empty")


class EncodingCount:
    """How many items are done, told to whoever watches.

    Args:
        total: how many there are.
        watch: called after every block.
    """

    def __init__(self, total: int, watch: Encoding | None) -> None:
        self.done, self.total, self._watch = 0, total, watch

    def counting(self, blocks: Iterable[Embedding]) -> Iterator[Embedding]:
        """The same blocks, counted."""
        for block in blocks:
            yield block
            self.done += len(block)
            if self._watch is not None:
                self._watch(self.done, self.total)


@dataclass(frozen=True, eq=False)
class SumMoments:
    """The moments of a shard's features: a job's work."""

    dimension: int
    count: EncodingCount

    def __call__(self, rows: ShardRows, clock: Clock) -> FeatureMoments:
        total = FeatureMoments.none(self.dimension)
        for block in self.count.counting(rows):
            assert block.features is not None
            total += FeatureMoments.of(block.features.numpy())
        return total


@dataclass(frozen=True, eq=False)
class GatherFeatures:
    """A labelled shard's features and labels: a job's work."""

    count: EncodingCount

    def __call__(self, rows: ShardRows, clock: Clock) -> Embedding | None:
        blocks = [replace(block, ids=None) for block in self.count.counting(rows)]
        return concatenated(blocks) if blocks else None


def fitted(
    pool: Reader,
    labeled: Reader | None,
    clock: Clock,
    watch: Encoding | None = None,
    classes: int = 2,
) -> tuple[Reader, Reader | None]:
    """The same rows with standardised features and the regression's logits.

    Args:
        pool: reads a `FeatureSource`.
        labeled: reads another one, with labels; without it there are no logits.
        clock: is given the seconds.
        watch: called as items are done.
        classes: how many there are at least.
    """
    sources = [pool.source] if labeled is None else [labeled.source, pool.source]
    count = EncodingCount(sum(rows_in(source.shards) or 0 for source in sources), watch)
    with clock.phase("labeled"):
        seen = None if labeled is None else _labeled_points(labeled, count)
    features = _features(pool)
    dimension = features.by.encoder.dimension
    with clock.phase("forward"):
        parts = _each(ShardJob(_here(pool), frozenset({"features"}), SumMoments(dimension, count)))
        standardise = reduce(add, parts, FeatureMoments.none(dimension)).standardiser()
    fit = None
    if seen is not None:
        assert seen.features is not None
        assert seen.labels is not None
        labels_L = seen.labels.numpy()
        with clock.phase("labeled"):
            z_LD = standardise(seen.features.numpy())
            fit = fit_linear(z_LD, labels_L, max(classes, int(labels_L.max()) + 1))
    pool = replace(pool, source=LinearSource(features, standardise, fit))
    if labeled is not None:
        labeled = replace(labeled, source=LinearSource(_features(labeled), standardise, fit))
    return pool, labeled


def _labeled_points(labeled: Reader, count: EncodingCount) -> Embedding:
    """The features and labels of the labelled set."""
    job = ShardJob(_here(labeled), frozenset({"features", "labels"}), GatherFeatures(count))
    parts = _each(job)
    if not parts:
        raise LabelError(f"{labeled.source.address}: the labelled set is empty")
    whole = concatenated(parts)
    assert whole.labels is not None
    labels = as_labels(whole.labels, len(whole))
    if labels.ndim != 1:
        raise LabelError(
            f"{_features(labeled).by.encoder.name} with `linear` is for one class an item, not several"
        )
    return replace(whole, labels=labels)


def _each(job: ShardJob[Any]) -> list[Any]:
    """What is made of each shard, in this thread: an encoder takes all cores by itself."""
    with job.opened() as work:
        values = [work(shard).value for shard in job.reader.source.shards]
    return [value for value in values if value is not None]


def _here(reader: Reader) -> Reader:
    """The same rows, kept on the CPU."""
    return replace(reader, device=None)


def _features(reader: Reader) -> FeatureSource:
    assert isinstance(reader.source, FeatureSource)
    return reader.source
