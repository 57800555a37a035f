"""A store holds what was committed, of one experiment, from one writer at a time."""

import json
import math
import os
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.errors import StoreError
from askance.experiments import schema
from askance.experiments.machine import Machine
from askance.experiments.packing import FILE, LOCK
from askance.experiments.records import Origin, RoundRecord, SweepResult, packed
from askance.experiments.store import ResultStore
from tests.experiments.worlds import fill, record, spec

TRAINED = {"train_loss": 0.25, "train_accuracy": 0.75, "majority": 0.5}
BY_CLASS = {"balanced_accuracy": 0.375, "macro_f1": 0.125}


@pytest.fixture
def store(tmp_path):
    with ResultStore.open(tmp_path / "out", spec()) as opened:
        yield opened


def test_a_finished_store_is_one_file(filled):
    assert [path.name for path in filled.iterdir()] == [FILE]
    with ResultStore.read(filled) as by_folder, ResultStore.read(filled / FILE) as by_file:
        assert by_folder.rounds() == by_file.rounds()
        assert set(by_folder.progress().values()) == {4}


def test_rounds_come_back_as_they_went_in(store):
    whole = record(
        picks=[7, 0, 2**40],
        scores=[0.1, 1e-30, math.pi],
        seconds={"train": 1.25, "select": 0.0},
        peak_mb={"train": 12.5},
        **TRAINED,
        **BY_CLASS,
    )
    assert json.loads(record(seconds={"train": 1 / 3}).to_row()["seconds"]) == {"train": 0.3333}
    store.start_run("grad", 0, [4, 2])
    store.add_round(whole)
    (back,) = store.history("grad", 0)
    assert back == whole
    names = ("strategy", "seed", "round", "labels", "accuracy", *TRAINED, *BY_CLASS)
    assert store.results() == [{name: getattr(whole, name) for name in names}]
    assert (back.picks.dtype, back.scores.dtype) == (np.int64, np.float32)
    assert store.initial("grad", 0).tolist() == [4, 2]
    assert store.initial("grad", 1) is None
    store.start_run("random", 1, [4, 2])
    assert list(store.progress().items()) == [(("random", 1), 0), (("grad", 0), 1)]


# Version 2 did not record what training left, versions 2 and 3 not the means by class, and none of them
# whether a rate of the sweep trains a first set.
LACKING = {2: tuple(schema.LATER), 3: tuple(schema.BY_CLASS), 4: ()}


def older(folder, version):
    """Make a store one of an older version."""
    db = sqlite3.connect(folder / FILE)
    for name in LACKING[version]:
        db.execute(f"ALTER TABLE round DROP COLUMN {name}")
    db.execute("ALTER TABLE sweep DROP COLUMN trained")
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.close()


@pytest.mark.parametrize("version", LACKING)
def test_an_older_store_is_read_as_it_is(filled, version):
    with ResultStore.read(filled) as store:
        before, results, sweep = store.rounds(), store.results(), store.sweep_results()
    older(filled, version)
    content = (filled / FILE).read_bytes()
    with ResultStore.read(filled) as store:
        assert store.rounds() == before
        assert store.results() == results
        assert store.sweep_results() == [replace(one, trained=None) for one in sweep]
        for name in LACKING[version]:
            assert {result[name] for result in results} == {None}
    assert (filled / FILE).read_bytes() == content


@pytest.mark.parametrize("version", LACKING)
def test_an_older_store_that_is_written_is_brought_up(filled, version):
    older(filled, version)
    content = (filled / FILE).read_bytes()
    with pytest.raises(StoreError, match="holds another experiment"):
        ResultStore.open(filled, spec(precision="bf16"))
    assert (filled / FILE).read_bytes() == content  # what is refused is left alone
    more = spec(seeds=3)
    with ResultStore.open(filled, more, extend=True) as store:
        store.start_run("grad", 2, [1])
        store.add_round(record(seed=2, **TRAINED, **BY_CLASS))
    with ResultStore.open(filled, more) as store:  # once is enough
        recorded = {
            record.seed: (record.train_accuracy, record.macro_f1) for record in store.rounds()
        }
    assert recorded == {0: (None, None), 1: (None, None), 2: (0.75, 0.125)}


def test_numbers_of_numpy_and_torch_are_numbers(store):
    store.start_run("grad", 1, np.arange(3))
    given = {"labels": np.int32(4), "accuracy": torch.tensor(0.5), "loss": np.float32(0.25)}
    store.add_round(record(np.int64(0), seed=np.int64(1), picks=np.arange(3), **given))
    (back,) = store.history("grad", 1)
    assert (back.labels, back.accuracy, back.loss) == (4, 0.5, 0.25)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf, 0.1 + 0.2])
