"""Projects and their data: what is refused, what is reported, what is kept."""

import csv
import hashlib
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest
from PIL import Image

from askance.errors import DataError, InputError, StoreError, UnknownError
from askance.label import ItemSource, LabelingOptions, open_session
from askance.label.guesses import ModelGuesses
from askance.label.items import read
from askance.label.project import ItemSplit, OtherClassesError
from askance.label.store import FILE, ProjectStore
from askance.label.watch import DataWatcher
from tests.label.worlds import (
    Person,
    client_of,
    features_file,
    images_folder,
    options,
    token,
)


def test_no_classes(tmp_path, start):
    for classes in ((), ("one",), ("a", "A")):
        with pytest.raises(InputError, match="classes"):
            start(features_file(tmp_path), classes)
    start().close()  # nothing was left locked or half made


def test_a_device_that_is_not_there_leaves_nothing_locked(start):
    with pytest.raises(InputError, match="cuda:99"):
        start(device="cuda:99")
    start()


def test_a_thread_that_cannot_start_leaves_nothing_locked_or_running(start, monkeypatch):
    def failing(self):
        raise RuntimeError("can't start new thread")

    running = set(threading.enumerate())
    with monkeypatch.context() as patch:
        patch.setattr(DataWatcher, "start", failing)
        with pytest.raises(RuntimeError, match="can't start"):
            start()
    assert set(threading.enumerate()) == running  # the thread that trains has ended
    start()


def test_a_class_is_added_once_in_whatever_capitals(start):
    session = start()
    folder, source = session.folder, session.items.source
    session.close()
    classes = ["LEFT", "Up", "up"]
    session = open_session(folder, source, classes, options(), add_classes=True)
    assert [each.name for each in session.annotations.classes] == ["left", "right", "Up"]
    session.close()


def test_a_typing_error_makes_no_class(tmp_path, start):
    start().close()
    told = "classes left, right; --classes also names 'lefft' .did you mean 'left'.*--add-classes"
    with pytest.raises(OtherClassesError, match=told):
        start(classes=["lefft", "right"])
    with pytest.raises(OtherClassesError, match=r"'up', 'down'.*if they are to be new"):
        start(classes=["left", "up", "down"])
    session = start(classes=["RIGHT"])
    assert [each.name for each in session.annotations.classes] == ["left", "right"]


