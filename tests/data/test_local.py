"""Compact Parquet copies found in a folder are used as they are, and what they lack is said."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from askance import data
from askance.encoders import FunctionEncoder
from askance.errors import DataError
from tests.data import builders

COUNT = 60


def images(split, count=COUNT, form="WEBP", side=32):
    pictures = builders.pictures(count, side, side, 3)
    table = {
        "image": [builders.encoded(picture, form) for picture in pictures],
        "label": pa.array(np.arange(count) % 10, pa.int8()),
        "split": pa.array([split] * count).dictionary_encode(),
        "index": pa.array(3 * np.arange(count), pa.int32()),
    }
    return pictures, pa.table(table)


def pair(folder, name, **options):
    pictures, train = images("train", **options)
    _, test = images("test", **options)
    pq.write_table(train, folder / f"{name}-train.parquet")
    pq.write_table(test, folder / f"{name}-test.parquet")
    return pictures


@pytest.mark.parametrize("name", ["cifar10", "svhn"])
def test_a_pair_of_files(name, tmp_path):
    pictures = pair(tmp_path, name)
    dataset = data.load(name, data_dir=tmp_path, download=False)
    assert dataset.source == f"local file {name}-train.parquet and {name}-test.parquet"
    assert (len(dataset.train), len(dataset.val), len(dataset.test)) == (54, 6, 60)
    assert "60 of " in dataset.subset
    assert dataset.subset.startswith("re-cropped") == (name == "svhn")
    for i in range(len(dataset.raw)):
        row = dataset.train.index[i] // 3  # positions in the official split, as the file gives them
        np.testing.assert_array_equal(dataset.raw[i], pictures[row])
        assert dataset.train.labels[i] == row % 10


def test_one_file_of_both_splits(tmp_path):
    tables = [images(split)[1] for split in ("train", "test")]
    pq.write_table(
        pa.concat_tables(tables, promote_options="permissive"), tmp_path / "stl10.parquet"
    )
    dataset = data.load("stl10", data_dir=tmp_path, download=False)
    assert (
        dataset.subset == "60 of 5,000 official training images, 60 of 8,000 official test images"
    )


def test_an_encoder_is_told_that_images_were_shrunk(tmp_path):
    pair(tmp_path, "stl10")
    pair(tmp_path, "cifar10")
    encoder = FunctionEncoder(lambda images: [[np.asarray(i).mean()] for i in images], "image", "1")
    plain, encoded = (data.load("stl10", tmp_path, encoder=each) for each in (None, encoder))
    assert plain.subset.startswith("60 of 5,000 official")
    assert encoded.subset == f"shrunk from 96×96 to 32×32 before encoding, {plain.subset}"
    assert "32×32" not in data.load("cifar10", tmp_path, encoder=encoder).subset


def test_askance_data_names_several_folders(tmp_path, monkeypatch):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    pair(second, "cifar10")
    monkeypatch.setenv("ASKANCE_DATA", os.pathsep.join(map(str, (first, second))))
    assert data.load("cifar10", download=False).pool_size == 54
    assert data.describe("cifar10").available.startswith("local file cifar10-train")
    assert data.describe("svhn").available is None


def test_mnist_is_rows_of_raw_bytes(tmp_path):
    pictures = builders.pictures(2 * COUNT, 28, 28)
    table = {
        "image": pa.array([picture.tobytes() for picture in pictures], pa.binary(784)),
        "label": pa.array(np.arange(2 * COUNT) % 10, pa.int8()),
        "split": ["train"] * COUNT + ["test"] * COUNT,
        "index": pa.array([*range(COUNT), *range(COUNT)], pa.int32()),
    }
    pq.write_table(pa.table(table), tmp_path / "mnist.parquet")
    dataset = data.load("mnist", data_dir=tmp_path, download=False)
    expected = torch.from_numpy(pictures[dataset.train.index]).flatten(1) / 127.5 - 1
    torch.testing.assert_close(dataset.train.inputs, expected)


def test_isolet_pools_its_parts_and_counts_classes_from_zero(tmp_path):
    count = 260
    values = builders.RNG.integers(-10_000, 10_000, (count, 617)).astype(np.int16)
    table = {
        "x": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 617),
        "label": pa.array(np.arange(count) % 26 + 1, pa.int8()),
        "split": ["train"] * 200 + ["test"] * 60,
    }
    pq.write_table(pa.table(table), tmp_path / "isolet.parquet")
    dataset = data.load("isolet", data_dir=tmp_path, download=False)
    assert (len(dataset.train), len(dataset.val), len(dataset.test)) == (188, 20, 52)
    assert dataset.subset == "260 of 7,797 official rows"
    i = 5
    row = dataset.train.index[i]
    assert dataset.train.labels[i] == row % 26
    np.testing.assert_allclose(dataset.raw[i], values[row] / 10_000, atol=1e-7)


def test_german(tmp_path):
    count = 120
    credit = {f"num{n}": pa.array(builders.RNG.integers(1, 5, count)) for n in range(1, 25)}
    credit |= {"class": pa.array(np.arange(count) % 2 + 1), "purpose": ["A40"] * count}
    pq.write_table(pa.table(credit), tmp_path / "german.parquet")
    dataset = data.load("german", data_dir=tmp_path, download=False)
    assert dataset.train.inputs.shape == (87, 24)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1] * 616] * 30, "must hold 617 numbers a row"),
        ([[1] * 616, [1] * 618] * 15, "must hold 617 numbers a row"),
        ([[0.5] * 617] * 30, "must hold lists of whole numbers"),
        ([1] * 30, "must hold lists of whole numbers"),
    ],
)
def test_isolet_of_another_form_is_refused(values, message, tmp_path):
    table = pa.table({"x": values, "label": pa.array(np.arange(30) % 26 + 1)})
    pq.write_table(table, tmp_path / "isolet.parquet")
    with pytest.raises(DataError, match=message):
        data.load("isolet", data_dir=tmp_path, download=False)


def test_gisette_has_no_compact_form(tmp_path):
    pq.write_table(pa.table({"label": [0, 1]}), tmp_path / "gisette.parquet")
    with pytest.raises(DataError, match="no compact form is known for gisette"):
        data.load("gisette", data_dir=tmp_path, download=False)


# --- what is refused ------------------------------------------------------------------------------


def with_column(table, name, values):
    place = table.column_names.index(name)
    return table.set_column(place, name, [values])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["label"]), "no column 'label'; it has image, split, index"),
        (lambda t: t.drop_columns(["image"]), "no column 'image'"),
        (lambda t: with_column(t, "label", pa.array([10] * COUNT)), "must be of 10 classes"),
        (lambda t: with_column(t, "label", pa.array([-1] * COUNT)), "must be of 10 classes"),
        (lambda t: with_column(t, "label", pa.array([0.5] * COUNT)), "must hold whole numbers"),
        (lambda t: with_column(t, "label", pa.array([None] * COUNT, pa.int8())), "60 empty values"),
        (
            lambda t: with_column(t, "split", pa.array(["extra"] * COUNT)),
            "must say train, val or test, found \\['extra'\\]",
        ),
        (
            lambda t: with_column(t, "split", pa.array(["test"] * COUNT)),
            "train and of test are needed",
        ),
        (lambda t: with_column(t, "index", pa.array([7] * COUNT)), "position is given twice"),
        (
            lambda t: with_column(t, "image", pa.array([b"RIFF"] * COUNT)),
            "row 0: not a readable image",
        ),
        (
            lambda t: with_column(t, "image", pa.array(["RIFF"] * COUNT)),
            "must hold bytes, got string",
        ),
        (lambda t: t.slice(0, 0), "train and of test are needed"),
    ],
)
def test_files_of_another_form_are_refused(change, message, tmp_path):
    pair(tmp_path, "cifar10")
    path = tmp_path / "cifar10-train.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(DataError, match=message):
        data.load("cifar10", data_dir=tmp_path, download=False)


@pytest.mark.parametrize(
    ("side", "message"),
    [(16, r"an image of \(16, 16\), not 32×32"), (64, "64×64 pixels; at most 1,024")],
)
def test_images_of_another_size_are_refused(side, message, tmp_path):
    pair(tmp_path, "cifar10", side=side)
    with pytest.raises(DataError, match=message):
        data.load("cifar10", data_dir=tmp_path, download=False)


def test_half_a_pair_is_refused(tmp_path):
    pair(tmp_path, "cifar10")
    (tmp_path / "cifar10-test.parquet").unlink()
    with pytest.raises(DataError, match=r"cifar10-test.parquet is not; both are needed"):
        data.load("cifar10", data_dir=tmp_path, download=False)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all" * 100])
def test_a_file_that_is_not_parquet_is_refused(content, tmp_path):
    (tmp_path / "stl10.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"stl10.parquet: cut short, corrupt or not Parquet"):
        data.load("stl10", data_dir=tmp_path, download=False)
