"""Batch rules on a pool that is read in shards: a cache of all of it, or a shortlist."""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

import askance
from askance.embedding import concatenated
from askance.errors import InputError
from askance.picking import Picks, TopRows
from askance.picking.kcenter import kcenter
from askance.picking.points import feature_points
from askance.picking.shard import kcenter_shard
from askance.picking.sharded import LocalShards, sharded_kcenter
from askance.picking.topk import top_k
from askance.pools import IterableSource, LocalEngine, ParquetSource, select_from
from askance.strategies import Badge, Entropy, KCenter, ShardedBatch, TwoStage
from tests.pools import worlds
from tests.pools.test_sources import Stream

SIZES = [50, 90, 60]  # rows of each file of the pool


@pytest.fixture
def world(tmp_path):
    pool = worlds.embedding(200, dtype=torch.float32)
    source = ParquetSource.open(worlds.write(tmp_path / "p", pool, SIZES, 40), worlds.VECTORS)
    seen, labels = worlds.embedding(9, 1, torch.float32), np.arange(9) % worlds.CLASSES
    worlds.write(tmp_path / "l", seen, [4, 5], label=labels)
    labeled = ParquetSource.open(str(tmp_path / "l"), worlds.LABELED)
    return pool, source, labeled, (seen, labels)


@pytest.mark.parametrize("rule", ["badge", "kcenter"])
@pytest.mark.parametrize("excluded", [[], [3, 77]])
def test_from_a_cache_it_is_the_whole_pool(world, rule, excluded):
    pool, source, labeled, known = world
    whole = askance.select(None, known, pool, 12, strategy=rule, seed=2, exclude=excluded)
    names = worlds.names_of(excluded, SIZES)
    picks = select_from(
        source, 12, labeled=labeled, strategy=rule, seed=2, exclude=names, engine=LocalEngine(2)
    )
    assert picks.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(picks.scores, whole.scores, rtol=1e-6)
    assert "all 200 rows, cached on disk in float32 (0.0 MiB)" in picks.how
    assert picks.read.rows == 200
    assert picks.read.excluded == len(excluded)
    assert list(picks.ids[:1]) == worlds.names_of(whole.indices[:1], SIZES)
    assert [w.pseudo_label for w in picks.explain()] == [w.pseudo_label for w in whole.explain()]


@pytest.mark.parametrize("rule", [Badge(), KCenter()])
def test_from_a_shortlist(world, rule):
    """The rule itself, on the rows with the largest gradients."""
    pool, source, labeled, known = world
    base = askance.strategies.GradNorm(bias=getattr(rule, "bias", True))
    short = np.sort(askance.select(None, known, pool, 60, strategy=base).indices)
    picks = select_from(source, 10, labeled=labeled, strategy=rule, shortlist=60, seed=1)
    out = np.setdiff1d(np.arange(200), short)
    whole = askance.select(None, known, pool, 10, strategy=rule, seed=1, exclude=out)
    assert picks.indices.tolist() == whole.indices.tolist()
    assert "from a shortlist, the 60 best rows by grad" in picks.how


@dataclass(frozen=True)
class Leaning(TwoStage):
    """A rule of somebody's own: those of largest first feature among the 2n most uncertain rows."""

    width: int = 2
    name: ClassVar[str] = "leaning"
    needs = frozenset({"logits", "features"})

    def shortlisted(self, n):
        return Entropy(), self.width * n

    def finish(self, shortlist, sample, n, reference, draws, eligible=None):
        best = top_k(shortlist.features[:, 0], n)
        return Picks(best.numpy(), shortlist.features[best, 0].double().numpy())


def test_a_batch_rule_of_ones_own_may_look_at_some_rows_only(world):
    pool, source, _, _ = world
    whole = askance.select(None, None, pool, 10, strategy=Leaning())
    picks = select_from(source, 10, strategy=Leaning())
    assert picks.indices.tolist() == whole.indices.tolist()
    assert picks.how == "from the 20 best rows by entropy, which are all the rule looks at"
    for shortlist in (10, 20, 40):  # more rows would change nothing, fewer its picks
        with pytest.raises(InputError, match="a shortlist of its own, the 20 best rows by entropy"):
            select_from(source, 10, strategy=Leaning(), shortlist=shortlist)
    stream = IterableSource(Stream())
    assert len(select_from(stream, 3, strategy=Leaning(), model=torch.nn.Linear(4, 3))) == 3
    with pytest.raises(
        InputError, match="leaning must look at the n = 10 picks and more, it looks at 0"
    ):
        select_from(source, 10, strategy=Leaning(width=0))