def test_a_project_of_other_data(tmp_path, start):
    start().close()
    with pytest.raises(StoreError, match="kind 'features', now 'image'"):
        start(images_folder(tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    source = features_file(other)
    with pytest.raises(StoreError, match="project of other data: none of its 60"):
        start(ItemSource(source.path, features="vector"), ())
    with pytest.raises(StoreError, match=r"must not change: use --held-out 0\.2"):
        start(held_out=0.3)
    with pytest.raises(StoreError, match="seed 0, now 1"):
        start(seed=1)


def test_rows_that_moved_under_their_numbers_keep_their_answers(tmp_path, start):
    table = tmp_path / "t.csv"
    rows = [f"text number {i}\n" for i in range(20)]
    table.write_text("said\n" + "".join(rows))
    source = ItemSource(table, text="said")
    session = start(source)
    for question in session.questions("ann", 3)[0]:
        session.answer(question.id, 0, "ann", token())
    answered = {item: session.items.text(item) for item in session.annotations.answers}
    session.close()
    edited, *kept = answered
    moved = [row for row in reversed(rows) if row.strip() != answered[edited]]
    table.write_text("said\n" + "".join(moved) + "another text\n")
    session = start(source, ())
    assert {item: session.items.text(item) for item in kept} == {i: answered[i] for i in kept}
    assert edited not in session.items.position
    assert list(session.annotations.answers) == [edited, *kept]
    state = Person(client_of(session)).state()
    assert state["changes"]["text"].startswith("The data has changed: 1 new item found, 1 item is")


def test_items_that_come_and_go(tmp_path, start):
    root = images_folder(tmp_path)
    session = start(root)
    ann = Person(client_of(session))
    question = ann.ask()["questions"][0]
    ann.answer(question, 1)
    session.close()
    (root / question["item"]).unlink()
    Image.new("RGB", (40, 30), (0, 255, 0)).save(root / "new.png")
    session = start(root, ())
    ann = Person(client_of(session))
    state = ann.state()
    changes = state["changes"]
    assert changes | {"new": 1, "missing": 1, "unreadable": 0} == changes
    assert (changes["changed"], changes["renamed"], changes["trouble"]) == (0, 0, None)
    assert state["answers"] == 1
    history = ann.client.get(f"/api/items/{question['item']}").json()
    assert history["missing"] is True
    assert history["answers"][0]["class"] == 1


def test_one_server_a_project(start):
    session = start()
    with pytest.raises(StoreError, match="being written by this process"):
        start()
    session.close()
    start().close()


def test_nothing_is_ever_changed(start):
    session = start()
    session.answer(session.questions("ann", 1)[0][0].id, 0, "ann", token())
    for sql in ("DELETE FROM event", "UPDATE event SET class = 1", "DELETE FROM question"):
        with pytest.raises(Exception, match="append-only"):
            session.store._db.execute(sql)


def test_two_models_are_kept_and_nothing_half_written(tmp_path, start):
    models = tmp_path / "project" / "models"
    models.mkdir(parents=True)
    (models / ".model-00001.safetensors.1234.part").write_bytes(
        b"half"
    )  # of a server that was killed
    session = start()
    for version in (1, 2, 3):
        for question in session.questions("ann", 8)[0]:
            session.answer(question.id, 0 if question.item < "item 3" else 1, "ann", token())
        session.scheduler.wait(version)
    last = len(session.versions)
    session.close()
    wanted = {f"model-{v:05d}.{end}" for v in (last - 1, last) for end in ("npz", "safetensors")}
    assert {path.name for path in models.iterdir()} == wanted


def test_another_applications_file(tmp_path):
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(StoreError, match="another application, not a labelling project"):
        ProjectStore.open(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / FILE).write_bytes(b"no database at all, only words" * 10)
    with pytest.raises(StoreError, match="no askance store"):
        ProjectStore.open(tmp_path / "b")


def test_a_newer_projects_file(tmp_path, start):
    start().close()
    with sqlite3.connect(tmp_path / "project" / FILE) as db:
        db.execute("PRAGMA user_version = 6")
    db.close()
    with pytest.raises(
        StoreError, match=r"version 6 of a labelling project's tables .* 2, 3, 4 and 5"
    ):
        ProjectStore.open(tmp_path / "project")


def test_an_items_lot_does_not_depend_on_the_others(tmp_path):
    source = features_file(tmp_path, 200)
    items = read(source)
    split = ItemSplit.of(items, options())
    assert 20 <= len(split.held_out) <= 60
    fewer = replace(items, ids=items.ids[:100], features=items.features[:100])
    some = ItemSplit.of(fewer, options())
    assert set(some.held_out) == set(split.held_out) & set(fewer.ids)
    assert ItemSplit.of(items, options(seed=1)).held_out != split.held_out
    assert ItemSplit.of(items, options(held_out=0)).held_out == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 0}, "batch must be"),
        ({"held_out": 1.0}, "held-out must be"),
        ({"repeat": -0.1}, "repeat must be"),
        ({"learning_rate": 0}, "learning-rate"),
        ({"first": "best"}, "unknown first 'best'"),
        ({"strategy": "powergard"}, "powergrad"),
    ],
)
def test_options_are_checked(change, message):
    with pytest.raises((InputError, UnknownError), match=message):
        LabelingOptions(**change)


@pytest.mark.parametrize(
    ("content", "source", "message"),
    [
        ("a,b\n1,2\n", {}, "name the column of texts with --text"),
        ("a,b\nx,y\n", {"text": "c"}, "no column 'c'; it has a, b"),
        ("a,b\nx,y\nx,z\n", {"text": "b", "id": "a"}, "names 'x' twice"),
        ("a,b\n1,2\n", {"features": "a"}, "lists of numbers"),
        ("a\n", {"text": "a"}, "no rows"),
    ],
)
def test_tables_that_cannot_be_labelled(tmp_path, content, source, message, start):
    table = tmp_path / "t.csv"
    table.write_text(content)
    with pytest.raises(DataError, match=message):
        start(ItemSource(table, **source))


