"""A damaged tar shard is refused whole: never read as a shorter pool, never hanging."""

import gzip
import io
import random
import tarfile

import numpy as np
import pytest

from askance.errors import ShardError
from askance.pools import Naming, open_source
from tests.pools import worlds

SAMPLES = [(f"k{n}", {"txt": b"text %d" % n, "cls": b"%d" % (n % 2)}) for n in range(6)]
BLOCK = tarfile.BLOCKSIZE


@pytest.fixture
def sound(tmp_path):
    worlds.tar(tmp_path / "sound.tar", SAMPLES)
    return (tmp_path / "sound.tar").read_bytes()


def keys(path, content):
    """The keys that are read; an error where the listing found a fault, or reading finds one."""
    path.write_bytes(content)
    source = open_source(str(path), Naming(text="txt"))
    return [
        str(key)
        for shard in source.shards
        for rows in source.read(shard, 4, frozenset())
        for key in rows.ids.take(np.arange(len(rows)))
    ]


def headers(content):
    """Where each member's header is."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return [member.offset for member in archive]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["tar", "tar.gz"])
def test_a_cut_or_broken_header_anywhere(tmp_path, sound, pack):
    path = tmp_path / ("pool.tar" if pack is bytes else "pool.tar.gz")
    assert keys(path, pack(sound)) == [key for key, _ in SAMPLES]
    for at in headers(sound):
        cut = sound[:at]
        garbled = sound[:at] + b"\xff" * 64 + sound[at + 64 :]
        ended = sound[:at] + b"\0" * BLOCK + sound[at + BLOCK :]
        for content in (cut, garbled, ended, sound[: at + 100]):
            with pytest.raises(ShardError, match="cut short, corrupt or not a tar file"):
                keys(path, pack(content))


def test_a_gzip_whose_sum_is_wrong(tmp_path, sound):
    packed = bytearray(gzip.compress(sound))
    packed[-6] ^= 1
    with pytest.raises(ShardError, match="CRC check failed"):
        keys(tmp_path / "pool.tar.gz", bytes(packed))
    with pytest.raises(ShardError, match="cut short"):
        keys(tmp_path / "pool.tar.gz", gzip.compress(sound)[:-9])


def member(name="x.txt", size=0, kind=tarfile.REGTYPE, link="", data=b""):
    """A member as it stands in a tar, whatever its header says."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info.tobuf(tarfile.GNU_FORMAT) + data.ljust(-(-len(data) // BLOCK) * BLOCK, b"\0")


END = b"\0" * 2 * BLOCK


@pytest.mark.parametrize(
    ("members", "match"),
    [
        ([member(kind=tarfile.SYMTYPE, link="/etc/passwd")], "link or a device"),
        ([member(kind=tarfile.LNKTYPE, link="k0.txt")], "link or a device"),
        ([member(kind=tarfile.CHRTYPE)], "link or a device"),
        ([member("a.txt"), member("a.TXT")], "there twice"),
        ([member("a.txt"), member("b.txt", size=-1024)], "has -1,024 bytes"),
        ([member("a.txt"), member(size=-BLOCK, kind=tarfile.GNUTYPE_LONGNAME)], "header of"),
        ([member(size=1 << 40, kind=tarfile.XHDTYPE)], "header of"),
        ([member("a.txt", size=1 << 40)], "cut short"),
        ([member(size=4, kind=tarfile.GNUTYPE_LONGNAME, data=b"abc\0")] * 3_000, "cut short"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)  # fmt: skip
def test_members_that_are_no_rows(tmp_path, sound, members, match):
    with pytest.raises(ShardError, match=match):
        keys(tmp_path / "pool.tar", b"".join(members) + END)


@pytest.mark.parametrize(
    "tries", [150, pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_bytes_changed_at_random(tmp_path, sound, tries):
    """The whole pool is read, or the shard is refused; a changed name is another name, no row less."""
    rng = random.Random(0)
    used = sound[: headers(sound)[-1] + 4 * BLOCK]
    for number in range(tries):
        content = bytearray(used)
        for _ in range(rng.choice([1, 1, 2, 8])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        if rng.random() < 0.3:
            del content[rng.randrange(len(content)) :]
        packed = bytes(content)
        if number % 3 == 0:
            packed = bytearray(gzip.compress(packed))
            packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        try:
            there = keys(tmp_path / "pool.tar", bytes(packed))
        except ShardError:
            continue
        assert len(there) >= len(SAMPLES)
