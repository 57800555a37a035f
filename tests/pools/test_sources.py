"""Every kind of pool gives the same rows, whole or in parts, here or elsewhere."""

import pickle
from dataclasses import replace

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn
from torch.utils.data import IterableDataset

import askance
from askance.data.encode import pixels
from askance.embedding import Listed
from askance.errors import DataError, HeadError, InputError
from askance.pools import (
    Columns,
    ImageSource,
    IterableSource,
    MemmapSource,
    Naming,
    ParquetSource,
    TarSource,
    open_source,
    select_from,
)
from askance.pools.ids import Column, Numbered, id_hashes, text_hashes
from tests.pools import worlds

ALL = frozenset({"logits", "features", "inputs", "labels"})


def rows(source, wanted, batch_size=7):
    """(positions, ids, {part: tensor}) of all a source's rows."""
    blocks = [
        block
        for shard in pickle.loads(pickle.dumps(source)).shards
        for block in source.read(pickle.loads(pickle.dumps(shard)), batch_size, frozenset(wanted))
    ]
    parts = {part: torch.cat([getattr(block, part) for block in blocks]) for part in wanted}
    positions = np.concatenate([np.asarray(block.positions) for block in blocks])
    ids = [name for b in blocks for name in b.ids.take(np.arange(len(b)))]
    assert all(len(block) <= batch_size for block in blocks)
    return positions.tolist(), ids, parts


class Net(nn.Module):
    """Small enough for any picture."""

    def __init__(self, side=32):
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(3 * side * side, 3)

    def forward(self, x):
        return self.head(x.flatten(1))


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_parquet_lists(tmp_path, fixed, dtype):
    pool = worlds.embedding(50, dtype=dtype)
    address = worlds.write(tmp_path, pool, [20, 0, 30], group=9, fixed=fixed)
    source = ParquetSource.open(address, worlds.VECTORS, shard_rows=10)
    assert [shard.rows for shard in source.shards] == [9, 9, 2, 9, 9, 9, 3]
    positions, ids, parts = rows(source, ["logits", "features"])
    assert positions == list(range(50))
    assert ids[18:22] == [f"part-000.parquet:{r}" for r in (18, 19)] + [
        f"part-002.parquet:{r}" for r in (0, 1)
    ]
    assert torch.equal(parts["logits"], pool.logits)
    assert torch.equal(parts["features"], pool.features)


def test_parquet_columns_of_numbers_and_an_id_column(tmp_path):
    table = pa.table({"a": [1.0, 2.0], "b": [3, 4], "name": ["x", "y"], "y": [0, 1]})
    pq.write_table(table, tmp_path / "t.parquet")
    columns = Columns(features=("a", "b"), id="name", label="y")
    source = ParquetSource.open(str(tmp_path / "t.parquet"), columns)
    _, ids, parts = rows(source, ["inputs", "labels"])
    assert ids == ["x", "y"]
    assert parts["inputs"].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert parts["labels"].tolist() == [0, 1]
    assert not source.unique_ids


def test_parquet_at_an_fsspec_address(tmp_path):
    pool = worlds.embedding(30)
    local = worlds.write(tmp_path, pool, [10, 20])
    memory = fsspec.filesystem("memory")
    memory.makedirs("/askance-test", exist_ok=True)
    for path in tmp_path.iterdir():
        memory.pipe(f"/askance-test/{path.name}", path.read_bytes())
    naming = Naming(features=("features",), logits=("logits",))
    mine = select_from(open_source("memory://askance-test", naming), 6, strategy="gradnorm")
    theirs = select_from(open_source(local, naming), 6, strategy="gradnorm")
    assert mine.ids == theirs.ids
    memory.rm("/askance-test", recursive=True)


