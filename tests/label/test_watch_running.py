"""Data that changes while a table is served, a model trained, a process at work, a browser open."""

import threading
import time

import pytest

from askance.errors import StoreError
from askance.label import Options, Source, load, open_desk, watch
from askance.label.server import serving
from askance.label.worker import Here
from tests.browser import needs_browser
from tests.label import person
from tests.label.changing import (
    add,
    ann_of,
    choice,
    light,
    looked,
    opened,
    photos,
    put,
    right,
    trained_again,
)
from tests.label.worlds import Person, client_of, features_file, open_features


@pytest.fixture
def root(tmp_path):
    return photos(tmp_path)


@pytest.fixture
def desk(tmp_path, root):
    desk = opened(tmp_path, root)
    yield desk
    desk.close()


@pytest.fixture
def desk_of_features(tmp_path):
    desk = open_features(tmp_path)
    yield desk
    desk.close()


def test_rows_of_a_table(tmp_path):
    table = tmp_path / "said.csv"
    rows = [f"k{i},a {['good', 'bad'][i % 2]} film of {i} minutes" for i in range(30)]

    def write(rows):
        table.write_text("\n".join(["key,said", *rows]) + "\n")

    write(rows)
    desk = opened(tmp_path, Source(table, text="said", id="key"))
    ann = Person(client_of(desk))
    ann.choice = lambda question: int("bad" in question["text"])
    trained_again(desk, ann)
    texts = {item: desk.items.text(item) for item in desk.book.answers}
    edited = next(item for item in desk.rounds._trained)
    kept = [row for row in reversed(rows) if not row.startswith(f"{edited},")]
    write([f"{edited},quite another text", *kept, "k99,a good film of 99 minutes"])
    state = looked(desk)
    assert state["changes"] | {"new": 1, "missing": 0, "changed": 1} == state["changes"]
    assert edited not in desk.items.position
    here = [item for item in texts if item != edited]
    assert {item: desk.items.text(item) for item in here} == {i: texts[i] for i in here}
    while ann.work(1, desk):
        assert desk.rounds.error is None
    assert "k99" in desk.book.answers
    assert edited not in desk.rounds._trained
    write([row.replace("k", "row ") for row in rows])
    assert "project of other data" in looked(desk)["changes"]["trouble"]
    table.write_text("key,text\nk1,one\n")
    assert "no column 'said'" in looked(desk)["changes"]["trouble"]
    desk.close()


def test_vectors_that_were_all_made_anew_are_other_data(desk_of_features, tmp_path):
    """Answers were to what the old vectors showed; none of them is there."""
    ann = Person(client_of(desk_of_features))
    ann.work(6, desk_of_features)
    features_file(tmp_path, seed=1)
    state = looked(desk_of_features)
    assert "none of its 60 items are in" in state["changes"]["trouble"]
    assert len(desk_of_features.store.items()) == state["total"] == 60
    desk_of_features.close()
    with pytest.raises(StoreError, match="project of other data"):
        open_features(tmp_path)


def test_a_row_put_before_the_others_moves_no_answer(tmp_path):
    table = tmp_path / "said.csv"
    rows = [f"a {['good', 'bad'][i % 2]} film of {i} minutes" for i in range(30)]
    table.write_text("\n".join(["said", *rows]) + "\n")
    desk = opened(tmp_path, Source(table, text="said"))
    ann = Person(client_of(desk))
    ann.choice = lambda question: int("bad" in question["text"])
    ann.work(8, desk)
    texts = {item: desk.items.text(item) for item in desk.book.answers}
    table.write_text("\n".join(["said", "a good film before all", *rows]) + "\n")
    state = looked(desk)
    assert state["changes"] | {"new": 1, "missing": 0, "renamed": 30} == state["changes"]
    assert {item: desk.items.text(item) for item in texts} == texts
    trained_again(desk, ann)
    desk.close()


def test_a_change_during_a_training(tmp_path, root, monkeypatch):
    """What comes of the training is of the items that it was given."""
    began, go_on = threading.Event(), threading.Event()
    learn = Here.learn

    def slow(self, task):
        began.set()
        assert go_on.wait(30)
        return learn(self, task)

    monkeypatch.setattr(Here, "learn", slow)
    desk = opened(tmp_path, root, held_out=0, ahead=0, epochs=40, learning_rate=0.05)
    ann = ann_of(desk)
    for _ in range(5):
        ann.answer(ann.ask()["questions"][0])
    assert began.wait(30)
    free = [item for item in desk.items.ids if item not in desk.book.asked]
    for item in free[:-2]:
        (root / item).unlink()
    put(root, "a.png", 500, 0)
    looked(desk)
    assert len(desk.items) == 5 + 2 + 1
    go_on.set()
    desk.rounds.wait(1)
    assert right(desk) == 1.0
    assert {pick.item for pick in desk.rounds._queue} <= set(desk.items.ids)
    desk.close()