def test_a_diverged_loss_is_kept(store, loss):
    store.start_run("grad", 0, [1])
    store.add_round(record(loss=loss))
    (back,) = store.history("grad", 0)
    assert repr(back.loss) == repr(loss)


@settings(max_examples=25)
@given(
    st.floats(0, 1),
    st.floats(),
    st.dictionaries(st.integers(0, 2**63 - 1), st.floats(width=32, allow_nan=False), max_size=9),
    st.none() | st.tuples(st.floats(), st.floats(0, 1), st.floats(0, 1)),
)
def test_any_round_survives_its_row(accuracy, loss, picks, trained):
    scores = list(picks.values())
    training = dict(zip(TRAINED, trained or (None, None, None), strict=True))
    before = record(accuracy=accuracy, loss=loss, picks=list(picks), scores=scores, **training)
    back = RoundRecord.from_row(before.to_row())
    assert back == before
    assert (back.picks.tolist(), back.scores.tolist()) == (list(picks), scores)


def test_picks_and_scores_take_half_of_their_bytes():
    draws = np.random.default_rng(0)
    picks, scores = draws.permutation(25_000)[:500], np.sort(draws.gamma(4, 1, 500))[::-1]
    row = record(picks=picks, scores=scores).to_row()
    assert len(row["picks"]) < 2.4 * 500
    assert len(row["scores"]) < 3.6 * 500


@pytest.mark.parametrize("blob", [b"x", b"\x00" * 16, packed(np.arange(3), "<i8")[:-1]])
def test_a_damaged_blob_is_no_round(store, blob):
    store.start_run("grad", 0, [1])
    store.add_round(record())
    store._db.execute("UPDATE round SET picks = ?", (blob,))
    with pytest.raises(StoreError, match="numbers in the store are damaged"):
        store.rounds()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"accuracy": math.nan}, r"accuracy must be in \[0, 1\], got nan"),
        ({"accuracy": 97.2}, r"accuracy must be in \[0, 1\], got 97.2"),
        ({"picks": [1, 1]}, "picks must be different positions"),
        ({"picks": [-1]}, "picks must be different positions"),
        ({"picks": [0.5]}, "picks must be one-dimensional integers"),
        ({"picks": [[1, 2]]}, "picks must be one-dimensional integers"),
        ({"scores": [1.0]}, "1 scores for 4 picks"),
        ({"seconds": {"trian": 1.0}}, "unknown stage 'trian'; known: train"),
        ({"seconds": {"train": -1.0}}, "seconds of train must be ≥ 0"),
        ({"peak_mb": {"train": math.nan}}, "peak_mb of train must be ≥ 0"),
        ({**TRAINED, "train_accuracy": 1.5}, r"train_accuracy must be in \[0, 1\], got 1.5"),
        ({**TRAINED, "majority": math.nan}, r"majority must be in \[0, 1\], got nan"),
        ({**TRAINED, "train_loss": None}, "train_loss, .* are recorded together or not at all"),
        ({**BY_CLASS, "macro_f1": 1.5}, r"macro_f1 must be in \[0, 1\], got 1.5"),
        ({"macro_f1": 0.5}, "balanced_accuracy, macro_f1 are recorded together or not at all"),
    ],
)
def test_an_impossible_round_is_no_record(changes, words):
    with pytest.raises(StoreError, match=f"grad, seed 0, round 0: {words}"):
        record(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": 0}, "cannot be stored: CHECK constraint failed: labels > 0"),
        ({"learning_rate": 0.0}, "CHECK constraint failed: learning_rate > 0"),
        ({"round": 1}, "round 1 leaves a gap; the next one is round 0"),
        ({"seed": 2}, "no run 'grad', seed 2: its strategies are random, grad, its seeds 0-1"),
        ({"strategy": "badge"}, "no run 'badge'"),
        ({"seed": 1}, "call start_run first"),
    ],
)
def test_a_round_that_does_not_belong_is_refused(store, changes, words):
    store.start_run("grad", 0, [1])
    with pytest.raises(StoreError, match=words):
        store.add_round(record(**changes))
    assert store.rounds() == []