def test_rows_that_were_not_read_are_not_picked(tmp_path, world):
    pool, source, _, _ = world
    path = tmp_path / "p" / "part-001.parquet"
    path.unlink()
    picks = select_from(source, 12, strategy="badge", on_error="skip")
    whole = askance.select(None, None, pool, 12, strategy="badge", exclude=range(50, 140))
    assert picks.indices.tolist() == whole.indices.tolist()
    assert sum(skip.rows for skip in picks.read.skipped) == 90


class Held:
    """A pool in this process's memory, as a cluster's workers keep it."""

    name = "held"

    def map(self, job, shards):
        yield from LocalEngine(1).map(job, shards)

    @contextmanager
    def holding(self):
        self.parts = []
        yield self

    def write(self, embedded):
        self.parts.append(embedded.rows)

    def pick(self, rule, n, reference, draws, unpickable):
        free = [part[np.flatnonzero(~np.isin(part.positions, unpickable))] for part in self.parts]
        shards = [rule.shard(part, n, reference, draws) for part in free if len(part)]
        picks = rule.pick_from_shards(LocalShards(shards), n).picks
        return TopRows(concatenated(self.parts)[picks.rows], picks.scores)


@dataclass(frozen=True)
class CoverLogits(ShardedBatch):
    """A rule of somebody's own: farthest first in the logits, from the origin."""

    name: ClassVar[str] = "cover-logits"
    needs = frozenset({"logits"})

    def pick(self, pool, n, reference, draws):
        return kcenter(feature_points(pool.logits), torch.zeros(1, worlds.CLASSES), n)

    def shard(self, part, n, reference, draws):
        origin = torch.zeros(1, worlds.CLASSES)
        return kcenter_shard(feature_points(part.logits), part.positions, n, origin)

    def pick_from_shards(self, shards, n):
        return sharded_kcenter(shards, n)


@pytest.mark.parametrize("rule", [Badge(), KCenter(), CoverLogits()])
def test_a_pool_that_is_held_in_parts_gives_the_same_picks(world, rule):
    pool, source, labeled, known = world
    whole = askance.select(None, known, pool, 12, strategy=rule, seed=3)
    here = select_from(source, 12, labeled=labeled, strategy=rule, seed=3)
    there = select_from(source, 12, labeled=labeled, strategy=rule, seed=3, engine=Held())
    assert there.indices.tolist() == here.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(there.scores, whole.scores, rtol=1e-6)
    assert there.how == "from the embedding of all 200 rows, held by the workers of held"
    assert "cached on disk" in here.how


@pytest.mark.parametrize("engine", [None, Held()])
@pytest.mark.parametrize("strategy", ["entropy", "badge", "grad-spread"])
def test_too_few_rows_are_counted_alike_whatever_the_rule(world, strategy, engine):
    _, source, labeled, _ = world
    excluded = [f"part-000.parquet:{row}" for row in range(3)]
    options = {"labeled": labeled, "strategy": strategy, "exclude": excluded, "engine": engine}
    told = (
        "n = 198 points were asked for, and 197 are there to be picked: 200 rows were read, "
        "3 of them excluded, 0 skipped"
    )
    with pytest.raises(InputError, match=told):
        select_from(source, 198, **options)
    assert len(select_from(source, 197, **options)) == 197


@pytest.mark.parametrize("engine", [None, Held()])
def test_too_few_rows_where_some_are_skipped(tmp_path, world, engine):
    _, source, _, _ = world
    (tmp_path / "p" / "part-001.parquet").unlink()
    told = (
        "121 points were asked for, and 110 are .*: 110 rows were read, 0 .* excluded, 90 skipped"
    )
    with pytest.raises(InputError, match=told):
        select_from(source, 121, strategy="badge", on_error="skip", engine=engine)


def test_what_cannot_be_cached_or_shortlisted(world):
    _, source, _, _ = world
    with pytest.raises(InputError, match=r"would take 0\.00 GiB of disk, the limit is 0\.00 GiB"):
        select_from(source, 5, strategy="badge", cache_limit=1000)
    with pytest.raises(InputError, match="at least the n = 5 picks, got 4"):
        select_from(source, 5, strategy="badge", shortlist=4)
    with pytest.raises(InputError, match="needs no shortlist"):
        select_from(source, 5, strategy="entropy", shortlist=50)
    stream = IterableSource(Stream())
    with pytest.raises(InputError, match="how long this one is only reading tells"):
        select_from(stream, 5, strategy="badge", model=torch.nn.Linear(4, 3))
    picks = select_from(stream, 5, strategy="badge", model=torch.nn.Linear(4, 3), shortlist=20)
    assert len(set(picks.indices.tolist())) == 5
