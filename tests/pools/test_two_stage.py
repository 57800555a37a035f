"""A two-stage rule on a pool that is read in shards or as a stream: one pass, the same picks."""

import numpy as np
import pytest
import torch

import askance
from askance.pools import LocalEngine, ParquetSource, select_from
from askance.pools.resume import forget
from askance.seeding import Draws
from askance.strategies import GradCoverShortlist
from askance.testing import check_strategy
from tests.pools import worlds
from tests.pools.test_batch import SIZES, world  # noqa: F401
from tests.pools.test_resume import Counting, Stopping

RULES = [GradCoverShortlist(), GradCoverShortlist(sample=30), GradCoverShortlist(candidates=1)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("excluded", [[], [3, 77]])
def test_shards_give_the_picks_of_the_whole_pool(world, rule, excluded):  # noqa: F811
    pool, source, labeled, known = world
    whole = askance.select(None, known, pool, 12, strategy=rule, seed=2, exclude=excluded)
    names = worlds.names_of(excluded, SIZES)
    picks = select_from(
        source, 12, labeled=labeled, strategy=rule, seed=2, exclude=names, engine=LocalEngine(2)
    )
    assert picks.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(picks.scores, whole.scores, rtol=1e-6)
    sample = f"{rule.sample:,}"
    assert picks.how == (
        f"from the {rule.candidates * 12} best rows by powergrad and a sample of {sample}, which are "
        f"all the rule looks at"
    )
    assert [w.pseudo_label for w in picks.explain()] == [w.pseudo_label for w in whole.explain()]


@pytest.mark.parametrize("rule", RULES)
def test_a_stream_of_blocks_and_a_loop_give_the_same(world, rule):  # noqa: F811
    pool, _, _, known = world
    whole = askance.select(None, known, pool, 12, strategy=rule, seed=2)
    blocks = (pool[start : start + 33] for start in range(0, 200, 33))
    picks = askance.select(None, known, blocks, 12, strategy=rule, seed=2)
    assert picks.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(picks.scores, whole.scores, rtol=1e-6)
    labeled = askance.strategies.Labeled(known[0], torch.from_numpy(known[1]), 9)
    (together,) = rule.pick_many([pool], 12, [rule.prepare(labeled, None)], [Draws(2)])
    assert together.rows.tolist() == whole.indices.tolist()


def test_a_stopped_pass_goes_on(tmp_path):
    address = worlds.write(tmp_path / "pool", worlds.embedding(60), [10] * 6)
    seen, _ = worlds.labeled(tmp_path / "labeled")
    path = tmp_path / ".out.resume"
    rule = GradCoverShortlist(sample=20)
    options = {"labeled": seen, "strategy": rule, "seed": 5}

    def opened():
        return ParquetSource.open(address, worlds.VECTORS)

    whole = select_from(opened(), 8, **options)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            select_from(opened(), 8, engine=Stopping(2), resume=path, **options)
    engine = Counting(1)
    picks = select_from(opened(), 8, engine=engine, resume=path, **options)
    assert engine.given == [4, 5]
    assert picks.ids == whole.ids
    np.testing.assert_array_equal(picks.scores, whole.scores)
    forget(path)


def test_candidates_for_a_pool_that_is_smaller_than_the_shortlist():
    checks = ["unique_in_pool_exactly_n", "never_picks_excluded", "keeps_to_limits"]
    check_strategy(GradCoverShortlist(candidates=50), checks=checks)
