"""A pool scored by a Ray cluster: the picks of this machine, though workers and machines are lost."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import askance
from askance import strategies
from askance.embedding import Embedding, texts
from askance.errors import InputError
from askance.integrations.ray_engine import RayEngine
from askance.pools import (
    Columns,
    LocalEngine,
    ParquetSource,
    Reader,
    ScoreRows,
    ShardJob,
    select_from,
)
from askance.pools.constraints import ColumnConstraints
from askance.pools.reference import reference_of
from askance.pools.source import Shard
from askance.seeding import Draws
from askance.selection.clock import Clock
from askance.selection.excluded import Excluded
from askance.selection.scan import StagedRows, finish_stages
from askance.strategies import Badge, GradCoverShortlist, KCenter, Pointwise
from tests.integrations.conftest import ROOM, naming, nodes
from tests.rules import ONE_MODEL

N, L, C, D = 3000, 60, 4, 6
FILES = 10
RULES = [strategies.get(name) for name in ONE_MODEL]
STREAMED = [rule for rule in RULES if isinstance(rule, Pointwise)] + [
    GradCoverShortlist(sample=500)
]


def vectors(matrix):
    flat = pa.array(matrix.ravel())
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A pool of ten files and a labelled set of two, as sources and as arrays."""
    folder = tmp_path_factory.mktemp("pool")
    rng = np.random.default_rng(0)

    def written(name, count, files):
        logits = rng.normal(size=(count, C)).astype(np.float32)
        features = rng.normal(size=(count, D)).astype(np.float32)
        labels = rng.integers(C, size=count)
        (folder / name).mkdir()
        for number, rows in enumerate(np.array_split(np.arange(count), files)):
            table = pa.table(
                {
                    "logits": vectors(logits[rows]),
                    "features": vectors(features[rows]),
                    "label": labels[rows],
                    "id": [f"{name}-{row}" for row in rows],
                }
            )
            pq.write_table(table, folder / name / f"{number}.parquet")
        columns = Columns(("features",), ("logits",), id="id", label="label")
        source = ParquetSource.open(str(folder / name), columns)
        embedding = askance.Embedding(torch.from_numpy(logits), torch.from_numpy(features))
        return source, embedding, torch.from_numpy(labels)

    return written("pool", N, FILES), written("labeled", L, 2)


@dataclass(frozen=True, eq=False)
class AllRules:
    """What every rule that streams keeps of a shard, in one pass that can go wrong twice.

    `doomed` is a node: whoever is given a shard there says so and then does nothing until the machine
    is gone; everybody else waits for that. And the worker that comes to shard `deadly` first is killed.
    """

    scorers: tuple
    folder: str = ""
    doomed: str = ""
    deadly: int | None = None
    device = None

    @contextmanager
    def opened(self):
        yield self._all

    def _all(self, shard):
        if self.folder:
            self._suffer(shard)
        return [self._one(scorer, shard) for scorer in self.scorers]

    def _suffer(self, shard):
        import ray

        began, killed = Path(self.folder, "began"), Path(self.folder, "killed")
        if ray.get_runtime_context().get_node_id() == self.doomed:
            began.touch()
            time.sleep(300)
        until = time.monotonic() + 100
        while self.doomed and not began.exists() and time.monotonic() < until:
            time.sleep(0.05)
        if shard.index == self.deadly and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def _one(self, scorer, shard):
        with scorer.opened() as work:
            return work(shard)


def scorers(world, n=40):
    (pool, _, _), (labeled, _, _) = world
    made = []
    for rule in STREAMED:
        reference, like = reference_of(rule, Reader(labeled), LocalEngine(1), Draws(3))
        scorer, kept, sampled = stages(rule, n)
        none = Excluded(np.empty(0, np.int64))
        work = ScoreRows(scorer, kept, reference, Draws(3), none, like, sampled=sampled)
        made.append(ShardJob(Reader(pool), frozenset({"logits", "features"}), work))
    return tuple(made)


def stages(rule, n):
    """(what scores, how many of the best rows are kept, how many for a sample)."""
    return (rule, n, 0) if isinstance(rule, Pointwise) else (*rule.shortlisted(n), rule.sampled)


def assert_same_rows(one, other):
    assert one.rows.positions.tolist() == other.rows.positions.tolist()
    assert (one.rows.ids is None) == (other.rows.ids is None)
    assert one.rows.ids is None or texts(one.rows.ids) == texts(other.rows.ids)
    assert one.scores.tobytes() == other.scores.tobytes()


