"""`askance ingest` and the files it reads: partial, hostile, and from other commands."""

import csv
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askance.cli import main
from askance.errors import DataError
from askance.label.files import read_answers
from askance.label.store import ProjectStore
from tests.label.outside import rows_of, standing, state_of
from tests.label.worlds import features_file, images_folder


def make(project, data, *more):
    names = ["--features", "vector", "--id", "name", "--classes", "left,right", "--no-server"]
    return main(["label", str(project), "--data", str(data), *names, *more])


@pytest.fixture
def told(project, capsys, tmp_path):
    """(exit code, what is told) of `askance ingest` on a file of this content."""

    def ingest(name, content, *more):
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        capsys.readouterr()
        code = main(["ingest", str(file), "--project", str(project), "--json", *more])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else err.replace("\n", " ")

    return ingest


def reasons(summary):
    return {refusal["where"]: refusal["why"] for refusal in summary["refusals"]}


# Making a project without a page


def test_a_project_is_made_without_a_server(tmp_path, capsys):
    source = features_file(tmp_path)
    assert make(tmp_path / "p", source.path, "--held-out", "0.2") == 0
    assert "60 items, 2 classes (left, right), 0 answers" in capsys.readouterr().out
    assert make(tmp_path / "p", source.path) == 3
    assert "--held-out 0.2" in capsys.readouterr().err
    root = images_folder(tmp_path)
    assert main(["label", str(tmp_path / "q"), "--data", str(root), "--no-server"]) == 2
    assert "name them with --classes" in capsys.readouterr().err.replace("\n", " ")


def test_a_project_made_here_is_the_one_the_page_opens(tmp_path, start):
    assert make(tmp_path / "project", features_file(tmp_path).path) == 0
    (tmp_path / "a.csv").write_text("id,label\nitem 3,right\n")
    assert main(["ingest", str(tmp_path / "a.csv"), "--project", str(tmp_path / "project")]) == 0
    session = start(held_out=0.1)
    assert session.annotations.labels == {"item 3": 1}
    session.close()


# The command


def test_what_is_told_and_with_which_exit_code(project, told, capsys):
    code, first = told(
        "a.csv", "id,label\nitem 1,left\nitem 2,\nitem 77,left\n", "--annotator", "eve"
    )
    assert code == 4
    assert (first["applied"], first["unanswered"], first["refused"]) == (1, 1, 1)
    assert first["refusals"] == [
        {"where": "line 4", "item": "item 77", "why": "the project has no such item"}
    ]
    assert standing(project) == {("item 1", "eve"): "left"}
    assert told("a.csv", "id,label\nitem 1,left\n", "--annotator", "eve")[1]["unchanged"] == 1
    file = project.parent / "b.csv"
    file.write_text("id,label\nitem 4,up\nitem 5,left\n" + "".join("x,left\n" for _ in range(30)))
    assert main(["ingest", str(file), "--project", str(project), "--dry-run", "--add-classes"]) == 4
    out = capsys.readouterr().out
    assert "2 would be applied, 0 unchanged, 0 unanswered, 30 refused" in out
    assert "Classes to add: up" in out
    assert "… and 10 more; --json lists them all" in out
    assert len(standing(project)) == 1
    assert main(["ingest", str(file), "--project", str(project), "--add-classes"]) == 4
    assert "Classes added: up" in capsys.readouterr().out


def test_a_served_project_is_refused_with_what_to_do(project, told):
    before = rows_of(project)
    with ProjectStore.open(project):
        code, err = told("a.csv", "id,label\nitem 1,left\n")
    assert code == 3
    assert "stop it with Ctrl-C" in err
    assert rows_of(project) == before


def test_replace_and_skips(project, told):
    assert (
        told("a.csv", "id,label,skipped\nitem 1,left,\nitem 2,,true\nitem 3,,no\n")[1]["skips"] == 1
    )
    code, second = told("b.csv", "id,label\nitem 1,right\n")
    assert code == 4
    assert "before and now 'right'" in reasons(second)["line 2"]
    assert told("b.csv", "id,label\nitem 1,right\n", "--replace")[0] == 0
    assert list(standing(project).values()) == ["right"]
    assert told("c.csv", "id,label\nitem 4,\n", "--skip-empty")[1]["skips"] == 1
    with ProjectStore.open(project) as store:
        assert set(state_of(store).skips) == {"item 2", "item 4"}