def test_rounds_are_contiguous_and_end(store):
    store.start_run("grad", 0, [1])
    for round in range(3):
        store.add_round(record(round))
        with pytest.raises(StoreError, match=f"round {round} is stored already"):
            store.add_round(record(round))
        with pytest.raises(StoreError, match="leaves a gap"):
            store.add_round(record(round + 2))
    with pytest.raises(StoreError, match="the last round picks nothing, got 1"):
        store.add_round(record(3, picks=[1]))
    store.add_round(record(3))
    with pytest.raises(StoreError, match="the experiment ends with round 3"):
        store.add_round(record(4))
    assert [r.round for r in store.history("grad", 0)] == [0, 1, 2, 3]


def test_a_run_starts_once(store):
    store.start_run("grad", 0, [3, 1])
    store.start_run("grad", 0, np.array([3, 1]))
    with pytest.raises(StoreError, match="grad, seed 0 started from other rows"):
        store.start_run("grad", 0, [1, 3])
    with pytest.raises(StoreError, match="cannot be stored: CHECK"):
        store.start_run("grad", 1, [])


def test_the_sweep_and_its_choice(store):
    assert (store.learning_rate(), store.sweep_results()) == (None, [])
    sweep = [SweepResult(0.01, 0, 0.25, 1.0, 9.0), SweepResult(0.1, 1, 0.5, 2.0, trained=False)]
    for result in reversed(sweep):
        store.add_sweep(result)
    assert store.sweep_results() == sweep
    for wrong in [
        (0.1, 1, 0.5, 2.0),
        (0.01, 1, math.nan, 1.0),
        (0.01, 1, 1.5, 1.0),
        (0.01, 1, 1, -1),
    ]:
        with pytest.raises(StoreError, match=r"sweep of .* cannot be stored"):
            store.add_sweep(SweepResult(*wrong))
    with pytest.raises(StoreError, match=r"0.5 is none of the spec's learning rates \[0.01, 0.1\]"):
        store.add_sweep(SweepResult(0.5, 0, 0.5, 1.0))
    store.set_learning_rate(0.1)
    store.set_learning_rate(0.1)
    with pytest.raises(StoreError, match=r"the learning rate is 0.1, it cannot become 0.01"):
        store.set_learning_rate(0.01)
    assert store.learning_rate() == 0.1


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (Origin("def", "b", "half"), r"made with other data: scikit-learn .*abc.*now b \(def\)"),
        (Origin("abc", "b", None, ("a", "c")), "another network of this name: there b, now c"),
        (Origin("abc", "b", None, ("a",)), "there b, now nothing more"),
        (Origin("abc", "b", None, ("a", "b", "c")), "there nothing more, now c"),
    ],
)
def test_another_origin_is_refused_and_the_store_untouched(tmp_path, other, words):
    ours = Origin("abc", "scikit-learn", None, ("a", "b"))
    ResultStore.open(tmp_path, spec(), origin=ours).close()
    ResultStore.open(tmp_path, spec(), origin=replace(ours, source="a mirror")).close()
    before = (tmp_path / FILE).read_bytes()
    more = replace(spec(), seeds=spec().seeds + 1)
    with pytest.raises(StoreError, match=words):
        ResultStore.open(tmp_path, more, extend=True, origin=other)
    assert (tmp_path / FILE).read_bytes() == before
    with ResultStore.read(tmp_path) as store:
        assert store.info["source"] == "scikit-learn"
        assert store.info["subset"] is None


def test_each_process_says_what_it_runs_on(store):
    machine = Machine(device="cpu", engine="one by one", precision="float32")
    store.note_machine(machine)
    store.note_machine(machine)
    first, second = store.machines()
    assert (first["id"], second["id"]) == (1, 2)
    assert first["packages"] == dict(machine.packages)
    assert first["hardware"] == dict(machine.hardware)


def test_the_spec_is_stored_with_its_hash(store):
    assert store.spec == spec().to_dict()
    assert store.hash == spec().hash
    assert store.info["code"].count("+") == 1


def test_another_spec_is_refused_and_every_difference_named(filled):
    before = (filled / FILE).read_bytes()
    other = spec(seeds=3, recipe={"epochs": 2, "learning_rates": [0.01, 0.1]})
    for extend in (False, True):
        with pytest.raises(
            StoreError, match=r"(?s)seeds: 2 → 3.*recipe.epochs: 1 → 2.*--out"
        ) as error:
            ResultStore.open(filled, other, extend=extend)
        assert "--extend" not in str(error.value)
    assert (filled / FILE).read_bytes() == before
    assert [path.name for path in filled.iterdir()] == [FILE]