def assert_picks_of_every_rule(world, there):
    """Each shard once, and by every rule that streams the picks of this machine."""
    (pool, everything, _), (labeled, seen, labels) = world
    assert sorted(shard.index for shard, _ in there) == list(range(FILES))
    here = list(LocalEngine(2).map(AllRules(scorers(world)), pool.shards))
    for place, rule in enumerate(STREAMED):
        _, kept, sampled = stages(rule, 40)
        staged, same = (
            StagedRows.best_of([parts[place].value for _, parts in each], kept, sampled)
            for each in (there, here)
        )
        assert_same_rows(staged.shortlist, same.shortlist)
        assert_same_rows(staged.sample, same.sample)
        picks = staged.shortlist
        if not isinstance(rule, Pointwise):
            reference, _ = reference_of(rule, Reader(labeled), LocalEngine(1), Draws(3))
            picks = finish_stages(rule, staged, 40, reference, Draws(3), Clock())
        whole = askance.select(None, (seen, labels), everything, 40, strategy=rule, seed=3)
        assert picks.rows.positions.tolist() == whole.indices.tolist()
        assert sum(parts[place].read.rows for _, parts in there) == N


def test_every_rule_that_streams_picks_here_and_there_the_same_though_a_worker_goes(
    cluster, world, tmp_path
):
    (pool, _, _), _ = world
    job = AllRules(scorers(world), str(tmp_path), deadly=2)
    there = list(RayEngine(address=cluster.address).map(job, pool.shards))
    assert (tmp_path / "killed").exists(), "no worker was killed: the test shows nothing"
    assert_picks_of_every_rule(world, there)


@pytest.mark.slow
def test_every_rule_that_streams_picks_here_and_there_the_same_though_a_machine_and_a_worker_go(
    cluster, world, tmp_path
):
    (pool, _, _), _ = world
    extra = cluster.add_node(**ROOM)

    def remove():
        until = time.monotonic() + 100
        while not (tmp_path / "began").exists() and time.monotonic() < until:
            time.sleep(0.05)
        cluster.remove_node(extra, allow_graceful=False)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        job = AllRules(scorers(world), str(tmp_path), extra.node_id, deadly=2)
        there = list(RayEngine(address=cluster.address).map(job, pool.shards))
    finally:
        remover.join()
    assert (tmp_path / "began").exists(), "the machine had no shard: the test shows nothing"
    assert (tmp_path / "killed").exists(), "no worker was killed: the test shows nothing"
    assert_picks_of_every_rule(world, there)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_workers_changes_nothing(cluster, world, workers):
    (pool, _, _), _ = world
    job = AllRules(scorers(world))
    assert_picks_of_every_rule(world, list(RayEngine(workers=workers).map(job, pool.shards)))


@dataclass(frozen=True)
class Telling:
    """Says where and by whom a shard was read; once, one of its workers is killed."""

    folder: str
    deadly: int | None = None
    slow: float = 0.0
    faulty: int | None = None
    device = None

    @contextmanager
    def opened(self):
        yield self._told

    def _told(self, shard):
        import ray

        time.sleep(self.slow)
        if shard.index == self.faulty:
            raise InputError(f"{shard.name} cannot be read")
        if shard.index == self.deadly:
            mark = Path(self.folder, "killed")
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return ray.get_runtime_context().get_node_id(), os.getpid(), shard.index * 10


SHARDS = [Shard(index, f"shard {index}", "", index * 10, 10) for index in range(12)]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_a_worker_that_is_killed_costs_nothing_and_nobody_is_counted_twice(
    cluster, tmp_path, workers
):
    job = Telling(str(tmp_path), deadly=3)
    results = list(RayEngine(workers=workers).map(job, SHARDS))
    assert (tmp_path / "killed").exists()
    assert sorted(shard.index for shard, _ in results) == list(range(12))
    assert all(told[2] == 10 * shard.index for shard, told in results)


@pytest.mark.slow
def test_a_machine_that_goes_in_the_middle_costs_nothing(cluster, tmp_path):
    import ray

    extra = cluster.add_node(**ROOM)
    assert len(nodes(ray)) == 4
    job = Telling(str(tmp_path), slow=0.4)
    results, gone = [], None
    for shard, told in RayEngine(workers=4).map(job, SHARDS):
        results.append((shard.index, told))
        if gone is None and told[0] == extra.node_id:
            gone = len(results)
            cluster.remove_node(extra, allow_graceful=False)
    if gone is None:
        cluster.remove_node(extra)
        pytest.fail("the machine had no shard: the test shows nothing")
    assert gone < 12
    assert sorted(index for index, _ in results) == list(range(12))


