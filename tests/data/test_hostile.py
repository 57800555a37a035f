"""Archives that are cut short, altered, or meant to harm: a clear error, and nothing in the cache."""

from __future__ import annotations

import dataclasses
import gzip
import io
import stat
import struct
import tarfile
import zipfile

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.io

from askance import data
from askance.data import archives, cache, catalog
from askance.errors import DataError
from tests.data import builders

NAMES = list(builders.BUILDERS)


def refused(name, folder, message, tmp_path):
    with pytest.raises(DataError, match=message) as caught:
        data.load(name, data_dir=folder, download=False)
    files = [path.name for path in (folder / name).iterdir()]
    if message is None:
        assert any(file in str(caught.value) for file in files), "the message names no file"
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert kept == [], "something was left in the cache"


def rewritten(path, change):
    """The same tar with `change(name, bytes)` applied; None leaves a member out."""
    with tarfile.open(path) as archive:
        members = {m.name: archive.extractfile(m).read() for m in archive if m.isreg()}
    changed = {name: change(name, content) for name, content in members.items()}
    builders.tar(path, {name: content for name, content in changed.items() if content is not None})


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


# --- members that escape, repeat or explode -------------------------------------------------------

ESCAPING = ["../evil.bin", "a/../../evil.bin", "/etc/evil.bin", "..\\evil.bin", "C:\\evil.bin"]


@pytest.mark.parametrize("evil", ESCAPING)
def test_a_tar_member_that_leaves_the_archive(evil, official, tmp_path):
    folder, files, _ = official("cifar10")
    with tarfile.open(files / "cifar-10-binary.tar.gz") as archive:
        members = {m.name: archive.extractfile(m).read() for m in archive}
    builders.tar(files / "cifar-10-binary.tar.gz", {**members, evil: b"evil"})
    refused("cifar10", folder, "leaves the archive", tmp_path)
    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.parametrize("evil", ESCAPING)
def test_a_zip_member_that_leaves_the_archive(evil, official, tmp_path):
    folder, files, _ = official("german")
    with zipfile.ZipFile(files / "statlog+german+credit+data.zip", "a") as archive:
        archive.writestr(evil, b"evil")
    refused("german", folder, "leaves the archive", tmp_path)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_a_tar_member_that_is_a_link_or_a_device(kind, tmp_path):
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("data_batch_1.bin")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(DataError, match="is a link or a device"):
        list(archives.tar_members(path, lambda name: True))


def test_a_zip_member_that_is_a_link(tmp_path):
    path = tmp_path / "x.zip"
    info = zipfile.ZipInfo("a.ppm")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="is a link"):
        list(archives.zip_members(path, lambda name: True))


