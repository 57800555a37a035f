"""Labelled rows that are still in a pool in shards are counted and named."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from askance.embedding import concatenated
from askance.pools import Columns, ModelRecipe, ParquetSource, select_from
from askance.pools.constraints import ColumnConstraints
from askance.selection.selection import ReadCounts
from tests.pools import worlds

N = 120
AT = [7, 60, 119]


@pytest.fixture
def world(tmp_path):
    """A pool with rows 7, 60 and 119 labelled, with and without identifiers of its own."""
    pool = worlds.embedding(N, dtype=torch.float32)
    names = np.array([f"r{row}" for row in range(N)])
    worlds.write(tmp_path / "p", pool, [50, 70], 20, name=names)
    own = worlds.embedding(4, 3, torch.float32)
    return pool, own, tmp_path


def sources(world, name=None, label_names=None):
    pool, own, folder = world
    seen = concatenated([pool[np.array(AT)], own]).renumbered()
    more = {} if label_names is None else {"name": label_names}
    worlds.write(folder / "l", seen, [7], label=np.arange(7) % worlds.CLASSES, **more)
    columns = Columns(("features",), ("logits",), id=name)
    known = Columns(("features",), ("logits",), label="label", id=name if more else None)
    return (
        ParquetSource.open(str(folder / "p"), columns),
        ParquetSource.open(str(folder / "l"), known),
    )


@pytest.mark.parametrize("rule", ["entropy", "grad", "badge", "kcenter"])
def test_by_content(world, rule):
    source, labeled = sources(world)
    picks = select_from(source, N - 1, labeled=labeled, strategy=rule)
    assert picks.already_labeled.tolist() == AT
    again = len(set(AT) & set(picks.indices.tolist()))
    (note,) = picks.notes
    assert f"equal labelled ones: 3, picked again: {again};" in note
    assert "(part-000.parquet:7, part-001.parquet:10, part-001.parquet:69)" in note
    names = ["part-000.parquet:7", "part-001.parquet:10"]
    fewer = select_from(source, 5, labeled=labeled, strategy=rule, exclude=names)
    assert fewer.already_labeled.tolist() == [119]


def test_by_identifiers_where_both_have_them(world):
    names = ["r3", "x", "r99", "y", "z", "u", "v"]
    source, labeled = sources(world, "name", names)
    picks = select_from(source, 5, labeled=labeled, strategy="grad")
    assert picks.already_labeled.tolist() == [3, 99]
    assert "(r3, r99)" in picks.notes[0]


def test_nothing_is_said_without_a_labelled_set_or_where_nothing_is_read(world):
    source, labeled = sources(world)
    for options in ({"strategy": "entropy"}, {"strategy": "random", "labeled": labeled}):
        picks = select_from(source, 5, **options)
        assert picks.notes == ()
        assert picks.already_labeled.tolist() == []


def test_items_are_compared_before_a_network_sees_them(tmp_path):
    pixels = worlds.pictures(30)
    files = [worlds.png(picture) for picture in pixels]
    pq.write_table(pa.table({"img": files}), tmp_path / "pool.parquet", row_group_size=8)
    seen = pa.table({"img": [files[4], worlds.png(worlds.pictures(1, 9)[0])], "y": [0, 1]})
    pq.write_table(seen, tmp_path / "seen.parquet")
    source = ParquetSource.open(str(tmp_path / "pool.parquet"), Columns(image="img"))
    labeled = ParquetSource.open(str(tmp_path / "seen.parquet"), Columns(image="img", label="y"))
    model = ModelRecipe("tests.pools.test_labeled:network")
    for rule in ("grad", "entropy"):
        picks = select_from(source, 5, labeled=labeled, model=model, strategy=rule)
        assert picks.already_labeled.tolist() == [4]


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 2))


def test_a_pass_that_goes_on_remembers_them(world, tmp_path):
    source, labeled = sources(world)
    options = {"labeled": labeled, "strategy": "grad", "resume": tmp_path / "r"}
    first, again = (select_from(source, 5, **options) for _ in range(2))
    assert again.already_labeled.tolist() == first.already_labeled.tolist() == AT


def test_counts_are_put_together():
    parts = [ReadCounts(3, labeled=(9,)), ReadCounts(2), ReadCounts(4, labeled=(1, 4))]
    assert ReadCounts.total(parts).labeled == (1, 4, 9)


def test_picks_that_are_copies_are_said(tmp_path):
    pool = concatenated([worlds.embedding(5, dtype=torch.float32)] * 4).renumbered()
    source = ParquetSource.open(worlds.write(tmp_path / "p", pool, [12, 8]), worlds.VECTORS)
    picks = select_from(source, 8, strategy="gradnorm")
    assert picks.notes[0].startswith("picks that are copies of another pick: 6 of 8;")
    alone = ColumnConstraints(max_similarity=1)
    apart = select_from(source, 8, strategy="gradnorm", constraints=alone)
    assert len(apart) == 5
    assert apart.notes == ("5 of 8 points picked: the constraints let no other one through",)