def test_folders_that_cannot_be_labelled(tmp_path, start):
    with pytest.raises(DataError, match="no such folder or file"):
        start(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no images in it"):
        start(tmp_path / "empty")
    with pytest.raises(DataError, match="--text is for tables"):
        start(ItemSource(tmp_path, text="x"))


def test_a_failing_model_is_told_and_answering_goes_on(tmp_path, monkeypatch, start):
    (tmp_path / "badnet.py").write_text(
        "def make(shape, classes):\n    raise RuntimeError('no such luck')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    session = start(model="badnet:make", held_out=0)
    ann = Person(client_of(session))
    for _ in range(6):
        assert ann.answer(ann.ask()["questions"][0]).status_code == 200
    for _ in range(200):
        if session.training.error:
            break
        time.sleep(0.01)
    assert "no such luck" in ann.state()["model"]["error"]
    assert ann.answer(ann.ask()["questions"][0]).status_code == 200


def test_damaged_guesses_are_left_out_and_made_again(tmp_path, start):
    session = start(held_out=0)
    ann = Person(client_of(session))
    for question in ann.ask(5)["questions"]:
        ann.answer(question)
    session.scheduler.wait(1)
    session.close()
    (path,) = (tmp_path / "project" / "models").glob("*.npz")
    content = path.read_bytes()
    for cut in (0, 1, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        session = start(held_out=0)
        assert session.training.guesses is None
        assert Person(client_of(session)).state()["model"]["version"] == 1
        session.close()
    for place in range(0, len(content), max(1, len(content) // 40)):
        changed = bytearray(content)
        changed[place] ^= 0x55
        path.write_bytes(bytes(changed))
        ModelGuesses.load(path, 1)
    session = start(held_out=0)
    ann = Person(client_of(session))
    for question in ann.ask(5)["questions"]:
        ann.answer(question)
    session.scheduler.wait(2)
    assert session.training.guesses is not None


def test_a_replay_of_an_answer_that_was_taken_back_says_so(start):
    ann = Person(client_of(start()))
    question = ann.ask()["questions"][0]
    first = ann.answer(question, 0, key="the-same-token").json()
    assert (first["duplicate"], first["undone"]) == (False, False)
    assert ann.answer(question, 0, key="the-same-token").json()["undone"] is False
    ann.client.post("/api/undo", json={"annotator": "ann", "token": token()})
    again = ann.answer(question, 0, key="the-same-token").json()
    assert (again["duplicate"], again["undone"]) == (True, True)
    assert ann.state()["answers"] == 0


def test_formulas_are_quoted_on_request(tmp_path, start):
    (tmp_path / "t.csv").write_text('key,said\n"=1+1",a\n"@x",b\nplain,c\n', encoding="utf-8")
    source = ItemSource(tmp_path / "t.csv", text="said", id="key")
    ann = Person(client_of(start(source, held_out=0)), "-ann")
    for question in ann.ask(3)["questions"]:
        ann.answer(question, 0)

    def cells(**more):
        reply = ann.client.get("/api/export/answers", params={"format": "csv", **more})
        return {row["item"]: row["annotator"] for row in csv.DictReader(reply.text.splitlines())}

    assert cells() == dict.fromkeys(["=1+1", "@x", "plain"], "-ann")
    assert cells(spreadsheet=True) == dict.fromkeys(["'=1+1", "'@x", "plain"], "'-ann")


def test_a_full_disk_acknowledges_nothing_and_loses_nothing(start):
    session = start(held_out=0, batch=50)
    ann = Person(client_of(session))
    pages = session.store._query("PRAGMA page_count")[0][0]
    session.store._db.execute(f"PRAGMA max_page_count = {pages}")
    kept, refused = 0, None
    questions = []
    while refused is None:
        if not questions:
            reply = ann.client.get("/api/questions", params={"annotator": "ann", "n": 1})
            if reply.status_code == 503:
                refused = reply
                break
            questions = reply.json()["questions"]
        key = f"full-disk-{kept:04d}"
        reply = ann.answer(questions[0], 0, key=key)
        if reply.status_code == 503:
            refused = reply
        else:
            questions.pop()
            kept += 1
    assert "is full" in refused.json()["error"]["message"]
    assert "not kept" in refused.json()["error"]["message"]
    assert ann.state()["answers"] == kept == len(session.store.answers())
    session.store._db.execute("PRAGMA max_page_count = 1000000")
    for _ in range(3):
        assert ann.answer(ann.ask()["questions"][0], 0).status_code == 200
    assert len(session.store.answers()) == kept + 3


def test_ids_are_kept_as_they_are_written(tmp_path):
    (tmp_path / "mails.csv").write_text("key,body\n001,one\n1,two\n1e3,three\n", encoding="utf-8")
    items = read(ItemSource(tmp_path / "mails.csv", text="body", id="key"))
    assert items.ids == ["001", "1", "1e3"]


def test_texts_may_be_numbers(tmp_path):
    (tmp_path / "codes.csv").write_text("body\n007\n3.50\n2024-01-01\n", encoding="utf-8")
    assert read(ItemSource(tmp_path / "codes.csv", text="body")).texts == [
        "007",
        "3.50",
        "2024-01-01",
    ]


def test_the_tables_are_those_of_every_project_of_this_version(tmp_path, start):
    def digest():
        with closing(sqlite3.connect(tmp_path / "project" / FILE)) as db:
            made = db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
            tables = "\n".join(" ".join(sql.split()) for (sql,) in made)
        return hashlib.blake2b(tables.encode(), digest_size=6).hexdigest()

    start().close()
    assert digest() == "720ccd427d74"
    for version, table, tables in (
        (4, "class_edit", "4135fc6cfc8c"),
        (3, "event_group", "d32e47e4b1ec"),
        (2, "encoder", "bdfbb9088a42"),
    ):
        with closing(sqlite3.connect(tmp_path / "project" / FILE)) as db:
            db.execute(f"DROP TABLE {table}")
            db.execute(f"PRAGMA user_version = {version}")
        assert digest() == tables  # of that version
    start().close()
    assert digest() == "720ccd427d74"  # brought to this one
