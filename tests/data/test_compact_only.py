"""Datasets that are there as compact copies alone: sets of texts, and image files of any size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from askance import data
from askance.data import catalog
from askance.encoders import FunctionEncoder
from askance.errors import DataError
from tests.data import builders

COUNT = 60
TEXTS = ("banking77", "clinc150", "trec", "sst2")
WORDS = "transfer card money refund weather music"


def text_table(*splits, classes=2):
    words = WORDS.split()
    texts = [f"{split} {words[row % 6]} {row}" for split in splits for row in range(COUNT)]
    labels = [row % classes for _ in splits for row in range(COUNT)]
    return pa.table(
        {"text": texts, "label": labels, "split": [split for split in splits for _ in range(COUNT)]}
    )


@pytest.fixture
def pets(tmp_path):
    """The folder of a small copy of `pets`; gives it and the pictures, training first."""
    pictures = builders.pictures(2 * COUNT, 160, 160, 3)
    table = {
        "image": [builders.encoded(picture, "PNG") for picture in pictures],
        "label": np.arange(2 * COUNT) % 37,
        "split": ["train"] * COUNT + ["test"] * COUNT,
    }
    pq.write_table(pa.table(table), tmp_path / "pets.parquet")
    return tmp_path, pictures


def sizes(images):
    return [[image.shape[0], image.mean()] for image in map(np.asarray, images)]


@pytest.mark.parametrize("name", TEXTS)
def test_a_copy_of_texts(name, tmp_path):
    pq.write_table(text_table("train", "test"), tmp_path / f"{name}.parquet")
    dataset = data.load(name, data_dir=tmp_path)
    assert (len(dataset.train), len(dataset.val), len(dataset.test)) == (54, 6, 60)
    assert (
        dataset.raw[0]
        == f"train {WORDS.split()[dataset.train.index[0] % 6]} {dataset.train.index[0]}"
    )
    noun, (train, test) = catalog.entry(name).noun, catalog.entry(name).official
    assert (
        dataset.subset
        == f"60 of {train:,} official training {noun}, 60 of {test:,} official test {noun}"
    )
    lengths = dataset.train.inputs.norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones(54))


def test_an_official_validation_split_is_the_validation_split(tmp_path):
    pq.write_table(text_table("val", "train", "test"), tmp_path / "sst2.parquet")
    dataset = data.load("sst2", data_dir=tmp_path)
    assert (len(dataset.train), len(dataset.val), len(dataset.test)) == (60, 60, 60)
    assert [dataset.raw[row].split()[0] for row in range(60)] == ["train"] * 60
    assert dataset.train.index.tolist() == list(range(60))
    assert dataset.val.index.tolist() == list(range(60, 120))  # no position of the training split
    assert dataset.val.labels.tolist() == [row % 2 for row in range(60)]


def test_files_of_images_are_32_pixels_wide_without_an_encoder(pets):
    folder, pictures = pets
    dataset = data.load("pets", data_dir=folder)
    assert dataset.train.inputs.shape == (54, 3, 32, 32)
    assert dataset.subset.startswith("centre squares at 160×160, lossy WebP, 60 of 3,680 official")
    assert "lossy" in repr(dataset)
    for row in range(3):
        np.testing.assert_array_equal(dataset.raw[row], pictures[dataset.train.index[row]])
    small = data.encode.pixels(pictures[dataset.train.index], [])[0]
    torch.testing.assert_close(dataset.train.inputs, small, atol=1e-6, rtol=0)


def test_an_encoder_sees_images_at_the_size_of_the_copy(pets):
    folder, pictures = pets
    seen = []

    def remembered(images):
        seen.extend(np.asarray(image).shape for image in images)
        return sizes(images)

    encoder = FunctionEncoder(remembered, "image", "1")
    dataset = data.load("pets", data_dir=folder, encoder=encoder)
    assert seen.count((160, 160, 3)) == 2 * COUNT
    means = pictures[dataset.train.index].mean(axis=(1, 2, 3))
    expected = (means - means.mean()) / means.std()
    np.testing.assert_allclose(dataset.train.inputs[:, 1], expected, atol=1e-4)
    assert dataset.subset.startswith("centre squares at 160×160, lossy WebP")


@pytest.mark.parametrize("name", [*TEXTS, "pets"])
def test_what_cannot_be_fetched_says_what_to_do(name, tmp_path):
    column = catalog.entry(name).kind
    words = (
        rf"{name}: askance reads no official file of it.*{name}.parquet with the columns {column}, "
        "label and split.*ASKANCE_DATA or data_dir.*http"
    )
    for get in (data.load, data.fetch):
        with pytest.raises(DataError, match=words):
            get(name)
    line = data.describe(name)
    assert (line.available, line.fetchable) == (None, False)


def test_a_folder_of_that_name_is_pointed_out(tmp_path, monkeypatch):
    (tmp_path / "pets").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"For the folder of that name say './pets'"):
        data.load("pets")


def test_a_copy_that_is_there_need_not_be_fetched(tmp_path):
    pq.write_table(text_table("train", "test"), tmp_path / "trec.parquet")
    assert data.fetch("trec", data_dir=tmp_path) == tmp_path / "trec.parquet"
    assert data.describe("trec", data_dir=tmp_path).available == "local file trec.parquet"


def replaced(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (text_table("train", "test").drop_columns(["text"]), "trec.parquet: no column 'text'"),
        (
            replaced(text_table("train", "test"), "text", [1] * 2 * COUNT),
            "column 'text' must hold texts, got int64",
        ),
        (text_table("train", "test", classes=7), "labels must be of 6 classes, .* 0 to 6"),
        (
            text_table("train", "val"),
            r"rows of train and of test are needed, found \['train', 'val'\]",
        ),
    ],
)
def test_a_copy_of_something_else_is_refused(table, words, tmp_path):
    pq.write_table(table, tmp_path / "trec.parquet")
    with pytest.raises(DataError, match=words):
        data.load("trec", data_dir=tmp_path)


def test_a_damaged_image_is_named(pets):
    folder, _ = pets
    table = pq.read_table(folder / "pets.parquet")
    files = table.column("image").to_pylist()
    for row in range(COUNT):
        files[row] = files[row][:200]
    pq.write_table(replaced(table, "image", files), folder / "pets.parquet")
    for encoder in (None, FunctionEncoder(sizes, "image", "1")):
        with pytest.raises(DataError, match="not a readable image"):
            data.load("pets", data_dir=folder, encoder=encoder)