@pytest.mark.slow
def test_an_error_of_the_job_comes_back_as_itself(cluster, tmp_path):
    with pytest.raises(InputError, match=r"^shard 5 cannot be read$"):
        list(RayEngine(workers=1).map(Telling(str(tmp_path), faulty=5), SHARDS[4:7]))


def same_batch(world, rule, n, engine, watch=None):
    """Picks from a pool held by a cluster are those of this machine, from a cache and from memory."""
    (pool, everything, _), (labeled, seen, labels) = world
    asked = {"labeled": labeled, "strategy": rule, "seed": 5, "exclude": ["pool-7"]}
    there = select_from(pool, n, engine=engine, watch=watch, **asked)
    here = select_from(pool, n, engine=LocalEngine(1), **asked)
    whole = askance.select(None, (seen, labels), everything, n, strategy=rule, seed=5, exclude=[7])
    assert there.indices.tolist() == here.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-9)
    assert there.ids == here.ids == tuple(f"pool-{row}" for row in whole.indices)
    assert (there.read.rows, there.read.excluded) == (N, 1)
    # Their scores may differ in the last digit; all else is of the same rows.
    reasons = [[replace(why, score=0.0) for why in each.explain()] for each in (there, here)]
    assert reasons[0] == reasons[1]
    assert "held by the workers of ray" in there.how


class KillOnce:
    """Told of every shard; after the last it kills an actor that holds some of them."""

    def __init__(self, after):
        self.left = after
        self.killed = 0

    def __call__(self, shard, read):
        self.left -= 1
        if self.left == 0:
            holders = naming("ray::_ShareActor")
            assert holders, "nobody holds anything: the test would show nothing"
            os.kill(holders[0][0], signal.SIGKILL)
            self.killed += 1


def test_badge_picks_from_three_machines_what_it_picks_from_one_though_a_share_is_lost(
    cluster, world
):
    kill = KillOnce(after=FILES)
    same_batch(world, Badge(), 120, RayEngine(workers=3), watch=kill)
    assert kill.killed == 1


def test_kcenter_picks_from_two_machines_what_it_picks_from_one(cluster, world):
    same_batch(world, KCenter(), 120, RayEngine(workers=2))


@pytest.mark.slow
@pytest.mark.parametrize("rule", [Badge(bias=True), KCenter()])
@pytest.mark.parametrize("after", [1, 4])
def test_batch_rules_survive_losses_whenever_they_come(cluster, world, rule, after):
    kill = KillOnce(after)
    same_batch(world, rule, 300, RayEngine(workers=3), watch=kill)
    assert kill.killed == 1


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_resumed_pass_on_a_cluster_picks_the_same(cluster, world, tmp_path, workers):
    (pool, _, _), (labeled, _, _) = world
    asked = {"labeled": labeled, "strategy": "grad", "seed": 2, "resume": tmp_path / "done"}

    def stop(shard, read):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select_from(pool, 30, engine=RayEngine(workers=workers), watch=stop, **asked)
    seen = []
    picks = select_from(
        pool,
        30,
        engine=RayEngine(workers=workers),
        watch=lambda s, _: seen.append(s.index),
        **asked,
    )
    assert sorted(seen) == list(range(FILES))
    here = select_from(pool, 30, engine=LocalEngine(1), labeled=labeled, strategy="grad", seed=2)
    assert picks.ids == here.ids
    assert picks.scores.tobytes() == here.scores.tobytes()
    assert picks.read.rows == here.read.rows


@pytest.mark.parametrize("options", [{"workers": 0}, {"gpus": -1.0}, {"cpus": 0.0}])
def test_engines_that_cannot_be(options):
    with pytest.raises(InputError, match="must be"):
        RayEngine(**options)


def test_a_share_of_one_output_is_refused():
    share = Embedding(torch.randn(4, 1), torch.randn(4, 3), np.arange(4))
    with pytest.raises(InputError, match="the model has one output"):
        Badge().shard(share, 2, None, Draws())
    assert len(Badge(loss="multilabel").shard(share, 2, None, Draws())) == 4


@pytest.mark.parametrize("rule", ["entropy", "badge"])
def test_limits_hold_on_a_cluster(cluster, world, rule):
    (pool, everything, _), (labeled, seen, labels) = world
    limits = {"groups": "predicted", "at_most": 6, "at_least": 4, "max_similarity": 0.9}
    asked = {
        "labeled": labeled,
        "strategy": rule,
        "seed": 1,
        "constraints": ColumnConstraints(**limits),
    }
    there = select_from(pool, 20, engine=RayEngine(workers=2), **asked)
    whole = askance.select(None, (seen, labels), everything, 20, strategy=rule, seed=1, **limits)
    assert there.indices.tolist() == whole.indices.tolist()
    assert there.engine == "ray"