def test_only_what_a_rule_looks_at_is_read(tmp_path):
    pool = worlds.embedding(10)
    table = worlds.table(pool).set_column(
        1, "features", pa.array([None] * 10, pa.list_(pa.float64()))
    )
    pq.write_table(table, tmp_path / "p.parquet")
    source = ParquetSource.open(str(tmp_path), worlds.VECTORS)
    assert len(select_from(source, 3, strategy="entropy")) == 3
    with pytest.raises(DataError, match=r"p\.parquet: 10 empty values in column 'features'"):
        select_from(source, 3, strategy="gradnorm")


def test_images_in_a_folder_in_tar_and_in_parquet_are_the_same_pool(tmp_path):
    images = worlds.pictures(12, side=20)
    files = [worlds.png(image) for image in images]
    (tmp_path / "images" / "deep").mkdir(parents=True)
    for number, data in enumerate(files):
        (tmp_path / "images" / "deep" / f"{number:02d}.png").write_bytes(data)
    (tmp_path / "tar").mkdir()
    samples = [(f"{number:02d}", {"json": b"{}", "png": data}) for number, data in enumerate(files)]
    worlds.tar(tmp_path / "tar" / "a.tar", samples[:5])
    worlds.tar(tmp_path / "tar" / "b.tar", samples[5:])
    names = pa.array([f"{number:02d}" for number in range(12)])
    pq.write_table(pa.table({"img": pa.array(files), "name": names}), tmp_path / "p.parquet")
    sources = {
        "images": open_source(str(tmp_path / "images")),
        "tar": open_source(str(tmp_path / "tar")),
        "parquet": open_source(str(tmp_path / "p.parquet"), Naming(image="img", id="name")),
    }
    kinds = [type(source) for source in sources.values()]
    assert kinds == [ImageSource, TarSource, ParquetSource]
    (expected,) = pixels(images, ())
    picks = {}
    for kind, source in sources.items():
        positions, ids, parts = rows(source, ["inputs"], 5)
        assert positions == list(range(12))
        torch.testing.assert_close(parts["inputs"], expected)
        picks[kind] = select_from(source, 4, model=Net(), strategy="gradnorm")
        assert set(picks[kind].ids) <= set(ids)
    whole = askance.select(Net(), None, expected, 4, strategy="gradnorm")
    for each in picks.values():
        assert each.indices.tolist() == whole.indices.tolist()
    assert picks["images"].ids == tuple(f"deep/{name}.png" for name in picks["tar"].ids)
    assert picks["parquet"].ids == picks["tar"].ids


def test_labelled_images_have_the_class_of_their_folder(tmp_path):
    for name, count in (("dog", 2), ("cat", 3)):
        (tmp_path / name).mkdir()
        for number, image in enumerate(worlds.pictures(count)):
            (tmp_path / name / f"{number}.png").write_bytes(worlds.png(image))
    source = open_source(str(tmp_path), labeled=True)
    assert source.classes == ("cat", "dog")
    assert rows(source, ["inputs", "labels"])[2]["labels"].tolist() == [0, 0, 0, 1, 1]
    (tmp_path / "loose.png").write_bytes(worlds.png(worlds.pictures(1)[0]))
    with pytest.raises(DataError, match=r"loose\.png is in none"):
        open_source(str(tmp_path), labeled=True)


def test_tar_members_may_be_arrays_and_labels(tmp_path):
    pool = worlds.embedding(6)
    samples = []
    for row in range(6):
        parts = {}
        for name in ("logits", "features"):
            path = tmp_path / "x.npy"
            np.save(path, getattr(pool, name)[row].numpy())
            parts[f"{name}.npy"] = path.read_bytes()
        samples.append((f"dir/{row}", parts | {"cls": str(row % 3).encode()}))
    worlds.tar(tmp_path / "p.tar", samples)
    naming = Naming(features=("features.npy",), logits=("logits.npy",))
    source = open_source(str(tmp_path / "p.tar"), naming, labeled=True)
    _, ids, parts = rows(source, ["logits", "features", "labels"], 4)
    assert ids == [f"dir/{row}" for row in range(6)]
    assert torch.equal(parts["features"], pool.features)
    assert parts["labels"].tolist() == [0, 1, 2, 0, 1, 2]