def test_columns_by_other_names(project, told):
    content = "key;x,kind,by,when,no\nitem 1,left,ann,2024-05-01T10:00:00Z,0\n"
    names = ["--id", "key;x", "--label", "kind", "--annotator-column", "by", "--time", "when"]
    code, summary = told("a.csv", content, *names, "--skipped", "no")
    assert (code, summary["applied"]) == (0, 1)
    with ProjectStore.open(project) as store:
        assert store.answers()[0]["time"] == "2024-05-01T10:00:00.000+00:00"
        assert store.answers()[0]["annotator"] == "ann"


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_batch_that_was_selected_comes_back_labelled(project, told, tmp_path, ending):
    rng = np.random.default_rng(0)
    names = [f"item {i}" for i in range(60)]
    columns = {"h": list(rng.normal(size=(60, 4))), "z": list(rng.normal(size=(60, 2)))}
    pq.write_table(pa.table({"name": names, **columns}), tmp_path / "pool.parquet")
    batch = tmp_path / f"batch.{ending}"
    ask = ["--features", "h", "--logits", "z", "--id", "name", "--strategy", "entropy"]
    pool = str(tmp_path / "pool.parquet")
    assert main(["select", "--pool", pool, "--n", "8", "-o", str(batch), *ask]) == 0
    code, err = told(batch.name, batch.read_bytes())
    assert code == 2
    assert "no column 'label'" in err
    assert "confidence" in err
    batch.write_bytes(_labelled(batch))
    code, summary = told(batch.name, batch.read_bytes())
    assert (code, summary["applied"], summary["unanswered"]) == (0, 5, 3)


def _labelled(batch):
    """The batch with the first five rows answered, as a person with a script would."""
    if batch.suffix == ".jsonl":
        rows = [json.loads(line) for line in batch.read_text().splitlines()]
        assert set(rows[0]) == {
            "id", "position", "rank", "score", "pseudo_label", "confidence", "why", "reason"
        }  # fmt: skip
        for row in rows[:5]:
            row["label"] = "left"
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if batch.suffix == ".csv":
        head, *rest = batch.read_text().splitlines()
        lines = [f"{row},{'left' if place < 5 else ''}" for place, row in enumerate(rest)]
        return ("\r\n".join([f"{head},label", *lines]) + "\r\n").encode()
    table = pq.read_table(batch)
    table = table.append_column("label", pa.array(["left"] * 5 + [None] * (len(table) - 5)))
    pq.write_table(table, batch)
    return batch.read_bytes()


# Files