def test_more_runs_are_added_only_when_asked(filled):
    more = spec(seeds=3, strategies=["badge", "grad"])
    with pytest.raises(StoreError, match=r"(?s)strategies: grad, random → badge, grad.*--extend"):
        ResultStore.open(filled, more)
    with ResultStore.open(filled, more, extend=True) as store:
        assert len(store.rounds()) == 16
        union = spec(seeds=3, strategies=["random", "grad", "badge"])
        assert (store.spec, store.hash) == (union.to_dict(), union.hash)
        assert ("badge", 2) not in store.progress()
        store.start_run("badge", 2, [1])
        assert store.progress()[("badge", 2)] == 0
        store.add_round(record(strategy="badge", seed=2))
    with ResultStore.open(filled, more, extend=True) as store:
        assert store.progress()[("badge", 2)] == 1


def test_two_opens_in_one_process(store, tmp_path):
    with pytest.raises(StoreError, match=rf"being written by this process \(pid {os.getpid()}\)"):
        ResultStore.open(tmp_path / "out", spec())
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with pytest.raises(StoreError, match="being written by this process"):
        ResultStore.open(tmp_path / "link", spec())
    store.close()
    store.close()
    ResultStore.open(tmp_path / "out", spec()).close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_worker_holds_nothing(store, tmp_path):
    pid = os.fork()
    if pid == 0:
        store._lock.release()  # as an exit handler might
        os._exit(0)
    os.waitpid(pid, 0)
    assert (tmp_path / "out" / LOCK).exists()
    store.start_run("grad", 0, [1])
    store.add_round(record())


def test_reading_while_writing(store):
    store.start_run("grad", 0, [1])
    with ResultStore.read(store.path) as reader:
        for round in range(4):
            store.add_round(record(round))
            assert reader.progress()[("grad", 0)] == round + 1
        for write in (lambda: reader.add_round(record()), lambda: reader.set_learning_rate(0.1)):
            with pytest.raises(StoreError, match="was opened to be read"):
                write()


def test_what_is_no_store_is_left_alone(tmp_path, filled):
    whole = (filled / FILE).read_bytes()
    newer = bytearray(whole)
    newer[60:64] = (schema.STORE.version + 1).to_bytes(4, "big")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE notes (text)")
    db.close()
    page = schema.PAGE
    cases = {
        "text": (b"hello", "no askance store, or a damaged one"),
        "long text": (b"x" * 5000, "no askance store, or a damaged one"),
        "header": (whole[:50], "no askance store, or a damaged one"),
        "one page": (whole[:page], "damaged"),
        "all but a page": (whole[:-page], "damaged"),
        "part of a page": (whole[: len(whole) - page // 2], "damaged"),
        "scribbled": (whole[: 2 * page] + b"\xaa" * page + whole[3 * page :], "damaged"),
        "other": (other.read_bytes(), "SQLite file of another application"),
        "newer": (bytes(newer), "version 6 of .* and this askance reads version 2, 3, 4 and 5"),
    }
    for name, (content, words) in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / FILE).write_bytes(content)
        with pytest.raises(StoreError, match=words):
            ResultStore.open(folder, spec())
        with pytest.raises(StoreError, match=words):
            ResultStore.read(folder)
        assert (folder / FILE).read_bytes() == content, name
        assert [path.name for path in folder.iterdir()] == [FILE], name


def test_an_empty_file_is_a_fresh_store_to_a_writer_alone(tmp_path):
    (tmp_path / FILE).touch()
    with pytest.raises(StoreError, match="is empty: its run ended before anything was stored"):
        ResultStore.read(tmp_path)
    with ResultStore.open(tmp_path, spec()) as store:
        assert store.spec == spec().to_dict()


def test_no_store_at_all(tmp_path):
    for path in (tmp_path, tmp_path / "none", tmp_path / FILE):
        with pytest.raises(StoreError, match="there is no store at"):
            ResultStore.read(path)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be opened or written: "):
        ResultStore.open(tmp_path / "file", spec())
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_disk_full_leaves_the_store_intact_and_usable(store):
    store.start_run("grad", 0, [1])
    store.add_round(record())
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    many = np.random.default_rng(0).permutation(2**16)
    with pytest.raises(StoreError, match=r"the disk of .*store.sqlite is full; what was committed"):
        store.add_round(record(1, picks=many))
    with ResultStore.read(store.path) as reader:
        assert reader.rounds() == [record()]
    store._db.execute("PRAGMA max_page_count = 100000")
    store.add_round(record(1, picks=many))


def test_an_odd_folder_name(tmp_path):
    folder = tmp_path / "50% of a?b#c é"
    with ResultStore.open(folder, spec()) as store:
        fill(store, 1)
    with ResultStore.read(folder) as store:
        assert len(store.rounds()) == 4
