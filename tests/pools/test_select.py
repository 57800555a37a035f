"""Streamed picks are those of `askance.select` on the whole pool, however it is cut up."""

import pickle
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import askance
from askance.embedding import texts
from askance.picking import TopRows
from askance.pools import LocalEngine, ParquetSource, Reader, ScoreRows, ShardJob, select_from
from askance.pools.duplicates import IdHashes
from askance.pools.reference import reference_of
from askance.pools.scan import PoolScan
from askance.seeding import Draws
from askance.selection.clock import Clock
from askance.selection.excluded import Excluded
from askance.strategies import Pointwise
from tests.pools import worlds
from tests.rules import ONE_MODEL

POINTWISE = [name for name in ONE_MODEL if isinstance(askance.strategies.get(name), Pointwise)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pools")


@given(
    rule=st.sampled_from(POINTWISE),
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=5).filter(lambda s: sum(s) >= 8),
    group=st.integers(1, 20),
    shard_rows=st.integers(1, 50),
    batch_size=st.integers(1, 50),
    workers=st.integers(1, 3),
    seed=st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_any_shards_and_batches_pick_what_the_whole_pool_does(
    folder, rule, sizes, group, shard_rows, batch_size, workers, seed
):
    pool = worlds.embedding(sum(sizes), seed)
    place = folder / f"{len(list(folder.iterdir()))}"
    address = worlds.write(place / "pool", pool, sizes, group)
    source = ParquetSource.open(address, worlds.VECTORS, shard_rows=shard_rows)
    seen, known = worlds.labeled(place / "labeled", sizes=[4, 5])
    whole = askance.select(None, known, pool, 7, strategy=rule, seed=seed)
    picks = select_from(
        source, 7, labeled=seen, strategy=rule, seed=seed, batch_size=batch_size,
        engine=LocalEngine(workers),
    )  # fmt: skip
    assert picks.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(picks.scores, whole.scores, rtol=1e-9)
    assert picks.read.rows == len(pool)
    said, expected = picks.explain(), whole.explain()
    assert [e.pseudo_label for e in said if e.pseudo_label is not None] == [
        e.pseudo_label for e in expected if said[0].pseudo_label is not None
    ]


def scoring(source, rule, n):
    """The job that gives the n best rows of each shard."""
    excluded = Excluded(np.empty(0, dtype=np.int64))
    work = ScoreRows(askance.strategies.get(rule), n, None, Draws(), excluded)
    return ShardJob(Reader(source), frozenset({"logits", "features"}), work)


def test_ties_go_to_the_lowest_position_in_whatever_order_shards_end(tmp_path):
    pool = worlds.embedding(6)
    pool = askance.Embedding(pool.logits[[0] * 12], pool.features[[0] * 12])
    source = ParquetSource.open(worlds.write(tmp_path, pool, [5, 4, 3]), worlds.VECTORS)
    with scoring(source, "entropy", 6).opened() as work:
        parts = [work(shard).value.shortlist for shard in source.shards]
    for order in permutations(parts):
        assert TopRows.best_of(order, 6).rows.positions.tolist() == [0, 1, 2, 3, 4, 5]


def test_what_is_excluded_stays_so_when_a_repeated_row_is_pushed_out(tmp_path):
    """Two rows are not to be picked: one was excluded before, the other has an earlier row's name."""
    pool = worlds.embedding(30)
    first, second = askance.select(None, None, pool, 2, strategy="entropy").indices.tolist()
    names = [f"n{row}" for row in range(30)]
    again, other = max(first, second), min(first, second)
    names[again] = names[next(row for row in range(again) if row != other)]
    address = worlds.write(tmp_path, pool, [10] * 3, name=names)
    source = ParquetSource.open(address, replace(worlds.VECTORS, id="name"))
    work = ScoreRows(
        askance.strategies.get("entropy"), 8, None, Draws(), Excluded(np.array([other]))
    )
    reader = Reader(source, on_error="skip")
    job = ShardJob(reader, frozenset({"logits", "features"}), work, hash_ids=True)
    with IdHashes() as hashes:
        scan = PoolScan(source, LocalEngine(1), Clock(), id_hashes=hashes)
        staged, _ = scan.staged_rows(job)
    whole = askance.select(None, None, pool, 8, strategy="entropy", exclude=[first, second])
    assert staged.shortlist.rows.positions.tolist() == whole.indices.tolist()


def test_the_reference_is_a_sum_over_shards(tmp_path):
    seen, (known, labels) = worlds.labeled(tmp_path, rows=50, sizes=[1, 20, 29])
    rule = askance.strategies.get("powergrad")
    mine, like = reference_of(rule, Reader(seen, batch_size=7), LocalEngine(2), Draws())
    theirs = rule.prepare(askance.strategies.Labeled(known, labels, 50), None)
    torch.testing.assert_close(mine.mean, theirs.mean, rtol=1e-12, atol=1e-14)
    assert mine.count == 50
    assert (len(like), like.logits.shape[1], like.features.shape[1]) == (0, 3, 5)


@pytest.mark.parametrize(
    "rule", [askance.strategies.Grad(reference_size=4), askance.strategies.Grad(bias=False)]
)
def test_options_of_a_rule_are_kept(tmp_path, rule):
    pool = worlds.embedding(60)
    source = ParquetSource.open(worlds.write(tmp_path / "p", pool, [33, 27]), worlds.VECTORS)
    seen, known = worlds.labeled(tmp_path / "l", rows=12, sizes=[5, 7])
    whole = askance.select(None, known, pool, 9, strategy=rule, seed=3)
    picks = select_from(source, 9, labeled=seen, strategy=rule, seed=3)
    assert picks.indices.tolist() == whole.indices.tolist()


def test_a_job_travels(tmp_path):
    """Another machine gets it pickled and reads a shard alone."""
    pool = worlds.embedding(40)
    source = ParquetSource.open(worlds.write(tmp_path, pool, [25, 15]), worlds.VECTORS)
    job = scoring(source, "gradnorm", 5)
    job, shard = pickle.loads(pickle.dumps((job, source.shards[1])))
    with job.opened() as work:
        result = pickle.loads(pickle.dumps(work(shard)))
    top = result.value.shortlist.rows
    whole = askance.select(None, None, pool[25:], 5, strategy="gradnorm")
    assert top.positions.tolist() == (25 + whole.indices).tolist()
    assert texts(top.ids) == tuple(f"part-001.parquet:{row}" for row in whole.indices)
    assert result.read.rows == 15
