"""A dataset that must be refused, and archives with members changed."""

from __future__ import annotations

import tarfile
import zipfile

import pytest

from askance import data
from askance.errors import DataError
from tests.data import builders


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


def changed_zip(path, wanted, change):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    hit = next(name for name in members if wanted in name)
    members[hit] = change(members[hit])
    builders.zipped(
        path, {name: content for name, content in members.items() if content is not None}
    )
