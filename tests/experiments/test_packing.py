"""Packed stores: read as they were, gone on with, and never half there."""

import gzip

import pytest

from askance.errors import StoreError
from askance.experiments import export, packing
from askance.experiments.packing import FILE, PACKED, pack
from askance.experiments.store import ResultStore
from tests.experiments.worlds import record, spec


def content(folder):
    with ResultStore.read(folder) as store:
        return store.spec, store.rounds(), store.results(), store.runs, store.sweep_results()


def test_a_packed_store_says_what_it_said(filled):
    before, rows, size = content(filled), export.table(filled), (filled / FILE).stat().st_size
    assert pack(filled) == filled / PACKED
    assert sorted(file.name for file in filled.iterdir() if file.name != "store.lock") == [PACKED]
    assert (filled / PACKED).stat().st_size < size
    assert content(filled) == content(filled / PACKED) == before
    assert export.table(filled) == export.table(filled / PACKED) == rows
    assert export.stores([filled, filled.parent]) == [filled / PACKED]


def test_a_run_goes_on_with_a_packed_store(filled):
    before = content(filled)
    pack(filled)
    more = spec(seeds=3)
    with ResultStore.open(filled, more, extend=True) as store:
        store.start_run("grad", 2, [1])
        store.add_round(record(seed=2))
    assert (filled / FILE).is_file()
    assert not (filled / PACKED).exists()
    with ResultStore.read(filled) as store:
        assert len(store.rounds()) == len(before[1]) + 1


def test_killed_between_packing_and_removing_the_store_is_the_truth(filled):
    plain = (filled / FILE).read_bytes()
    pack(filled)
    (filled / FILE).write_bytes(plain)
    before = content(filled)
    assert export.stores(filled) == [filled / FILE]
    assert len(export.table(filled)) == len(before[1])
    ResultStore.open(filled, spec()).close()
    assert not (filled / PACKED).exists()
    assert content(filled) == before


def test_one_that_is_written_is_not_packed(filled):
    with ResultStore.open(filled, spec()), pytest.raises(StoreError):
        pack(filled)
    assert (filled / FILE).is_file()
    assert not (filled / PACKED).exists()


def test_a_damaged_one_is_told_and_left(filled, monkeypatch):
    pack(filled)
    whole = (filled / PACKED).read_bytes()
    inside = gzip.decompress(whole)
    cases = {
        b"hello": "no packed store, or a damaged one",
        whole[:-40]: "no packed store, or a damaged one",
        gzip.compress(b"hello"): "does not hold an SQLite file",
        gzip.compress(inside[: len(inside) // 2]): "damaged",
    }
    for bad, words in cases.items():
        (filled / PACKED).write_bytes(bad)
        for act in (ResultStore.read, lambda folder: ResultStore.open(folder, spec())):
            with pytest.raises(StoreError, match=words):
                act(filled)
        assert (filled / PACKED).read_bytes() == bad
        assert not (filled / FILE).exists()
    (filled / PACKED).write_bytes(whole)
    monkeypatch.setattr(packing, "MOST_BYTES", len(inside) - 1)
    with pytest.raises(StoreError, match="unpacks to more than"):
        ResultStore.read(filled)


def test_there_must_be_a_store_to_pack(tmp_path):
    with pytest.raises(StoreError, match="no store to pack"):
        pack(tmp_path)