def test_a_tar_member_given_twice(tmp_path):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("a/b.bin", "./a/b.bin"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(DataError, match="is there twice"):
        list(archives.tar_members(path, lambda name: True))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_member_given_twice(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", b"1")
        archive.writestr("a.csv", b"2")
    with pytest.raises(DataError, match="is there twice"):
        list(archives.zip_members(path, lambda name: True))


def test_a_tar_that_unpacks_to_too_much(tmp_path):
    many = {f"{number}": bytes(900_000) for number in range(4)}
    for members in ({"a": bytes(1_100_000)}, many):
        path = builders.tar(tmp_path / "x.tar.gz", members)
        assert path.stat().st_size < 10_000
        with pytest.raises(DataError, match="unpacks to more than"):
            list(archives.tar_members(path, lambda name: False, limit=1_000_000))


def test_a_tar_with_a_broken_header_in_the_middle_is_not_taken_for_a_shorter_one(tmp_path):
    path = builders.tar(tmp_path / "x.tar.gz", {f"{n}": bytes(9_000) for n in range(30)})
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[9_728 * 3 : 9_728 * 3 + 200] = b"x" * 200
    path.write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(DataError, match="corrupt after 3 members"):
        list(archives.tar_members(path, lambda name: True))


def test_a_zip_that_unpacks_to_too_much(tmp_path):
    path = builders.zipped(tmp_path / "x.zip", {"a": bytes(600_000), "b": bytes(600_000)})
    with pytest.raises(DataError, match="more than 1,000,000 bytes"):
        list(archives.zip_members(path, lambda name: False, limit=1_000_000))


def test_a_zip_member_larger_than_its_header_says(tmp_path):
    """The directory says 10 bytes; the data unpack to a million."""
    path = builders.zipped(tmp_path / "x.zip", {"a": bytes(1_000_000)})
    size = struct.pack("<I", 1_000_000)
    path.write_bytes(path.read_bytes().replace(size, struct.pack("<I", 10)))
    with pytest.raises(DataError, match=r"x\.zip"):
        list(archives.zip_members(path, lambda name: True))


def test_a_gzip_that_unpacks_to_too_much(tmp_path):
    path = builders.gzipped(tmp_path / "x.gz", bytes(2_000_000))
    with pytest.raises(DataError, match="more than 1,000,000 bytes"):
        archives.gunzipped(path, limit=1_000_000)


def test_an_image_that_is_huge_in_its_header(official, tmp_path):
    folder, files, _ = official("cinic10")
    huge = builders.encoded(np.zeros((4_000, 4_000, 3), np.uint8), "PNG")
    rewritten(
        files / "CINIC-10.tar.gz",
        lambda name, content: huge if name.endswith("n0003.png") else content,
    )
    refused("cinic10", folder, r"4000×4000 pixels; at most 1,024", tmp_path)


# --- wrong shapes and labels ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[:-1], "is not whole records of 3,073"),
        (lambda content: b"\x0a" + content[1:], "must be of 10 classes"),
        (lambda content: None, "data_batch_3.bin missing"),
    ],
)
def test_cifar10(change, message, official, tmp_path):
    folder, files, _ = official("cifar10")
    rewritten(
        files / "cifar-10-binary.tar.gz",
        lambda name, content: change(content) if "batch_3" in name else content,
    )
    refused("cifar10", folder, message, tmp_path)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("train_X", lambda content: content[:-1], "an image is 27,648 bytes"),
        ("train_y", lambda content: content[:-1], "bytes of images for 29 labels"),
        ("train_y", lambda content: b"\x00" + content[1:], "must be of 10 classes.*-1 to 9"),
        ("test_y", lambda content: b"\x0b" + content[1:], "must be of 10 classes.*0 to 10"),
        ("test_X", lambda content: None, "test_X.bin missing"),
    ],
)
def test_stl10(file, change, message, official, tmp_path):
    folder, files, _ = official("stl10")
    rewritten(
        files / "stl10_binary.tar.gz",
        lambda name, content: change(content) if file in name else content,
    )
    refused("stl10", folder, message, tmp_path)


IMAGES, LABELS = np.zeros((32, 32, 3, 5), np.uint8), np.ones((5, 1), np.uint8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"X": IMAGES}, "expected variables X and y, found"),
        ({"X": IMAGES[:31], "y": LABELS}, r"X must be \(32, 32, 3, N\)"),
        ({"X": IMAGES[..., 0], "y": LABELS}, r"X must be \(32, 32, 3, N\)"),
        ({"X": IMAGES, "y": LABELS[:4]}, "labels for 5 images"),
        ({"X": IMAGES, "y": LABELS * 0}, "labels must be 1 to 10, found 0"),
        ({"X": IMAGES, "y": LABELS * 11}, "labels must be 1 to 10"),
        ({"X": IMAGES.astype(float), "y": LABELS}, "X must be bytes"),
    ],
)
def test_svhn(content, message, official, tmp_path):
    folder, files, _ = official("svhn")
    scipy.io.savemat(files / "train_32x32.mat", content)
    refused("svhn", folder, message, tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "train-images-idx3",
            builders.idx_bytes(np.zeros((60, 27, 28), np.uint8)),
            "must be 28×28",
        ),
        (
            "train-images-idx3",
            builders.idx_bytes(np.zeros((60, 28, 28), np.uint8))[:-1],
            "bytes of data",
        ),
        ("train-images-idx3", b"\x00\x00\x0d\x03" + bytes(12), "not an idx file of bytes in 3"),
        ("t10k-labels-idx1", builders.idx_bytes(np.zeros(59, np.uint8)), "60 items with labels"),
        (
            "t10k-labels-idx1",
            builders.idx_bytes(np.full(60, 10, np.uint8)),
            "must be of 10 classes",
        ),
        ("t10k-labels-idx1", b"\x00\x00\x08\x01\x00", "not an idx file"),
    ],
)
def test_idx(file, content, message, official, tmp_path):
    folder, files, _ = official("mnist")
    (files / f"{file}-ubyte.gz").write_bytes(gzip.compress(content))
    refused("mnist", folder, message, tmp_path)


def changed_zip(path, wanted, change):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    hit = next(name for name in members if wanted in name)
    members[hit] = change(members[hit])
    builders.zipped(
        path, {name: content for name, content in members.items() if content is not None}
    )


