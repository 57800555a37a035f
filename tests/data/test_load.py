"""Names, listings, the folders searched, and what is said when data cannot be had."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import askance
from askance import data
from askance.data import catalog, parquet, remote
from askance.data.load import data_folders
from askance.data.record import Dataset, RawItems, Split
from askance.errors import DataError


def test_the_exported_names():
    assert " ".join(sorted(data.__all__)) == (
        "Dataset Description Imbalance Split describe fetch from_image_folder from_table load names "
        "overlaps"
    )


def test_the_names():
    assert " ".join(data.names()) == (
        "20newsgroups isolet pokerhand cifar10 svhn stl10 gtsrb cinic10 mnist german gisette digits "
        "fashion-mnist banking77 clinc150 trec sst2 pets"
    )


def test_an_unknown_name_lists_the_closest():
    with pytest.raises(
        askance.AskanceError, match="unknown dataset 'cifar': did you mean 'cifar10'"
    ):
        data.load("cifar")


@pytest.mark.parametrize("name", data.names())
def test_every_dataset_is_described(name):
    line = data.describe(name)
    assert line.name == name
    assert line.train > 0
    assert line.classes == len(catalog.entry(name).classes) == len(set(catalog.entry(name).classes))
    assert line.licence
    assert line.citation
    assert line.homepage.startswith("http")
    checked = [file.checksum is not None for file in catalog.entry(name).files]
    assert all(checked) or not any(checked)
    assert (line.checksums.startswith("none")) == (name != "digits" and not any(checked))
    assert line.available == ("scikit-learn" if name == "digits" else None)


@pytest.mark.parametrize("name", data.names())
def test_checksums_are_whole(name):
    for file in catalog.entry(name).files:
        if file.checksum is not None:
            kind, _, digits = file.checksum.partition(":")
            assert len(digits) == 2 * hashlib.new(kind).digest_size
            int(digits, 16)


def test_digits():
    digits = data.load("digits")
    assert (len(digits.train), len(digits.val), len(digits.test)) == (1_295, 143, 359)
    assert digits.train.inputs.shape == (1_295, 64)
    assert (float(digits.train.inputs.min()), float(digits.train.inputs.max())) == (0, 1)
    assert digits.raw[7].shape == (8, 8)
    np.testing.assert_array_equal(digits.raw[7].ravel() / 16, digits.train.inputs[7])
    index = np.concatenate([digits.train.index, digits.val.index, digits.test.index])
    np.testing.assert_array_equal(np.sort(index), np.arange(1_797))
    for split in (digits.val, digits.test):
        counts = np.bincount(split.labels)
        assert counts.max() - counts.min() <= 4
    assert data.fetch("digits") is None
    assert "1295 train, 143 val, 359 test, 10 classes; scikit-learn" in repr(digits)


def test_the_fingerprint_tells_other_data_apart():
    digits = data.load("digits")
    assert digits.fingerprint == data.load("digits").fingerprint
    assert len(bytes.fromhex(digits.fingerprint)) == 16
    train = digits.train
    inputs, labels, index = train.inputs.clone(), train.labels.clone(), train.index.copy()
    inputs[3, 5] += 0.5
    labels[3] = (labels[3] + 1) % 10
    index[[3, 4]] = index[[4, 3]]
    others = [
        Split(inputs, train.labels, train.index),
        Split(train.inputs, labels, train.index),
        Split(train.inputs, train.labels, index),
    ]
    prints = {digits.fingerprint}
    for other in others:
        prints.add(dataclasses.replace(digits, train=other).fingerprint)
        prints.add(dataclasses.replace(digits, val=other).fingerprint)
    assert len(prints) == 7


# --- names and paths ------------------------------------------------------------------------------


def test_load_takes_the_path_of_a_table(tmp_path, monkeypatch):
    rows = [f"{n},{n % 7},{'ab'[n % 2]}" for n in range(40)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["width,height,kind", *rows]))
    expected = data.from_table(path, label="kind").fingerprint
    assert data.load(path, label="kind").fingerprint == expected
    assert data.load(str(path), label="kind").fingerprint == expected
    monkeypatch.chdir(tmp_path)
    assert data.load("mine.csv", label="kind").fingerprint == expected
    with pytest.raises(DataError, match="no column 'label'"):
        data.load("mine.csv")


def test_load_takes_the_path_of_a_folder(tmp_path, monkeypatch):
    for label, name in enumerate(("cat", "dog")):
        (tmp_path / "beasts" / name).mkdir(parents=True)
        for row in range(6):
            Image.new("RGB", (9, 9), (90 * label, row, 7)).save(
                tmp_path / "beasts" / name / f"{row}.png"
            )
    monkeypatch.chdir(tmp_path)
    expected = data.from_image_folder("beasts").fingerprint
    assert (
        data.load("./beasts").fingerprint == data.load(tmp_path / "beasts").fingerprint == expected
    )
    with pytest.raises(DataError, match=r"no dataset is called 'beasts'.*say './beasts'"):
        data.load("beasts")
    with pytest.raises(DataError, match="a folder of images has no columns"):
        data.load("./beasts", label="kind")


def test_paths_and_options_that_cannot_be(tmp_path):
    with pytest.raises(DataError, match=r"none.csv: no such folder or file; known names: 20news"):
        data.load(tmp_path / "none.csv")
    with pytest.raises(DataError, match="digits has its own labels"):
        data.load("digits", label="kind")


def test_the_cache_folder(tmp_path, monkeypatch):
    assert parquet.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("ASKANCE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert parquet.cache_folder() == tmp_path / "xdg" / "askance"


def test_a_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    assert data_folders(tmp_path) == [tmp_path]
    with pytest.raises(DataError, match=r"no such folder: .*none; data_dir and ASKANCE_DATA"):
        data.load("cifar10", data_dir=tmp_path / "none")
    monkeypatch.setenv("ASKANCE_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"no such folder: .*gone"):
        data.load("cifar10")


# --- downloading, with no network -----------------------------------------------------------------


def test_without_pooch_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match=r"pip install pooch.*https://www.cs.toronto.edu"):
        data.load("cifar10")


def test_with_downloading_off_the_error_says_what_to_do():
    with pytest.raises(DataError, match=r"downloading is off.*<folder>/svhn/train_32x32.mat"):
        data.load("svhn", download=False)


def test_a_download_that_fails_says_what_to_do(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")

    def refuse(*args, **options):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    with pytest.raises(DataError, match=r"downloading failed \(no route to host\).*data_dir"):
        data.load("cifar10", progress=False)
    assert not (tmp_path / "cache").exists()


def test_a_download_is_parsed_and_kept(official, monkeypatch, tmp_path):
    """The network is a copy of a file here; pooch checks it and puts it in its place."""
    pooch = pytest.importorskip("pooch")
    _, files, rows = official("german")
    content = (files / "statlog+german+credit+data.zip").read_bytes()
    asked = []

    def served(downloader, url, output_file, pooch, check_only=False):
        asked.append(url)
        with open(output_file, "wb") as stream:  # noqa: PTH123
            stream.write(content)

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", served)
    dataset = data.load("german")
    assert len(dataset.train) + len(dataset.val) + len(dataset.test) == len(rows[1])
    data.load("german")
    assert asked == [catalog.entry("german").files[0].url]
    assert data.describe("german").available == "cache"
    assert data.fetch("german") == tmp_path / "cache" / "german.parquet"


def test_a_file_without_a_published_checksum_is_trusted_once(official, tmp_path, caplog):
    folder, files, _ = official("german")
    path = data.fetch("german", data_dir=folder, download=False)
    assert "no checksum is published for it; this copy is trusted" in caplog.text
    caplog.clear()
    path.unlink()
    data.fetch("german", data_dir=folder, download=False)
    assert caplog.text == ""
    path.unlink()
    archive = files / "statlog+german+credit+data.zip"
    archive.write_bytes(archive.read_bytes() + b"more")
    with pytest.raises(DataError, match=r"that of the first copy, kept in .*\.zip\.sha256, is"):
        data.fetch("german", data_dir=folder, download=False)


def test_a_download_with_another_checksum_is_refused(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")

    def served(downloader, url, output_file, pooch, check_only=False):
        with open(output_file, "wb") as stream:  # noqa: PTH123
            stream.write(b"something else")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", served)
    with pytest.raises(DataError, match="downloading failed"):
        data.load("cifar10")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_the_progress_bar_is_pooch_s_kind(capsys):
    bar = remote._Bar("x.zip")
    bar.total = 10
    bar.update(4)
    bar.reset()
    bar.update(10)
    bar.close()
    out, err = capsys.readouterr()
    assert out == ""
    assert "x.zip" in err


# --- the record -----------------------------------------------------------------------------------


def split(count=3, inputs=None, labels=None):
    inputs = torch.zeros(count, 2) if inputs is None else inputs
    labels = torch.zeros(count, dtype=torch.int64) if labels is None else labels
    return Split(inputs, labels, np.arange(len(labels)))


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (split(0), "mine train is empty"),
        (split(inputs=torch.zeros(2, 2)), "2 inputs and 3 positions for 3 labels"),
        (split(inputs=torch.zeros(3, 2).double()), "expected float32 inputs and int64 labels"),
        (split(labels=torch.tensor([0, 1, 2])), "labels must be 0 to 1, found 0 to 2"),
        (split(labels=torch.tensor([0, 1, -1])), "labels must be 0 to 1, found -1 to 1"),
        (split(inputs=torch.full((3, 2), torch.nan)), "an input is NaN or infinite"),
        (split(inputs=torch.zeros(3, 4)), "inputs differ in shape"),
        (split(4), "3 raw items for 4 points of the pool"),
    ],
)
def test_a_record_that_cannot_be_is_refused(train, message):
    raw = RawItems(np.zeros((9, 2)), np.arange(3))
    with pytest.raises(DataError, match=message):
        Dataset("mine", "tabular", train, split(), split(), ("a", "b"), "here", "mine", "", raw)


# --- the page -------------------------------------------------------------------------------------


def test_the_page_says_of_every_dataset_what_its_entry_says():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    rows = [[cell.strip() for cell in line.split(" | ")] for line in page.splitlines()]
    table = {row[0].strip("|` "): row for row in rows if row[0].startswith("| `")}
    assert list(table) == data.names()
    for name, (_, kind, size, split, source, checksums, licence) in table.items():
        entry = catalog.entry(name)
        assert kind.startswith(entry.kind)
        assert size == " + ".join(f"{count:,}" for count in entry.official if count)
        assert entry.pool is None or f"pool of {entry.pool:,}" in split
        assert entry.homepage in source
        assert (checksums, licence.removesuffix(" |")) == (entry.checksums, entry.licence)


@pytest.mark.parametrize(
    ("name", "encoder", "expected"),
    [
        ("pets", "efficientnet-lite0", True),
        ("stl10", "efficientnet-lite0", True),
        ("cifar10", "efficientnet-lite0", False),
        ("pets", "minilm", False),
        ("pets", None, False),
        ("./pets", "efficientnet-lite0", False),
    ],
)
def test_which_images_an_encoder_was_trained_on_is_known(name, encoder, expected):
    assert data.overlaps(name, encoder) is expected