def test_reading_the_data_again_keeps_nobody_waiting(desk, root, monkeypatch):
    ann = ann_of(desk)
    began, go_on = threading.Event(), threading.Event()
    read = watch.read

    def slow(source, digests):
        began.set()
        assert go_on.wait(30)
        return read(source, digests)

    monkeypatch.setattr(watch, "read", slow)
    add(root, 900)
    looking = threading.Thread(target=looked, args=(desk,))
    looking.start()
    assert began.wait(30)
    for _ in range(4):  # no training comes between
        assert ann.answer(ann.ask()["questions"][0]).status_code == 200
    assert ann.state()["answers"] == 4
    go_on.set()
    looking.join(30)
    assert "n900.png" in desk.items.position


def test_nothing_is_read_where_nothing_changed(desk, monkeypatch):
    monkeypatch.setattr(watch, "read", lambda *_: pytest.fail("the data was read again"))
    stamp = desk.stamp
    for _ in range(3):
        desk.watch.look()
    assert desk.stamp == stamp


def test_new_items_that_cannot_be_stored_are_tried_again(desk, root, monkeypatch):
    add(root, 900)
    with monkeypatch.context() as patched:

        def full(_):
            raise StoreError("the disk is full")

        patched.setattr(desk.store, "add_items", full)
        assert looked(desk)["changes"]["trouble"] == "the disk is full"
        assert "n900.png" not in desk.items.position
    desk.watch.look()
    assert "n900.png" in desk.items.position
    assert ann_of(desk).state()["changes"]["trouble"] is None


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def test_files_that_move_while_a_process_trains(tmp_path, root, monkeypatch):
    """The process beside, the thread that looks, and files that are renamed, added and deleted."""
    monkeypatch.setattr(watch, "PAUSE", 0.05)
    desk = opened(
        tmp_path, root, worker="beside", held_out=0, epochs=40, learning_rate=0.05, repeat=0
    )
    ann = ann_of(desk)

    def round_of_answers():
        version = len(desk.versions)
        for _ in range(10):
            until(lambda: ann.ask()["questions"])
            ann.answer(ann.ask()["questions"][0])
        until(lambda: len(desk.versions) > version or desk.rounds.error)
        until(lambda: desk.rounds.error or (not desk.rounds.training and not desk.rounds._due()))
        assert desk.rounds.error is None

    round_of_answers()
    assert right(desk) == 1.0
    # Each of these moves the rows of all others by one, there or back again.
    (root / "n000.png").rename(root / "zzz.png")
    put(root, "a00.png", 900, 0)
    put(root, "a01.png", 901, 0)
    gone = next(item for item in desk.items.ids if item not in desk.book.asked and item > "n001")
    (root / gone).unlink()
    until(lambda: ann.state()["changes"]["text"])
    until(lambda: "zzz.png" in desk.items.names and "a01.png" in desk.items.position)
    ann.choice = lambda question: 0 if question["item"][0] == "a" else choice(question)
    round_of_answers()
    assert right(desk) == 1.0
    assert ann.state()["changes"]["text"] == (
        "The data has changed: 2 new items found, 1 item is missing and set aside, 1 item has another "
        "name or place now and keeps its answers. Answers about what is set aside are kept."
    )
    files = sorted(file for file in root.iterdir() if file.name.startswith("n"))
    names, _ = load(desk.rounds.model_file).predict(files)
    assert names == [["dark", "light"][light(int(file.name[1:4]))] for file in files]
    desk.close()


@needs_browser
def test_the_page_says_what_became_of_the_data(tmp_path, root, context, monkeypatch):
    monkeypatch.setattr(watch, "PAUSE", 0.05)
    desk = open_desk(tmp_path / "project", root, ["dark", "light"], Options(worker="here"))
    with serving(desk, port=0) as url:
        ada = person.Person(context, url).arrive()
        assert ada.page.locator("#data-news").is_hidden()
        first = ada.item()
        other = next(file for file in sorted(root.iterdir()) if file.name != first)
        other.unlink()
        for i in range(3):
            add(root, 900 + i)
        ada.until(
            "() => document.querySelector('#data-news-words').textContent.includes("
            "'3 new items found, 1 item is missing and set aside')"
        )
        assert ada.page.locator("#data-news").is_visible()
        ada.page.keyboard.press("1")  # answering goes on
        ada.all_saved()
        ada.page.click("#data-news-close")
        ada.page.reload()
        ada.until("() => document.querySelector('#stage').dataset.item")
        assert ada.page.locator("#data-news").is_hidden()
        assert "3 new items found" in ada.page.inner_text("#data-words")
        assert ada.seen == []
    desk.close()