def test_texts_take_a_transform(tmp_path):
    texts = ["a", "bb", "ccc", "dddd"]
    pq.write_table(pa.table({"words": texts}), tmp_path / "t.parquet")
    source = open_source(
        str(tmp_path), Naming(text="words", transform="tests.pools.test_sources:length")
    )
    assert rows(source, ["inputs"])[2]["inputs"].tolist() == [[1.0], [2.0], [3.0], [4.0]]
    untransformed = open_source(str(tmp_path), Naming(text="words"))
    with pytest.raises(InputError, match="texts need a transform"):
        select_from(untransformed, 1, model=torch.nn.Linear(1, 2), strategy="entropy")


def length(text):
    return torch.tensor([float(len(text))])


def test_memory_maps(tmp_path):
    pool = worlds.embedding(40, dtype=torch.float32)
    np.save(tmp_path / "features.npy", pool.features.numpy())
    np.save(tmp_path / "logits.npy", pool.logits.numpy())
    source = open_source(str(tmp_path))
    assert isinstance(source, MemmapSource)
    _, ids, parts = rows(MemmapSource.open(str(tmp_path), shard_rows=11), ["logits", "features"])
    assert ids[:2] == [f"{tmp_path.name}:0", f"{tmp_path.name}:1"]
    assert torch.equal(parts["logits"], pool.logits)
    whole = askance.select(None, None, pool, 5, strategy="egl")
    assert select_from(source, 5, strategy="egl").indices.tolist() == whole.indices.tolist()
    np.save(tmp_path / "ids.npy", np.array([f"n{row}" for row in range(40)]))
    named = select_from(open_source(str(tmp_path)), 5, strategy="egl")
    assert named.ids == tuple(f"n{row}" for row in whole.indices)
    np.save(tmp_path / "ids.npy", np.arange(39))
    with pytest.raises(DataError, match=r"one row for each point.*ids\.npy 39"):
        open_source(str(tmp_path))


def test_one_array_is_a_pool_of_inputs(tmp_path):
    inputs = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    np.save(tmp_path / "pool.npy", inputs)
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    whole = askance.select(model, None, inputs, 5, strategy="margin")
    picks = select_from(open_source(str(tmp_path / "pool.npy")), 5, model=model, strategy="margin")
    assert picks.indices.tolist() == whole.indices.tolist()
    assert picks.ids[0] == f"pool.npy:{whole.indices[0]}"


class Stream(IterableDataset):
    """Items that come one by one, with or without names; the labels of a pool cannot be touched."""

    def __init__(self, named=False, count=25):
        self.named, self.count = named, count

    def __iter__(self):
        inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(self.count, 4))).float()
        for number, x in enumerate(inputs):
            yield (f"item-{number}", x) if self.named else x


def stream():
    return Stream()


def named_stream():
    return Stream(named=True)


def test_any_iterable_dataset():
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    inputs = torch.stack(list(Stream()))
    whole = askance.select(model, None, inputs, 5, strategy="margin")
    plain = open_source("tests.pools.test_sources:stream")
    assert isinstance(plain, IterableSource)
    picks = select_from(plain, 5, model=model, strategy="margin", batch_size=4)
    assert picks.indices.tolist() == whole.indices.tolist()
    assert picks.ids[0] == f"tests.pools.test_sources:stream:{whole.indices[0]}"
    named = open_source("tests.pools.test_sources:named_stream", Naming(pairs=True))
    picks = select_from(named, 5, model=model, strategy="margin")
    assert picks.ids == tuple(f"item-{row}" for row in whole.indices)


