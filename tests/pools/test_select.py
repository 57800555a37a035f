"""Streamed picks are those of `askance.select` on the whole pool, however it is cut up."""

import pickle
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import askance
from askance.pools import LocalEngine, ParquetSource, ShardScorer, merge, select_from
from askance.pools.leaders import Leaders
from askance.pools.reference import reference_of
from askance.pools.scorer import Reader
from askance.seeding import Draws
from askance.strategies import Pointwise
from tests.pools import worlds

POINTWISE = [
    name
    for name in askance.strategies.names()
    if isinstance(askance.strategies.get(name), Pointwise)
]


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
    assert picks.positions.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(picks.scores, whole.scores, rtol=1e-9)
    assert picks.leaders.rows == len(pool)
    said, expected = picks.explain(), whole.explain()
    assert [e.pseudo_label for e in said if e.pseudo_label is not None] == [
        e.pseudo_label for e in expected if said[0].pseudo_label is not None
    ]


def test_ties_go_to_the_lowest_position_in_whatever_order_shards_end(tmp_path):
    pool = worlds.embedding(6)
    pool = askance.Embedding(pool.logits[[0] * 12], pool.features[[0] * 12])
    source = ParquetSource.open(worlds.write(tmp_path, pool, [5, 4, 3]), worlds.VECTORS)
    scorer = ShardScorer(Reader(source), askance.strategies.get("entropy"), None, 6)
    with scorer.opened() as work:
        parts = [work(shard) for shard in source.shards]
    for order in permutations(parts):
        assert merge(order, 6).positions.tolist() == [0, 1, 2, 3, 4, 5]


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=4), st.integers(1, 9))
@settings(deadline=None)
def test_merging_is_sorting(groups, n):
    count, parts = 0, []
    for group in groups:
        positions = np.arange(count, count + len(group))
        count += len(group)
        order = np.lexsort((positions, -np.array(group)))
        scores = np.array(group, dtype=float)[order]
        parts.append(
            Leaders(scores, positions[order], tuple(map(str, positions[order])), rows=len(group))
        )
    flat = np.array([value for group in groups for value in group], dtype=float)
    expected = np.argsort(-flat, kind="stable")[:n]
    for some in (parts, parts[::-1]):
        best = merge([merge(some[:1], n), *some[1:]], n)
        assert best.positions.tolist() == expected.tolist()
        assert best.ids == tuple(map(str, expected))
        assert best.rows == count


def test_the_reference_is_a_sum_over_shards(tmp_path):
    seen, (known, labels) = worlds.labeled(tmp_path, rows=50, sizes=[1, 20, 29])
    rule = askance.strategies.get("powergrad")
    mine = reference_of(rule, Reader(seen, batch_size=7), LocalEngine(2), Draws())
    theirs = rule.prepare(askance.strategies.Labeled(known, labels, 50), None)
    torch.testing.assert_close(mine.mean, theirs.mean, rtol=1e-12, atol=1e-14)
    assert mine.count == 50


@pytest.mark.parametrize(
    "rule", [askance.strategies.Grad(reference_size=4), askance.strategies.Grad(bias=False)]
)
def test_options_of_a_rule_are_kept(tmp_path, rule):
    pool = worlds.embedding(60)
    source = ParquetSource.open(worlds.write(tmp_path / "p", pool, [33, 27]), worlds.VECTORS)
    seen, known = worlds.labeled(tmp_path / "l", rows=12, sizes=[5, 7])
    whole = askance.select(None, known, pool, 9, strategy=rule, seed=3)
    picks = select_from(source, 9, labeled=seen, strategy=rule, seed=3)
    assert picks.positions.tolist() == whole.indices.tolist()


def test_a_scorer_travels(tmp_path):
    """Another machine gets it pickled and reads a shard alone."""
    pool = worlds.embedding(40)
    source = ParquetSource.open(worlds.write(tmp_path, pool, [25, 15]), worlds.VECTORS)
    scorer = ShardScorer(Reader(source), askance.strategies.get("gradnorm"), None, 5)
    scorer, shard = pickle.loads(pickle.dumps((scorer, source.shards[1])))
    with scorer.opened() as work:
        leaders = pickle.loads(pickle.dumps(work(shard)))
    assert leaders.positions.min() >= 25
    assert leaders.rows == 15
