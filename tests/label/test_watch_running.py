"""Data that changes while a table is served, a model trained, a process at work, a browser open."""

import threading
import time

import pytest

from askance.errors import StoreError
from askance.label import ItemSource, load, watch
from tests.browser import needs_browser
from tests.label import person
from tests.label.changing import (
    SHADES,
    add,
    ann_of,
    choice,
    light,
    looked,
    put,
    right,
    trained_again,
)
from tests.label.worlds import Person, client_of, features_file


@pytest.fixture
def session(start, root):
    return start(root, SHADES)


def test_rows_of_a_table(tmp_path, start):
    table = tmp_path / "said.csv"
    rows = [f"k{i},a {['good', 'bad'][i % 2]} film of {i} minutes" for i in range(30)]

    def write(rows):
        table.write_text("\n".join(["key,said", *rows]) + "\n")

    write(rows)
    session = start(ItemSource(table, text="said", id="key"), SHADES)
    ann = Person(client_of(session))
    ann.choice = lambda question: int("bad" in question["text"])
    trained_again(session, ann)
    texts = {item: session.items.text(item) for item in session.annotations.answers}
    edited = next(item for item in session.training.trained_labels)
    kept = [row for row in reversed(rows) if not row.startswith(f"{edited},")]
    write([f"{edited},quite another text", *kept, "k99,a good film of 99 minutes"])
    state = looked(session)
    assert state["changes"] | {"new": 1, "missing": 0, "changed": 1} == state["changes"]
    assert edited not in session.items.position
    here = [item for item in texts if item != edited]
    assert {item: session.items.text(item) for item in here} == {i: texts[i] for i in here}
    while ann.work(1, session):
        assert session.training.error is None
    assert "k99" in session.annotations.answers
    assert edited not in session.training.trained_labels
    write([row.replace("k", "row ") for row in rows])
    assert "project of other data" in looked(session)["changes"]["trouble"]
    table.write_text("key,text\nk1,one\n")
    assert "no column 'said'" in looked(session)["changes"]["trouble"]


def test_vectors_that_were_all_made_anew_are_other_data(tmp_path, start):
    """Answers were to what the old vectors showed; none of them is there."""
    session = start()
    ann = Person(client_of(session))
    ann.work(6, session)
    features_file(tmp_path, seed=1)
    state = looked(session)
    assert "none of its 60 items are in" in state["changes"]["trouble"]
    assert len(session.store.items()) == state["total"] == 60
    session.close()
    with pytest.raises(StoreError, match="project of other data"):
        start()


def test_a_row_put_before_the_others_moves_no_answer(tmp_path, start):
    table = tmp_path / "said.csv"
    rows = [f"a {['good', 'bad'][i % 2]} film of {i} minutes" for i in range(30)]
    table.write_text("\n".join(["said", *rows]) + "\n")
    session = start(ItemSource(table, text="said"), SHADES)
    ann = Person(client_of(session))
    ann.choice = lambda question: int("bad" in question["text"])
    ann.work(8, session)
    texts = {item: session.items.text(item) for item in session.annotations.answers}
    table.write_text("\n".join(["said", "a good film before all", *rows]) + "\n")
    state = looked(session)
    assert state["changes"] | {"new": 1, "missing": 0, "renamed": 30} == state["changes"]
    assert {item: session.items.text(item) for item in texts} == texts
    trained_again(session, ann)


def test_a_change_during_a_training(root, held, start):
    """What comes of the training is of the items that it was given."""
    began, go_on = held
    session = start(root, SHADES, held_out=0, ahead=0, epochs=40, learning_rate=0.05)
    ann = ann_of(session)
    for _ in range(5):
        ann.answer(ann.ask()["questions"][0])
    assert began.wait(30)
    free = [item for item in session.items.ids if item not in session.annotations.asked]
    for item in free[:-2]:
        (root / item).unlink()
    put(root, "a.png", 500, 0)
    looked(session)
    assert len(session.items) == 5 + 2 + 1
    go_on.set()
    session.scheduler.wait(1)
    assert right(session) == 1.0
    assert {pick.item for pick in session.training.picks} <= set(session.items.ids)