def test_an_address_of_no_known_kind_lists_the_kinds(tmp_path):
    with pytest.raises(DataError, match="no such file or folder; expected a Parquet, CSV or TSV"):
        open_source(str(tmp_path / "nowhere"))
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataError, match="nothing of the kind is there"):
        open_source(str(tmp_path))
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "a.tar").write_bytes(b"")
    with pytest.raises(DataError, match="it holds images and tar"):
        open_source(str(tmp_path))


@pytest.mark.parametrize(
    "ids",
    [
        Numbered("f", 3, 4),
        Listed(["f:3", "f:4", "f:5", "f:6"]),
        Column(pa.array(["x", "f:3", "f:4", "f:5", "f:6"]).slice(1)),
    ],
)
def test_identifiers_agree_however_they_are_stored(ids):
    assert len(ids) == 4
    assert ids.take(np.array([0, 3])) == ["f:3", "f:6"]
    assert ids.find(frozenset({"f:4", "f:6", "f:04", "g:5", "f:99"})).tolist() == [1, 3]
    assert id_hashes(ids).tolist() == text_hashes(pa.array(["f:3", "f:4", "f:5", "f:6"])).tolist()


def test_whole_numbers_are_identifiers_too():
    ids = Column(pa.array([5, -1, 2**40]))
    assert ids.take(np.array([2, 1])) == [str(2**40), "-1"]
    assert ids.find(frozenset({"-1", "5.0", "05", str(2**80)})).tolist() == [1]
    assert len(set(id_hashes(ids).tolist())) == 3


def test_hashes_tell_texts_apart():
    texts = ["", "a", "b", "ab", "ba", "a" * 8, "a" * 9, "\0", "\0\0", "ä", *map(str, range(5000))]
    assert len(set(text_hashes(pa.array(texts)).tolist())) == len(texts)


@pytest.mark.parametrize("order", ["<f4", ">f4"])
def test_arrays_of_any_byte_order_are_read(tmp_path, order):
    pool = worlds.embedding(20, dtype=torch.float32)
    np.save(tmp_path / "logits.npy", pool.logits.numpy().astype(order))
    picks = select_from(MemmapSource.open(str(tmp_path)), 5, strategy="margin")
    assert (
        picks.indices.tolist()
        == askance.select(None, None, pool, 5, strategy="margin").indices.tolist()
    )


def test_picks_of_a_pool_in_memory_carry_its_identifiers():
    pool = worlds.embedding(20)
    named = replace(pool, ids=Listed([f"row {place}" for place in range(20)]))
    for rule in ("entropy", "badge"):
        picks = askance.select(None, None, named, 5, strategy=rule)
        assert picks.ids == tuple(f"row {place}" for place in picks.indices)
        assert [row["id"] for row in picks.rows()] == list(picks.ids)
    assert askance.select(None, None, pool, 5, strategy="entropy").ids is None


class Convolutional(nn.Module):
    """No linear head: a 1x1 convolution gives the logits."""

    def __init__(self, squash=False):
        super().__init__()
        torch.manual_seed(0)
        self.classes, self.squash = nn.Conv2d(3, 3, 1), squash

    def forward(self, x):
        z = self.classes(x).mean((2, 3))
        return z.softmax(1) if self.squash else z


def test_rules_that_need_logits_alone_take_a_model_without_a_linear_head(tmp_path):
    for number, image in enumerate(worlds.pictures(12, side=20)):
        (tmp_path / f"{number:02d}.png").write_bytes(worlds.png(image))
    source = open_source(str(tmp_path))
    picks = select_from(source, 4, model=Convolutional(), strategy="margin")
    inputs = rows(source, ["inputs"])[2]["inputs"]
    expected = askance.select(Convolutional(), None, inputs, 4, strategy="margin")
    assert picks.indices.tolist() == expected.indices.tolist()
    with pytest.raises(InputError, match="look like probabilities"):
        select_from(source, 4, model=Convolutional(squash=True), strategy="margin")
    with pytest.raises(HeadError, match=r"no nn\.Linear"):
        select_from(source, 4, model=Convolutional(), strategy="gradnorm")
