"""A project whose files are deleted, moved, replaced or emptied, under a running server or before."""

import shutil
import sqlite3

import pytest

from askance.errors import StoreError
from askance.label.store import FILE, ProjectStore
from tests.label.worlds import Person, client_of

LOG = f"{FILE}-wal"


def delete(path):
    path.unlink()


def replace_by_a_copy(path):
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.replace(path)


def move_away(path):
    path.rename(path.with_name("elsewhere"))


def rename_the_folder(path):
    path.parent.rename(path.parent.with_name("renamed"))


@pytest.mark.parametrize("name", [FILE, LOG])
@pytest.mark.parametrize("lose", [delete, replace_by_a_copy, move_away, rename_the_folder])
def test_nothing_is_acknowledged_that_would_be_lost(start, tmp_path, name, lose):
    session = start(held_out=0, batch=50)
    ann = Person(client_of(session))
    first, second = ann.ask(2)["questions"]
    assert ann.answer(first, 0).status_code == 200
    lose(tmp_path / "project" / name)
    reply = ann.answer(second, 0)
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "unavailable")
    assert "nothing more can be kept" in reply.json()["error"]["message"]
    state = ann.state()
    assert name in state["store_trouble"] or lose is rename_the_folder
    assert state["answers"] == 1
    assert (
        ann.client.post("/api/undo", json={"annotator": "ann", "token": "x" * 9}).status_code == 503
    )
    # What was said before can still be saved.
    export = ann.client.get("/api/export/answers", params={"format": "jsonl"})
    assert len(export.text.splitlines()) == 1


def test_what_was_moved_may_be_moved_back(start, tmp_path):
    session = start(held_out=0, batch=50)
    ann = Person(client_of(session))
    question = ann.ask()["questions"][0]
    (tmp_path / "project").rename(tmp_path / "renamed")
    assert ann.answer(question, 0).status_code == 503
    (tmp_path / "renamed").rename(tmp_path / "project")
    assert ann.answer(question, 0).status_code == 200
    assert ann.state()["store_trouble"] is None
    session.close()
    with ProjectStore.open(tmp_path / "project") as store:
        assert len(store.answers()) == 1


def test_a_store_deleted_within_a_commit_acknowledges_nothing(start, tmp_path, monkeypatch):
    """After the first look at the files, before the commit."""
    session = start(held_out=0, batch=50)
    ann = Person(client_of(session))
    question = ann.ask()["questions"][0]
    from askance.label import schema

    row_of = schema.row_of

    def deleting(record):
        (tmp_path / "project" / FILE).unlink(missing_ok=True)
        return row_of(record)

    monkeypatch.setattr(schema, "row_of", deleting)
    assert ann.answer(question, 0).status_code == 503


def test_an_empty_store_is_not_a_new_project(start, tmp_path):
    start().close()
    path = tmp_path / "project" / FILE
    path.write_bytes(b"")
    with pytest.raises(StoreError, match="is empty, so the answers in it are lost"):
        start()
    assert path.read_bytes() == b""
    path.unlink()
    start()


def test_a_log_without_its_store_is_not_a_new_project(start, tmp_path):
    session = start(held_out=0)
    ann = Person(client_of(session))
    ann.answer(ann.ask()["questions"][0], 0)
    log = (tmp_path / "project" / LOG).read_bytes()
    session.close()
    path = tmp_path / "project" / FILE
    path.unlink()
    path.with_name(LOG).write_bytes(log)
    with pytest.raises(StoreError, match="answers are left in"):
        start()
    assert path.with_name(LOG).read_bytes() == log


def test_a_store_of_before_its_first_commit_is_made(tmp_path):
    """What a writer of an earlier version left, killed between its first write and its first commit."""
    path = tmp_path / FILE
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    assert path.stat().st_size > 0
    with ProjectStore.open(tmp_path) as store:
        assert store.project() is None
