"""Archives meant to harm: members that escape, repeat or explode."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from askance.data import archives
from askance.errors import DataError
from tests.data import builders
from tests.data.hostile import refused, rewritten

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