@pytest.mark.parametrize(
    ("name", "file", "wanted", "change", "message"),
    [
        (
            "gtsrb",
            "GTSRB_Final_Training_Images.zip",
            ".ppm",
            lambda c: None,
            "classes without an image",
        ),
        ("gtsrb", "GTSRB_Final_Training_Images.zip", ".csv", lambda c: c[:60], "without a class"),
        ("gtsrb", "GTSRB_Final_Test_Images.zip", ".ppm", lambda c: c[:99], "not a readable image"),
        (
            "gtsrb",
            "GTSRB_Final_Test_GT.zip",
            ".csv",
            lambda c: c.replace(b";42\n", b";43\n"),
            "must be of 43 classes",
        ),
        (
            "gtsrb",
            "GTSRB_Final_Test_GT.zip",
            ".csv",
            lambda c: c.replace(b";42\n", b";stop\n"),
            "has no file name and class number",
        ),
        ("isolet", "isolet.zip", "isolet5", lambda c: c.replace(b"26.", b"27."), "must be of 26"),
        ("isolet", "isolet.zip", "isolet5", lambda c: c.replace(b"26.", b"2.5"), "must be whole"),
        (
            "isolet",
            "isolet.zip",
            "isolet5",
            lambda c: c[2:].partition(b",")[2],
            "not a table of numbers",
        ),
        ("isolet", "isolet.zip", "isolet5", lambda c: None, "isolet5.data missing"),
        ("german", "statlog+german+credit+data.zip", "numeric", lambda c: b"1 2 3", "lines of 25"),
        ("german", "statlog+german+credit+data.zip", "numeric", lambda c: b"A11 6", "not a table"),
        ("gisette", "gisette.zip", "train.labels", lambda c: c[3:], "20 items with labels"),
        (
            "gisette",
            "gisette.zip",
            "train.labels",
            lambda c: c.replace(b"-1", b"0"),
            "must be −1 or 1",
        ),
        (
            "gisette",
            "gisette.zip",
            "valid.data",
            lambda c: c.replace(b" ", b" nan ", 1),
            "not a table",
        ),
    ],
)
def test_zips_of_tables_and_images(name, file, wanted, change, message, official, tmp_path):
    folder, files, _ = official(name)
    changed_zip(files / file, wanted, change)
    refused(name, folder, message, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"@data", b"", "expected an ARFF file of 11 attributes"),
        (b"@attribute a3 numeric\n", b"", "expected an ARFF file of 11 attributes, found 10"),
        (b"@data\n", b"@data\n1,2,3\n", "not a table of numbers"),
        (b"@data\n", b"@data\n1,1,1,1,1,1,1,1,1,1,10\n", "must be of 10 classes"),
        (b"@data\n", b"@data\n1,1,1,1,1,1,1,1,1,nan,1\n", "NaN or infinite"),
    ],
)
def test_pokerhand(old, new, message, official, tmp_path):
    folder, files, _ = official("pokerhand")
    path = files / "pokerhand-normalized.arff"
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    refused("pokerhand", folder, message, tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "member", "message"),
    [
        ("cinic10", "CINIC-10.tar.gz", "train/zebra/a.png", "is not <split>/<class>/<image>.png"),
        ("cinic10", "CINIC-10.tar.gz", "extra/cat/a.png", "is not <split>/<class>/<image>.png"),
        ("cinic10", "CINIC-10.tar.gz", "train/cat/a.png", "not a readable image"),
        ("20newsgroups", "20news-bydate.tar.gz", "20news-bydate-train/x.y/1", "is not a message"),
        ("20newsgroups", "20news-bydate.tar.gz", "other/sci.med/1", "is not a message"),
        ("20newsgroups", "20news-bydate.tar.gz", "1", "is not a message"),
    ],
)
def test_tars_of_files_by_class(name, file, member, message, official, tmp_path):
    folder, files, _ = official(name)
    path = files / file
    with tarfile.open(path) as archive:
        members = {m.name: archive.extractfile(m).read() for m in archive}
    builders.tar(path, {**members, member: b"evil"})
    refused(name, folder, message, tmp_path)


# --- the cache itself -----------------------------------------------------------------------------


def test_a_crash_while_writing_leaves_nothing(official, tmp_path, monkeypatch):
    folder, _, _ = official("german")

    def half(table, path, **options):
        path.write_bytes(b"PAR1 half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.pq, "write_table", half)
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