def test_reading_the_data_again_keeps_nobody_waiting(session, root, pause):
    ann = ann_of(session)
    began, go_on = pause(watch, "read")
    add(root, 900)
    looking = threading.Thread(target=looked, args=(session,))
    looking.start()
    assert began.wait(30)
    for _ in range(4):  # no training comes between
        assert ann.answer(ann.ask()["questions"][0]).status_code == 200
    assert ann.state()["answers"] == 4
    go_on.set()
    looking.join(30)
    assert "n900.png" in session.items.position


def test_nothing_is_read_where_nothing_changed(session, monkeypatch):
    monkeypatch.setattr(watch, "read", lambda *_: pytest.fail("the data was read again"))
    revision = session.revision
    for _ in range(3):
        session.watch.look()
    assert session.revision == revision


def test_new_items_that_cannot_be_stored_are_tried_again(session, root, monkeypatch):
    add(root, 900)
    with monkeypatch.context() as patched:

        def full(_):
            raise StoreError("the disk is full")

        patched.setattr(session.store, "add", full)
        assert looked(session)["changes"]["trouble"] == "the disk is full"
        assert "n900.png" not in session.items.position
    session.watch.look()
    assert "n900.png" in session.items.position
    assert ann_of(session).state()["changes"]["trouble"] is None


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def test_files_that_move_while_a_process_trains(root, monkeypatch, start):
    """The process beside, the thread that looks, and files that are renamed, added and deleted."""
    monkeypatch.setattr(watch, "PAUSE", 0.05)
    training = {"worker": "beside", "held_out": 0, "epochs": 40, "learning_rate": 0.05}
    session = start(root, SHADES, repeat=0, **training)
    ann = ann_of(session)

    def round_of_answers():
        version = len(session.versions)
        for _ in range(10):
            until(lambda: ann.ask()["questions"])
            ann.answer(ann.ask()["questions"][0])
        until(lambda: len(session.versions) > version or session.training.error)
        until(
            lambda: (
                session.training.error or (not session.training.running and session.scheduler.idle)
            )
        )
        assert session.training.error is None

    round_of_answers()
    assert right(session) == 1.0
    # Each of these moves the rows of all others by one, there or back again.
    (root / "n000.png").rename(root / "zzz.png")
    put(root, "a00.png", 900, 0)
    put(root, "a01.png", 901, 0)
    gone = next(
        item
        for item in session.items.ids
        if item not in session.annotations.asked and item > "n001"
    )
    (root / gone).unlink()
    until(lambda: ann.state()["changes"]["text"])
    until(lambda: "zzz.png" in session.items.names and "a01.png" in session.items.position)
    ann.choice = lambda question: 0 if question["item"][0] == "a" else choice(question)
    round_of_answers()
    assert right(session) == 1.0
    assert ann.state()["changes"]["text"] == (
        "The data has changed: 2 new items found, 1 item is missing, 1 item has another "
        "name or place now and keeps its answers. Answers about missing items are kept."
    )
    files = sorted(file for file in root.iterdir() if file.name.startswith("n"))
    names, _ = load(session.scheduler.model_file).predict(files)
    assert names == [SHADES[light(int(file.name[1:4]))] for file in files]


@needs_browser
def test_the_page_says_what_became_of_the_data(tmp_path, root, context, monkeypatch):
    monkeypatch.setattr(watch, "PAUSE", 0.05)
    with person.page_of(tmp_path / "project", root, SHADES, worker="here") as (url, _):
        ada = person.Person(context, url).arrive()
        assert ada.page.locator("#data-news").is_hidden()
        first = ada.item()
        other = next(file for file in sorted(root.iterdir()) if file.name != first)
        other.unlink()
        for i in range(3):
            add(root, 900 + i)
        ada.until(
            "() => document.querySelector('#data-news-words').textContent.includes("
            "'3 new items found, 1 item is missing')"
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
