"""A file is written whole, or what was there stays."""

import random
import time

import pytest

from askance._io.atomic import atomic_write
from askance.errors import DataError, StoreError
from tests.io.holding import python


def test_bytes_or_what_writes_them(tmp_path):
    path = tmp_path / "a.bin"
    atomic_write(path, b"one")
    assert path.read_bytes() == b"one"
    atomic_write(str(path), lambda partial: partial.write_text("two"))
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_the_old_file_and_nothing_beside(tmp_path):
    path = tmp_path / "a.bin"
    atomic_write(path, b"old")

    def half(partial):
        partial.write_bytes(b"ha")
        raise KeyError("lf")

    with pytest.raises(KeyError):
        atomic_write(path, half)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_said(tmp_path):
    with pytest.raises(
        StoreError, match=r"cannot write .*: No such file or directory; is the disk"
    ):
        atomic_write(tmp_path / "none" / "a", b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=r"cannot write .*folder: Is a directory"):
        atomic_write(tmp_path / "folder", b"", error=DataError)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    atomic_write(tmp_path / "a", b"")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


OVER_AND_OVER = """
import sys
from askance._io.atomic import atomic_write
for letter in iter(lambda: None, 1):
    for letter in b"ab":
        atomic_write(sys.argv[1], bytes([letter]) * 500_000)
        print("written", flush=True)
"""
HALF = """
import sys, time
from askance._io.atomic import atomic_write
def half(partial):
    partial.write_bytes(b"half")
    print("half", flush=True)
    time.sleep(300)
atomic_write(sys.argv[1], half)
"""


def test_a_kill_in_the_middle_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    process = python(HALF, path)
    assert process.stdout.readline() == "half\n"
    process.kill()
    process.communicate()
    assert path.read_bytes() == b"old"
    left = [each.name for each in tmp_path.iterdir() if each != path]
    assert len(left) == 1
    assert left[0].startswith(".a.bin.")
    assert left[0].endswith(".part")
    atomic_write(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("seed", range(5))
def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path, seed):
    path = tmp_path / "a.bin"
    process = python(OVER_AND_OVER, path)
    assert process.stdout.readline() == "written\n"
    time.sleep(random.Random(seed).uniform(0, 0.05))
    process.kill()
    process.communicate()
    assert path.read_bytes() in (b"a" * 500_000, b"b" * 500_000)
