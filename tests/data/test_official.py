"""Every parser on a small archive in the official format, through the cache, to the record."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess

import numpy as np
import pytest
import torch

from askance import data
from askance.data import catalog
from askance.data.lzw import uncompressed
from askance.errors import DataError
from tests.data import builders

NAMES = list(builders.BUILDERS)


def parsed(name, folder):
    """What the parser of a dataset makes of its files in a folder."""
    entry = catalog.entry(name)
    return entry.parse(entry.classes, *(folder / file.name for file in entry.files))


def test_every_downloadable_dataset_is_built_here():
    assert set(NAMES) == {name for name in data.names() if catalog.entry(name).files}


@pytest.mark.parametrize("name", NAMES)
def test_the_parser_finds_every_item_and_label(name, official):
    _, folder, (train, train_labels, test, test_labels) = official(name)
    parts = parsed(name, folder)
    np.testing.assert_array_equal(parts.train.labels, train_labels)
    np.testing.assert_array_equal(parts.train.items, train)
    if test is None:
        assert parts.test is None
    else:
        np.testing.assert_array_equal(parts.test.labels, test_labels)
        np.testing.assert_array_equal(parts.test.items, test)


@pytest.mark.parametrize("name", NAMES)
def test_the_record(name, official, tmp_path):
    folder, _, (train, train_labels, test, _) = official(name)
    first = data.load(name, data_dir=folder, download=False)
    assert (tmp_path / "cache" / f"{name}.parquet").is_file()
    shutil.rmtree(folder)
    again = data.load(name, download=False)  # from the cache alone

    for dataset in (first, again):
        assert dataset.name == name
        assert dataset.source.startswith("official")
        assert dataset.subset is None
        total = len(dataset.train) + len(dataset.val) + (len(dataset.test) if test is None else 0)
        assert total == len(train_labels)
        assert not set(dataset.train.index) & set(dataset.val.index)
        if test is None:
            assert not set(dataset.test.index) & {*dataset.train.index, *dataset.val.index}
        for split in (dataset.train, dataset.val):
            np.testing.assert_array_equal(split.labels.numpy(), train_labels[split.index])
    for split in ("train", "val", "test"):
        assert torch.equal(getattr(first, split).inputs, getattr(again, split).inputs)
        assert torch.equal(getattr(first, split).labels, getattr(again, split).labels)
    for i in (0, len(again.raw) - 1):
        np.testing.assert_array_equal(again.raw[i], train[again.train.index[i]])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("cifar10", (3, 32, 32)),
        ("stl10", (3, 32, 32)),
        ("fashion-mnist", (1, 32, 32)),
        ("mnist", (784,)),
        ("isolet", (617,)),
        ("german", (24,)),
    ],
)
def test_inputs(name, shape, official):
    dataset = data.load(name, data_dir=official(name)[0], download=False)
    assert dataset.train.inputs.shape[1:] == shape
    if dataset.kind == "image":
        assert -1 <= dataset.train.inputs.min() < -0.9
        assert 0.9 < dataset.train.inputs.max() <= 1
    else:
        mean, std = dataset.train.inputs.mean(0), dataset.train.inputs.std(0, correction=0)
        torch.testing.assert_close(mean, torch.zeros_like(mean), atol=1e-5, rtol=0)
        torch.testing.assert_close(std, torch.ones_like(std), atol=1e-4, rtol=0)


def test_pixels_are_normalised_with_a_half(official):
    dataset = data.load("cifar10", data_dir=official("cifar10")[0], download=False)
    expected = (torch.from_numpy(dataset.raw[4].copy()).permute(2, 0, 1) / 255 - 0.5) / 0.5
    torch.testing.assert_close(dataset.train.inputs[4], expected, atol=1e-6, rtol=0)


def test_words_are_those_of_the_pool_alone(official):
    dataset = data.load("20newsgroups", data_dir=official("20newsgroups")[0], download=False)
    words = {word for i in range(len(dataset.raw)) for word in dataset.raw[i].split()}
    assert dataset.train.inputs.shape[1] == len(words)
    assert not any("hidden" in word for word in words), "header, quote or signature left in"


def test_the_pool_is_sampled_down_to_the_protocol_s_size(official, monkeypatch):
    folder, _, (_, labels, _, _) = official("svhn")
    small = dataclasses.replace(catalog.entry("svhn"), pool=20)
    monkeypatch.setitem(catalog.ENTRIES, "svhn", small)
    dataset = data.load("svhn", data_dir=folder, download=False)
    assert (dataset.pool_size, len(dataset.val)) == (20, len(labels) // 10)
    assert dataset.subset is None, "the protocol's pool is no smaller dataset"


# --- the compress program's files -----------------------------------------------------------------


def compressed(message: bytes, most_bits: int = 16) -> bytes:
    """A writer of .Z files, by the book: codes of growing width in groups of eight."""
    out, group, width, table = bytearray((0x1F, 0x9D, 0x80 | most_bits)), [], 9, {}

    def flush(whole):
        bits = sum(code << (width * i) for i, code in enumerate(group))
        size = width if whole else -(-width * len(group) // 8)
        out.extend(bits.to_bytes(size, "little"))
        group.clear()

    def emit(code):
        group.append(code)
        if len(group) == 8:
            flush(True)

    table = {bytes((byte,)): byte for byte in range(256)}
    free, word = 257, b""
    for byte in message:
        longer = word + bytes((byte,))
        if longer in table:
            word = longer
            continue
        emit(table[word])
        if free > (1 << width) - 1 and width < most_bits:
            if group:
                flush(True)
            width += 1
        if free < 1 << most_bits:
            table[longer] = free
            free += 1
        word = bytes((byte,))
    emit(table[word])
    flush(False)
    return bytes(out)


MESSAGES = [
    b"a",
    b"ab" * 10,
    b"a" * 5_000,
    bytes(builders.pictures(1, 6_000)[0]),
    b", ".join(b"%.4f" % value for value in builders.RNG.uniform(-1, 1, 12_000)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=len)
@pytest.mark.parametrize("most_bits", [16, 12])
def test_compressed_files_unpack(message, most_bits):
    assert uncompressed(compressed(message, most_bits), "x.Z", limit=10**6) == message


@pytest.mark.skipif(shutil.which("gzip") is None, reason="no gzip program to compare with")
@pytest.mark.parametrize("message", MESSAGES, ids=len)
def test_the_writer_here_writes_what_gzip_reads(message, tmp_path):
    path = tmp_path / "x.Z"
    path.write_bytes(compressed(message))
    read = subprocess.run(["gzip", "-dc", str(path)], capture_output=True, check=True)
    assert read.stdout == message


def test_isolet_in_compressed_files(tmp_path):
    features, targets, _, _ = builders.isolet(tmp_path, pack=compressed, suffix=".Z")
    parts = parsed("isolet", tmp_path)
    np.testing.assert_array_equal(parts.train.items, features)
    np.testing.assert_array_equal(parts.train.labels, targets)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not packed", "not a file of the compress program"),
        (b"\x1f\x9d\x9f" + bytes(9), "codes of 31 bits"),
        (b"\x1f\x9d\x90" + b"\xff" * 9, "corrupt, code 511"),
        (compressed(b"a" * 3_000_000), "more than 1,000,000 bytes"),
    ],
)
def test_compressed_files_that_are_refused(content, message):
    with pytest.raises(DataError, match=message):
        uncompressed(content, "x.Z", limit=10**6)
