"""The tidy table: the same rows from stores and from its own files, in one order."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.cli import main
from askance.errors import StoreError, UnknownError
from askance.experiments import export, formats
from askance.experiments.export import ResultRow
from askance.experiments.packing import FILE
from askance.experiments.store import ResultStore
from askance.label.store import FILE as PROJECT
from tests.experiments.worlds import fill, record, spec

OLDER = ["experiment", "dataset", "model", "strategy", "seed", "round", "labels", "accuracy"]
TRAINED = [*OLDER, "train_loss", "train_accuracy", "flagged"]
COLUMNS = [*TRAINED, "balanced_accuracy", "macro_f1"]
HEADER = ",".join(OLDER)
FULL = ",".join(TRAINED)
NEWEST = ",".join(COLUMNS)
# Not recorded; trained; diverged. The means by class, of which the first round has none.
TRAINING = (
    (None, None, None, None, None),
    (0.1 + 0.7, 2 / 3, False, 1 / 7, 0.1 + 0.2),
    (None, 0.0, True, 0.0, 0.0),
)


def made(folder, rounds=4, **changes):
    with ResultStore.open(folder, spec(**changes)) as store:
        fill(store, rounds)
    return folder


@pytest.fixture(scope="module")
def rows():
    return [
        ResultRow("e", "digits", "mlp", strategy, seed, round, 4 * (round + 1), accuracy, *training)
        for strategy, accuracy in (("grad", 1 / 3), ("powergrad(beta=1.0, x='é')", 0.1 + 0.2))
        for seed in range(2)
        for round, training in enumerate(TRAINING)
    ]


def test_a_store_becomes_rows_in_order(tmp_path):
    rows = export.table(made(tmp_path / "a"))
    assert list(formats.COLUMNS) == COLUMNS
    assert len(rows) == 16
    assert rows == sorted(rows, key=lambda r: (r.experiment, r.strategy, r.seed, r.round))
    assert rows[0] == ResultRow("small", "digits", "mlp", "grad", 0, 0, 4, 1 / 7)
    assert export.table(tmp_path / "a" / FILE) == rows


def test_a_folder_of_stores_and_exports_is_one_table(tmp_path):
    made(tmp_path / "in" / "b" / "deep", name="second")
    made(tmp_path / "in" / "a")
    rows = export.table(tmp_path / "in")
    assert [row.experiment for row in rows] == ["second"] * 16 + ["small"] * 16
    out = tmp_path / "out"
    out.mkdir()
    export.write(rows[:20], "csv", out / "one.csv")
    export.write(rows[20:25], "json", out / "two.json")
    export.write(rows[25:], "parquet", out / "three.parquet")
    (out / "notes.csv").write_text("a,b\n1,2\n")
    (out / "other.json").write_text("{}")
    (out / "broken.parquet").write_bytes(b"PAR1")
    (out / "read.me").touch()
    assert export.table(out) == rows
    assert export.table([out, tmp_path / "in"]) == rows  # the same rows twice are the same rows


def test_own_data_shows_no_path(tmp_path):
    rows = export.table(made(tmp_path / "a", dataset="../private/birds.csv", label="species"))
    assert {row.dataset for row in rows} == {"birds"}


@pytest.mark.parametrize("format", formats.FORMATS)
def test_formats_round_trip_to_the_byte(format, rows, tmp_path):
    out = tmp_path / f"t.{format}"
    export.write(rows, format, out)
    assert export.table(out) == rows
    first = out.read_bytes()
    export.write(export.table(out), format, out)
    assert out.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_csv_and_json_are_plain(rows):
    text = formats.render(rows, "csv").decode()
    lines = list(csv.DictReader(text.splitlines()))
    assert list(lines[0]) == COLUMNS
    assert lines[0]["accuracy"] == repr(1 / 3)
    assert "\r" not in text
    assert [list(row) for row in json.loads(formats.render(rows, "json"))] == [COLUMNS] * 12


@given(st.floats(0, 1), st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_any_accuracy_and_label_survive(tmp_path_factory, accuracy, label):
    row = ResultRow("e", "d", "m", label, 0, 0, 1, accuracy)
    for format in formats.FORMATS:
        out = tmp_path_factory.getbasetemp() / f"any.{format}"
        export.write([row], format, out)
        assert export.table(out) == [row]


def test_an_export_of_before_training_was_recorded_is_read(tmp_path):
    (tmp_path / "old.csv").write_text(f"{HEADER}\ne,d,m,s,0,0,1,0.5\n")
    (row,) = export.table(tmp_path)
    assert row == ResultRow("e", "d", "m", "s", 0, 0, 1, 0.5)


def test_an_export_of_before_means_by_class_were_recorded_is_read(tmp_path):
    (tmp_path / "old.csv").write_text(f"{FULL}\ne,d,m,s,0,0,1,0.5,0.25,1.0,false\n")
    (row,) = export.table(tmp_path)
    assert row == ResultRow("e", "d", "m", "s", 0, 0, 1, 0.5, 0.25, 1.0, False)


def test_a_stores_means_by_class_are_exported(tmp_path):
    with ResultStore.open(tmp_path / "a", spec(seeds=1, strategies=["grad"])) as store:
        store.start_run("grad", 0, [1, 2, 3, 4])
        store.add_round(record(0, balanced_accuracy=1 / 3, macro_f1=0.25))
        store.add_round(record(1))
    rows = export.table(tmp_path / "a")
    assert [(row.balanced_accuracy, row.macro_f1) for row in rows] == [(1 / 3, 0.25), (None, None)]


def test_a_store_says_which_rounds_did_not_train(tmp_path):
    trained = {"train_loss": 0.5, "train_accuracy": 1.0, "majority": 0.25}
    with ResultStore.open(tmp_path / "a", spec(seeds=1, strategies=["grad"])) as store:
        store.start_run("grad", 0, [1, 2, 3, 4])
        store.add_round(record(0, **trained))
        store.add_round(record(1, **trained | {"train_accuracy": 0.5}))
        store.add_round(record(2, **trained | {"train_loss": float("nan"), "train_accuracy": 0.0}))
        store.add_round(record(3))
    rows = export.table(tmp_path / "a")
    assert [row.flagged for row in rows] == [False, True, True, None]  # 1/4 + 2·√(3/16/8) is 0.56
    assert [row.train_loss for row in rows] == [0.5, 0.5, None, None]
    assert [row.train_accuracy for row in rows] == [1.0, 0.5, 0.0, None]


def test_two_answers_for_one_round_are_refused(tmp_path, rows):
    export.write(rows, "csv", tmp_path / "a.csv")
    changed = [*rows[:3], ResultRow(**{**vars(rows[3]), "accuracy": 0.5})]
    export.write(changed, "json", tmp_path / "b.json")
    with pytest.raises(StoreError, match=r"a.csv and .*b.json differ in e, grad, seed 1, round 0"):
        export.table(tmp_path)


def test_one_name_for_two_experiments_is_refused(tmp_path, rows):
    export.write(rows[:3], "csv", tmp_path / "a.csv")
    export.write([ResultRow(**{**vars(rows[3]), "model": "lenet"})], "csv", tmp_path / "b.csv")
    with pytest.raises(
        StoreError, match=r"a.csv and .*b.csv both hold 'e', of digits with mlp and of"
    ):
        export.table(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(
        StoreError, match=r"no rounds at .*: expected stores .* or a folder of them"
    ):
        export.table(tmp_path)
    made(tmp_path / "a", rounds=0)
    with pytest.raises(StoreError, match="no rounds at"):
        export.table(tmp_path)
    with pytest.raises(StoreError, match="there is no store, export or folder at"):
        export.table(tmp_path / "none")
    with pytest.raises(StoreError, match="no rounds at no path"):
        export.table([])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected exactly the columns experiment, .*; missing: experiment"),
        ("a,b\n", "missing: experiment, .*; unknown: a, b"),
        (NEWEST.replace("labels", "label"), "missing: labels; unknown: label"),
        (",".join(reversed(COLUMNS)), "in that order"),
        (f"{HEADER}\ne,d,m,s,0,0,1\n", "line 2: 7 values, expected 8: experiment, dataset"),
        (f"{HEADER}\ne,d,m,s,0,0,1,.\n", "line 2, column accuracy"),
        (f"{HEADER}\ne,d,m,s,0,0,1,0.5\ne,d,m,s,0,x,1,0.5", "line 3, column round: .*≥ 0, got 'x'"),
        (f"{HEADER}\ne,d,m,s,1.0,0,1,0.5", "line 2, column seed: expected a whole number"),
        (f"{HEADER}\ne,d,m,s,0,0,0,0.5", "line 2, column labels: expected a whole number ≥ 1"),
        (
            f"{HEADER}\ne,d,m,s,0,0,1,97.2",
            r"column accuracy: expected a number in \[0, 1\], got 97.2",
        ),
        (f"{HEADER}\ne,d,m,s,0,0,1,nan", "column accuracy: .*got 'nan'"),
        (f"{HEADER}\ne,d,m,,0,0,1,0.5", "column strategy: expected a name, got ''"),
        (f'{HEADER}\ne,d,m,"s,0,0,1,0.5', "is no csv file: unexpected end of data"),
        (
            f"{FULL}\ne,d,m,s,0,0,1,0.5,,2,true",
            r"train_accuracy: expected a number in \[0, 1\], or",
        ),
        (f"{FULL}\ne,d,m,s,0,0,1,0.5,inf,1,true", "train_loss: expected a finite number ≥ 0 where"),
        (f"{FULL}\ne,d,m,s,0,0,1,0.5,0.5,,", "train_loss: expected .* where there is a train_acc"),
        (f"{FULL}\ne,d,m,s,0,0,1,0.5,0.5,1,", "flagged: expected true or false where there is"),
        (f"{FULL}\ne,d,m,s,0,0,1,0.5,,,true", "flagged: expected .*else nothing, got True"),
        (f"{NEWEST}\ne,d,m,s,0,0,1,0.5,,,,0.5,", "macro_f1: expected .* or neither, got None"),
        (f"{NEWEST}\ne,d,m,s,0,0,1,0.5,,,,,0.5", "macro_f1: expected .* or neither, got 0.5"),
        (f"{NEWEST}\ne,d,m,s,0,0,1,0.5,,,,0.5,97", "macro_f1: expected .* or neither, got 97"),
    ],
)
def test_a_malformed_csv_is_refused_with_its_line(text, words, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(StoreError, match=rf"(?s)t.csv.*{words}"):
        export.table(tmp_path / "t.csv")


def test_a_malformed_export_in_a_folder_is_not_passed_over(tmp_path, rows):
    export.write(rows, "json", tmp_path / "good.json")
    (tmp_path / "bad.csv").write_text(f"{HEADER}\ne,d\n")
    with pytest.raises(StoreError, match=r"bad.csv, line 2: 2 values"):
        export.table(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.json", b"{", "is no json file"),
        ("t.json", b"[1]", "missing: experiment"),
        ("t.json", b"\xff", "is no json file"),
        ("t.parquet", b"PAR1", "is no parquet file|cannot read"),
        ("t.bin", b"nothing", "no askance store"),
    ],
)
def test_a_file_of_something_else_is_refused(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StoreError, match=words):
        export.table(tmp_path / name)


def test_json_rows_are_checked_each(tmp_path, rows):
    records = json.loads(formats.render(rows, "json"))
    for change, words in (
        ({"seed": True}, "row 2, column seed"),
        ({"accuracy": "0.5"}, "row 2, column accuracy"),
        ({"extra": 1}, "row 2: expected exactly .*unknown: extra"),
    ):
        (tmp_path / "t.json").write_text(json.dumps([records[0], records[1] | change]))
        with pytest.raises(StoreError, match=words):
            export.table(tmp_path / "t.json")


def test_a_write_that_fails_leaves_what_was_there(tmp_path, rows, monkeypatch):
    export.write(rows, "csv", tmp_path / "t.csv")
    before = (tmp_path / "t.csv").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("askance.experiments.export.os.fsync", full)
    with pytest.raises(StoreError, match=r"cannot write .*t.csv: No space left"):
        export.write(rows[:1], "csv", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(StoreError, match=r"cannot write .*: No such file"):
        export.write(rows, "csv", tmp_path / "none" / "t.csv")
    with pytest.raises(UnknownError, match="unknown format 'cvs': did you mean 'csv'"):
        export.write(rows, "cvs", tmp_path / "t.csv")


def test_a_live_store_is_exported(tmp_path):
    with ResultStore.open(tmp_path, spec()) as store:
        store.start_run("grad", 1, [1])
        store.add_round(record(seed=1))
        assert len(export.table(tmp_path)) == 1


def test_a_labelling_project_is_told_from_an_experiment(tmp_path, capsys):
    (tmp_path / PROJECT).touch()
    assert main(["export", str(tmp_path)]) == 3
    told = capsys.readouterr().err.replace("\n", " ")
    assert "is a labelling project, and this exports experiments" in told
    assert f"askance label {tmp_path}" in told