FAULTS = [
    ("a.csv", "", "it is empty; expected a header"),
    ("a.csv", "id,label\n", "no rows"),
    ("a.jsonl", "", "no rows"),
    ("a.json", "[]", "no rows"),
    ("a.json", "", "not JSON"),
    ("a.json", '{"item 1": "left"}', "expected a list of objects"),
    ("a.json", b"[\xff]", "not UTF-8"),
    ("a.csv", "item,label\nitem 1,left\n", "no column 'id' for the id; it has item, label"),
    ("a.csv", "id;label\nitem 1;left\n", "no column 'id' for the id; it has id;label"),
    ("a.csv", "id,class\nitem 1,left\n", "no column 'label'"),
    ("a.csv", "id,label,label\nitem 1,left,right\n", "2 columns 'label'; keep one"),
    ("a.csv", 'id,label\nitem 1,"left\nitem 2,right\n', "rows cannot be told apart"),
    ("a.csv", 'id,label\nitem 1,"le"ft\n', "line 2: rows cannot be told apart"),
    ("a.csv", "id,label\nitem 1,left\n".encode("utf-16"), "it is UTF-16; save it as UTF-8"),
    ("a.parquet", b"PAR1 not really PAR1", "cannot be read"),
    ("a.xlsx", b"PK", "expected .csv, .tsv, .jsonl, .json, .parquet, got '.xlsx'"),
    ("a", b"", "got ''"),
    ("a.jsonl", '{"id": "item 1"}\n', "no column 'label'"),
    ("a.csv", "item,class,class_id,confidence,model\nitem 1,left,0,1.0,1\n", "no column 'id'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), FAULTS)
def test_files_that_are_refused_whole(project, told, name, content, message):
    before = rows_of(project)
    code, err = told(name, content)
    assert code == 2
    assert message in err
    assert rows_of(project) == before


def test_files_that_are_not_there(project, capsys, tmp_path):
    for file in (tmp_path / "none.csv", tmp_path / "folder.csv"):
        (tmp_path / "folder.csv").mkdir(exist_ok=True)
        assert main(["ingest", str(file), "--project", str(project)]) == 2
        assert "no such file" in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("id,label\nitem 1,left\n")
    assert main(["ingest", str(tmp_path / "a.csv"), "--project", str(tmp_path / "p")]) == 2
    assert "is no labelling project" in capsys.readouterr().err.replace("\n", " ")


SOUND = '{"id": "item 2", "label": "left"}'
ROWS = [
    ("a.csv", b"id,label\ncaf\xe9,left\nitem 1,l\xe9ft\nitem 2,left\n",
     {"line 2": "the id is not UTF-8", "line 3": "the label is not UTF-8"}),
    ("a.csv", b"id,label,note\nitem 2,left,caf\xe9\n", {}),
    ("a.csv", b"\xef\xbb\xbfid,label\r\nitem 2,left\r\n\r\n", {}),
    ("a.csv", b"id,label\ritem 2,left\r", {}),
    ("a.csv", 'id,label\n"a ""b""\nc",left\n\nitem 1,left,more\nitem 1\nitem 2,left\n',
     {"line 2": "no such item", "line 5": "expected 2 cells, got 3", "line 6": "cells, got 1"}),
    ("a.csv", "id,label\n,left\nitem 1,\x00\nitem 2,left\n",
     {"line 2": "the id is empty", "line 3": "must be printable"}),
    ("a.csv", f"id,label\nitem 1,{'x' * 300_000}\nitem 2,left\n",
     {"line 2": "1 to 60 characters, got 300000"}),
    ("a.csv", "id,label\nitem 1,7.0\nitem 2,left\n", {"line 2": "no class '7.0'"}),
    ("a.csv", "id,label,skipped\nitem 1,left,yes\nitem 3,,maybe\nitem 2,left,0\n",
     {"line 2": "skipped and labelled 'left'", "line 3": "true or false, got maybe"}),
    ("a.csv", "id,label,time\nitem 1,left,noon\nitem 2,left,\n", {"line 2": "time must be like"}),
    ("a.csv", f"id,label,annotator\nitem 1,left,{'x' * 61}\nitem 2,left,\n",
     {"line 2": "annotator must have 1 to 60"}),
    ("a.tsv", "id\tlabel\nitem 2\tleft\nitem 1\tup, down\n", {"line 3": "no class 'up, down'"}),
    ("a.jsonl", b'{"id": "item 1", "label": \n{"id": "item 2", "label": "left"}\n[1]\nnull\n"x\xff"\n',
     {"line 1": "not JSON", "line 3": "expected an object", "line 4": "expected an object",
      "line 5": "not UTF-8"}),
    ("a.jsonl", f'{{"id": "item 1", "label": "left", "label": "right"}}\n{SOUND}',
     {"line 1": "a key is there twice"}),
    ("a.jsonl", "[" * 100_000 + f"\n{SOUND}", {"line 1": "not JSON"}),
    ("a.jsonl", f'{{"id": "item 1", "label": {"9" * 5000}}}\n{SOUND}',
     {"line 1": "not JSON"}),
    ("a.jsonl", '{"id": 1, "label": true}\n{"id": "item 1", "label": 1.5}\n'
     f'{{"id": "item 1", "label": []}}\n{SOUND}\n'
     '{"id": "item 1", "label": "\\ud800"}\n{"id": {}, "label": "left"}\n'
     '{"id": "item 1", "label": "left", "annotator": 1.5}\n{"id": "item 1", "label": 1}',
     {"line 1": "label must be a text", "line 2": "got 1.5", "line 3": "got []", "line 5": "not UTF-8",
      "line 6": "the id must be", "line 7": "the annotator must be", "line 8": "no class '1'"}),
    ("a.jsonl", "nonsense\n\n", {"line 1": "not JSON"}),
    ("a.json", '[{"id": "item 2", "label": "left"}, 3]', {"entry 2": "expected an object"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), ROWS)
def test_rows_that_are_refused_alone(project, told, name, content, expected):
    code, summary = told(name, content)
    refusals = reasons(summary)
    assert refusals.keys() == expected.keys()
    for where, message in expected.items():
        assert message in refusals[where]
    assert code == (4 if expected else 0)
    sound = [] if content == "nonsense\n\n" else ["item 2"]
    assert [item for item, _ in standing(project)] == sound


def test_parquet_of_other_types(project, told, tmp_path):
    def parquet(**columns):
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        return (tmp_path / "t.parquet").read_bytes()

    moment = datetime(2024, 5, 1, 12)
    code, summary = told(
        "a.parquet",
        parquet(
            id=["item 1", "item 2", None],
            label=pa.array(["left", None, "left"]).dictionary_encode(),
            time=pa.array([moment] * 3, pa.timestamp("ns")),
            other=[[1], [2], [3]],
        ),
    )
    assert (code, summary["applied"], summary["unanswered"]) == (4, 1, 1)
    assert reasons(summary) == {"row 3": "the id is empty"}
    with ProjectStore.open(project) as store:
        assert store.answers()[0]["time"] == "2024-05-01T12:00:00.000+00:00"
    bad = pa.StringArray.from_buffers(
        2, pa.array([0, 6, 8], pa.int32()).buffers()[1], pa.py_buffer(b"item 3\xff\xfe")
    )
    summary = told("a.parquet", parquet(id=bad, label=["left", "left"]))[1]
    assert reasons(summary) == {"row 2": "the id is not UTF-8; save the file as UTF-8"}
    summary = told("a.parquet", parquet(id=["item 4", "item 5"], label=[1.0, float("nan")]))[1]
    assert "got 1.0" in reasons(summary)["row 1"]
    assert summary["unanswered"] == 1
    assert len(standing(project)) == 2


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1)
names = texts.filter(lambda text: text.strip())
given_rows = st.lists(st.tuples(texts, names, names), min_size=1, max_size=8)


@settings(deadline=None)
@given(given_rows, st.sampled_from(["csv", "tsv", "jsonl", "json", "parquet"]))
def test_what_was_written_is_read(rows, ending):
    with TemporaryDirectory() as folder:
        file = Path(folder, f"a.{ending}")
        keys = ("id", "label", "annotator")
        objects = [dict(zip(keys, row, strict=True)) for row in rows]
        if ending in ("csv", "tsv"):
            with file.open("w", newline="", encoding="utf-8") as out:
                writer = csv.writer(out, delimiter="\t" if ending == "tsv" else ",")
                writer.writerows([keys, *rows])
        elif ending == "parquet":
            pq.write_table(pa.Table.from_pylist(objects), file)
        else:
            lines = "\n".join(map(json.dumps, objects))
            file.write_text(lines if ending == "jsonl" else json.dumps(objects))
        answer_file = read_answers(file, "me")
    assert [answer.where.split()[0] for answer in answer_file.answers] == [
        {"json": "entry", "parquet": "row"}.get(ending, "line")
    ] * len(rows)
    assert [(a.item, a.label, a.annotator) for a in answer_file.answers] == [
        (item, label.strip(), who.strip()) for item, label, who in rows
    ]


@settings(deadline=None)
@given(
    st.binary(max_size=60)
    | st.text('id,label\n"{}[]:item 1left;\x00\r', max_size=60).map(str.encode),
    st.sampled_from(["csv", "tsv", "jsonl", "json", "parquet"]),
)
@example(b"id,label\n\xff\xfe,\xff", "csv")
def test_no_bytes_bring_it_down(content, ending):
    with TemporaryDirectory() as folder:
        for start in (b"", b"id,label\n", b'{"id":"item 1","label":"left"}\n'):
            file = Path(folder, f"a.{ending}")
            file.write_bytes(start + content)
            try:
                answer_file = read_answers(file, "me")
            except DataError as error:
                str(error).encode()  # it can be shown
                continue
            assert answer_file.answers or answer_file.left or answer_file.refused
            for refusal in answer_file.refused:
                assert all(part.isprintable() for part in refusal)
            for answer in answer_file.answers:
                assert answer.item
                assert answer.label is None or answer.label.strip() == answer.label != ""


def test_as_a_process_with_a_narrow_terminal(project, tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"id,label\n\x1b[31mred\xff,left\nitem 1,left\n")
    child = subprocess.run(
        [sys.executable, "-m", "askance", "ingest", str(file), "--project", str(project)],
        capture_output=True,
        env={"PYTHONPATH": ":".join(sys.path), "LC_ALL": "C", "PYTHONUTF8": "0", "COLUMNS": "60"},
    )
    assert child.returncode == 4, child.stderr.decode()
    assert b"1 applied" in child.stdout
    assert b"\x1b" not in child.stdout
    assert b"Traceback" not in child.stderr
