"""Limits on the picks from a pool that is read in shards: the same as on a pool in memory."""

import numpy as np
import pytest
import torch

import askance
from askance.errors import InputError, UnknownError
from askance.pools import IterableSource, LocalEngine, ParquetSource, open_source, select_from
from askance.pools.constraints import ColumnConstraints
from tests.pools import worlds
from tests.pools.test_sources import Stream

N = 200
RNG = np.random.default_rng(5)
KIND = RNG.choice(["cat", "dog", "owl"], N, p=[0.7, 0.2, 0.1])
SITE = RNG.integers(5, size=N)
PRICE = RNG.integers(1, 30, N) / 10
LIMITS = {
    "quotas": {"groups": "kind", "at_most": {"cat": 2, "dog": 5}},
    "minimums": {"groups": "site", "at_least": 2},
    "classes": {"groups": "predicted", "at_most": 6, "at_least": 2},
    "costs": {"costs": "price", "budget": 8},
    "all": {"groups": "site", "at_least": 1, "at_most": 4, "costs": "price", "budget": 11.5},
    "similar": {"max_similarity": 0.6, "groups": "kind", "at_most": 6},
}
COLUMNS = {"kind": KIND, "site": SITE, "price": PRICE}


@pytest.fixture
def world(tmp_path):
    pool = worlds.embedding(N, dtype=torch.float32)
    address = worlds.write(tmp_path / "p", pool, [50, 90, 60], 40, **COLUMNS)
    seen, labels = worlds.embedding(9, 1, torch.float32), np.arange(9) % worlds.CLASSES
    worlds.write(tmp_path / "l", seen, [4, 5], label=labels)
    labeled = ParquetSource.open(str(tmp_path / "l"), worlds.LABELED)
    source = ParquetSource.open(address, worlds.VECTORS)
    return pool, source, labeled, (seen, labels)


def in_memory(limits):
    return {
        key: COLUMNS.get(value, value) if key in ("groups", "costs") else value
        for key, value in limits.items()
    }


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize(
    "rule",
    [
        "entropy",
        "powergrad",
        "badge",
        "kcenter",
        "grad-spread",
        "cluster-margin",
        "maxherding",
        "grad-cover-shortlist",
    ],
)
def test_the_picks_are_those_of_select(world, rule, limits):
    pool, source, labeled, known = world
    whole = askance.select(None, known, pool, 10, strategy=rule, seed=2, **in_memory(limits))
    picks = select_from(
        source, 10, labeled=labeled, strategy=rule, seed=2, constraints=ColumnConstraints(**limits),
        engine=LocalEngine(2),
    )  # fmt: skip
    assert picks.indices.tolist() == whole.indices.tolist()
    assert picks.notes == whole.notes
    assert len(picks.ids) == len(picks)


def test_a_shortlist_is_longer_where_groups_are_short(world):
    _, source, labeled, _ = world
    limits = ColumnConstraints(groups="kind", at_most=4)
    picks = select_from(
        source, 12, labeled=labeled, strategy="badge", shortlist=36, constraints=limits
    )
    assert np.unique(KIND[picks.indices], return_counts=True)[1].tolist() == [4, 4, 4]


def test_a_stopped_pass_goes_on_under_the_same_limits_alone(world, tmp_path):
    _, source, labeled, _ = world
    options = {"labeled": labeled, "strategy": "grad", "resume": tmp_path / "r"}
    limits = ColumnConstraints(groups="kind", at_most=4)
    picks = select_from(source, 12, constraints=limits, **options)
    again = select_from(source, 12, constraints=limits, **options)
    assert again.indices.tolist() == picks.indices.tolist()
    with pytest.raises(ValueError, match="constraints"):
        select_from(source, 12, constraints=ColumnConstraints(groups="kind", at_most=5), **options)


@pytest.mark.parametrize(
    ("limits", "kind", "message"),
    [
        ({"groups": "breed", "at_most": 1}, InputError, "no column 'breed'; it has"),
        ({"groups": "price", "at_most": 1}, InputError, "must hold texts or whole numbers"),
        ({"costs": "kind", "budget": 1}, InputError, "costs must be numbers, column 'kind' is"),
        ({"groups": "kind", "at_most": {"cow": 1}}, UnknownError, "group 'cow', .* 'cat', 'dog'"),
        ({"groups": "kind", "at_most": 1}, InputError, "at_most leaves 3; raise at_most"),
    ],
)
def test_what_the_pool_does_not_have_is_refused(world, limits, kind, message):
    with pytest.raises(kind, match=message):
        select_from(world[1], 5, strategy="entropy", constraints=ColumnConstraints(**limits))


def test_columns_are_of_parquet_and_predictions_of_any_pool(tmp_path):
    pool = worlds.embedding(30)
    source = IterableSource(Stream(pool))
    with pytest.raises(InputError, match="columns of a Parquet or CSV pool, and this is none"):
        select_from(source, 5, strategy="entropy", constraints=ColumnConstraints("kind", at_most=1))
    with pytest.raises(InputError, match="max_similarity looks at the whole pool"):
        select_from(
            source, 5, strategy="entropy", constraints=ColumnConstraints(max_similarity=0.5)
        )
    np.save(tmp_path / "logits.npy", pool.logits.numpy())
    picks = select_from(
        open_source(str(tmp_path)), 4, strategy="entropy",
        constraints=ColumnConstraints("predicted", at_most={"0": 0}),
    )  # fmt: skip
    assert 0 not in pool.logits.argmax(1)[torch.from_numpy(picks.indices)]
