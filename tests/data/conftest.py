"""Official files built in a temporary folder, standing in the catalogue for the real ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from askance.data import catalog
from askance.data.official import pokerhand
from tests.data.builders import BUILDERS


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch, request):
    """No test sees the user's cache; only those of real data see ASKANCE_DATA."""
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    if not request.module.__name__.endswith("test_real"):
        monkeypatch.delenv("ASKANCE_DATA", raising=False)


@pytest.fixture
def official(tmp_path, monkeypatch):
    """`official(name)`: builds the files of `name`; gives (where to search, files, rows)."""

    def build(name):
        folder = tmp_path / "archives" / name
        rows = BUILDERS[name](folder)
        entry = catalog.entry(name)
        sizes = (len(rows[1]), 0 if rows[3] is None else len(rows[3]))
        files = tuple(dataclasses.replace(file, checksum=None) for file in entry.files)
        small = dataclasses.replace(entry, official=sizes, files=files)
        monkeypatch.setitem(catalog.ENTRIES, name, small)
        if name == "pokerhand":  # the one dataset whose classes are counted
            counts = np.bincount(rows[1], minlength=10)
            monkeypatch.setattr(pokerhand, "COUNTS", tuple(counts.tolist()))
        return folder.parent, folder, rows

    return build
