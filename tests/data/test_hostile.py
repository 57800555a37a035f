"""Files that are cut short, altered or of another kind: a clear error, and nothing in the cache."""

from __future__ import annotations

import dataclasses

import pyarrow.parquet as pq
import pytest

from askance import data
from askance.data import catalog, parquet
from askance.errors import DataError
from tests.data import builders
from tests.data.hostile import refused

NAMES = list(builders.BUILDERS)


# --- every format ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.0, 0.05, 0.6])
def test_every_format_cut_short(name, share, official, tmp_path):
    folder, files, _ = official(name)
    for path in files.iterdir():
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
    refused(name, folder, None, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_full_of_noise(name, official, tmp_path):
    folder, files, _ = official(name)
    for path in files.iterdir():
        path.write_bytes(bytes(builders.pictures(1, 3_000)[0]))
    refused(name, folder, None, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_with_a_file_missing(name, official, tmp_path):
    folder, files, _ = official(name)
    min(files.iterdir()).unlink()
    refused(name, folder, "is not at hand and downloading is off", tmp_path)


@pytest.mark.parametrize("name", ["cifar10", "mnist", "svhn", "stl10", "gtsrb"])
def test_every_format_with_bytes_altered_inside(name, official, tmp_path):
    """Compressed data with a byte changed fails its own check, wherever the byte is."""
    folder, files, _ = official(name)
    path = max(files.iterdir())
    content = bytearray(path.read_bytes())
    for position in range(len(content) // 3, len(content), max(len(content) // 7, 1)):
        content[position] ^= 0x55
    path.write_bytes(content)
    refused(name, folder, None, tmp_path)


def test_a_file_that_is_not_the_published_one(official, tmp_path, monkeypatch):
    folder, _, _ = official("cifar10")
    entry = catalog.entry("cifar10")
    published = dataclasses.replace(entry.files[0], checksum="md5:" + "0" * 32)
    monkeypatch.setitem(catalog.ENTRIES, "cifar10", dataclasses.replace(entry, files=(published,)))
    refused("cifar10", folder, "the published one is 000000", tmp_path)


def test_an_official_archive_with_fewer_items_than_it_should(official, tmp_path, monkeypatch):
    folder, _, _ = official("cifar10")
    entry = dataclasses.replace(catalog.entry("cifar10"), official=(50_000, 10_000))
    monkeypatch.setitem(catalog.ENTRIES, "cifar10", entry)
    refused("cifar10", folder, "hold only 100 of 50,000", tmp_path)


# --- the cache itself -----------------------------------------------------------------------------


def test_a_crash_while_writing_leaves_nothing(official, tmp_path, monkeypatch):
    folder, _, _ = official("german")

    def half(table, path, **options):
        path.write_bytes(b"PAR1 half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet.pq, "write_table", half)
    refused("german", folder, "is the disk full", tmp_path)
    monkeypatch.undo()


def test_a_cache_that_cannot_be_written(official, tmp_path):
    folder, _, _ = official("german")
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(DataError, match="cannot write"):
        data.load("german", data_dir=folder, download=False)


def test_a_cache_cut_short_is_named(official, tmp_path):
    folder, _, _ = official("german")
    path = data.fetch("german", data_dir=folder, download=False)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"german.parquet: cut short, corrupt or not Parquet"):
        data.load("german", download=False)


def test_a_cache_of_another_dataset_is_refused(official, tmp_path):
    folder, _, _ = official("german")
    path = data.fetch("german", data_dir=folder, download=False)
    path.rename(path.with_name("gisette.parquet"))
    with pytest.raises(DataError, match="holds 'german', not 'gisette'"):
        data.load("gisette", download=False)


@pytest.mark.parametrize(
    "form",
    [
        b"{",
        b"[]",
        b'{"format": 2, "name": "german"}',
        b'{"format": 1, "name": "german", "dtype": "O"}',
    ],
)
def test_a_cache_that_says_strange_things_of_itself(form, official, tmp_path):
    folder, _, _ = official("german")
    path = data.fetch("german", data_dir=folder, download=False)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({b"askance": form}), path)
    with pytest.raises(DataError, match=r"german.parquet: kept in another format"):
        data.load("german", download=False)
