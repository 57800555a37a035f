"""A project that was given answers from outside: the page, the exports and the estimate."""

import sqlite3
from itertools import permutations

import pytest

from askance.label import estimate, schema
from askance.label.exports import export
from askance.label.files import read_answers
from askance.label.ingest import ingest
from askance.label.status import state
from askance.label.store import Store
from tests.label.outside import book_of, rows_of, said, standing
from tests.label.worlds import CLASSES, Person, client_of, open_features, token


def test_a_project_of_before_takes_answers_from_outside(tmp_path, monkeypatch):
    old = schema.TABLES["question"].replace(", 'outside'", "")
    assert old != schema.TABLES["question"]
    with monkeypatch.context() as before:
        before.setitem(schema.TABLES, "question", old)
        before.setattr(schema, "VERSION", 1)
        desk = open_features(tmp_path)
        ann = Person(client_of(desk))
        ann.answer(ann.ask()["questions"][0])
        state = desk.book.state()
        desk.close()
        rows = rows_of(tmp_path / "project")
    assert rows_of(tmp_path / "project") == rows
    with Store.open(tmp_path / "project") as store:
        assert book_of(store).state() == state
        for verb in ("UPDATE question SET why = ''", "DELETE FROM question"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                store._db.execute(verb)
        assert store._query("PRAGMA foreign_key_check") == []
        names = "SELECT name, sql FROM sqlite_master ORDER BY name"
        found = [tuple(row) for row in store._query(names)]
    with Store.open(tmp_path / "new") as store:
        fresh = [tuple(row) for row in store._query(names)]
    assert [(n, s.replace('"question"', "question") if s else s) for n, s in found] == fresh
    assert len(ingest(tmp_path / "project", [said(7, "left")]).applied) == 1


def test_the_page_goes_on_from_there(tmp_path):
    desk = open_features(tmp_path, batch=5)
    ann = Person(client_of(desk))
    open_now = [question["item"] for question in ann.ask(3)["questions"]]
    queued = [pick.item for pick in desk.rounds._queue if pick.item not in open_now]
    held = desk.shares.held_out[0]
    desk.close()
    lot = [said(item, "left", "ann") for item in open_now]
    lot += [said(item, "right") for item in [*queued[:4], held]]
    assert len(ingest(tmp_path / "project", lot).applied) == 3 + 4 + 1
    desk = open_features(tmp_path, batch=5)
    ann = Person(client_of(desk))
    desk.rounds.wait(1)  # there were answers enough for a model
    assert desk.versions[0].trained_on == sum(
        item not in desk.shares.held_out for item in [*open_now, *queued[:4]]
    )
    assert held not in desk.rounds._trained
    asked = {question["item"] for question in ann.ask(12)["questions"]}
    assert not asked & {*open_now, *queued[:4], held}
    told = ann.state()
    assert told["answers"] == 8 == len(desk.store.answers())
    assert desk.book.current(held) == {"bob": 1}
    assert desk.book.state() == book_of(desk.store).state()
    reasons = {desk.book.questions[e.question].reason for e in desk.book.acts["bob"].values()}
    assert reasons == {"outside"}
    # An undo on the page takes back the latest act, from wherever it came.
    bob = Person(client_of(desk), "bob")
    assert bob.undo().status_code == 200
    assert desk.book.current(held) == {}
    assert bob.ask()["questions"][0]["item"] == held
    desk.close()


def test_a_project_with_every_answer_opens_and_is_finished(tmp_path):
    open_features(tmp_path).close()
    lot = [said(n, CLASSES[n % 2], time=f"2024-05-01T12:00:{n:02}") for n in range(60)]
    assert len(ingest(tmp_path / "project", lot).applied) == 60
    desk = open_features(tmp_path)
    desk.rounds.wait(1)
    bob = Person(client_of(desk), "bob")
    assert (
        bob.ask() | {"stamp": 0}
        == {"questions": [], "finished": True, "training": False} | {"stamp": 0}
        or bob.ask()["finished"]
    )
    told = state(desk, "bob")
    assert told["estimate"]["n"] == len(desk.shares.held_out)
    assert told["per_minute"] is None  # nobody answered here
    desk.close()


def test_disagreement_from_outside_is_asked_about(tmp_path):
    desk = open_features(tmp_path, held_out=0, repeat=0)
    ann = Person(client_of(desk))
    question = ann.ask()["questions"][0]
    ann.answer(question, 0)
    desk.close()
    ingest(tmp_path / "project", [said(question["item"], "right")])
    desk = open_features(tmp_path, held_out=0, repeat=0)
    again = Person(client_of(desk)).ask()["questions"][0]
    assert (again["item"], again["reason"]) == (question["item"], "disagreement")
    desk.close()


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_what_a_project_exports_changes_nothing_in_it(tmp_path, format):
    desk = open_features(tmp_path, held_out=0)
    for name in ("ann", "bob"):  # they disagree, so the majority is none of their answers
        for question in desk.questions(name, 3)[0]:
            desk.answer(question.id, 0 if name == "ann" else 1, name, token())
    item = next(iter(desk.book.answers))
    desk.close()
    ingest(tmp_path / "project", [said(item, "right", "cem"), said(item, "left", "dora")])
    desk = open_features(tmp_path, held_out=0)
    file = tmp_path / f"answers.{format}"
    file.write_bytes(export(desk, "answers", format))
    desk.close()
    found = read_answers(file, "nobody")
    assert (found.left, found.refused) == ([], [])
    before = rows_of(tmp_path / "project")
    done = ingest(tmp_path / "project", found.answers)
    assert (len(done.unchanged), done.applied, done.refused) == (8, [], [])
    assert rows_of(tmp_path / "project") == before
    other = tmp_path / "other"
    other.mkdir()
    open_features(other, held_out=0).close()
    assert len(ingest(other / "project", found.answers).applied) == 8  # and makes a copy elsewhere
    assert standing(other / "project") == standing(tmp_path / "project")


def test_held_out_answers_from_outside_do_not_bend_the_estimate(tmp_path):
    desk = open_features(tmp_path, n=100)
    held = desk.shares.held_out
    desk.close()
    ingest(tmp_path / "project", [said(number, CLASSES[number % 2]) for number in range(0, 30)])
    hard = [item for item in held if int(item.split()[1]) % 3 == 0 and int(item.split()[1]) >= 30]
    ingest(tmp_path / "project", [said(item, "left") for item in hard])
    desk = open_features(tmp_path, n=100)
    desk.rounds.wait(1)
    assert (
        state(desk, "ann")["estimate"] is None
    )  # whoever chose them may have chosen the hard ones
    assert state(desk, "ann")["held_out"]["answered"] == 0
    rest = [item for item in held if item not in desk.book.asked]
    desk.close()
    ingest(tmp_path / "project", [said(item, "left") for item in rest])
    desk = open_features(tmp_path, n=100)
    assert state(desk, "ann")["held_out"]["answered"] == len(held)  # now it is all of them
    desk.close()


@pytest.mark.parametrize("hard", [1, 3, 5])
@pytest.mark.parametrize("drawn", [1, 2])
def test_the_fair_part_of_a_random_order_is_unbiased(hard, drawn):
    """Over all orders of 7 items, of which `hard` (worth 0) were answered from outside."""
    items = "abcdefg"
    outside = set(items[:hard])
    shares = []
    for order in permutations(items):
        asked = [item for item in order if item not in outside][:drawn]
        fair = order[: estimate.fair(order, asked, {*outside, *asked})]
        if drawn == 7 - hard:
            fair = order  # all were asked
        shares.append(sum(item not in outside for item in fair) / len(fair))
    assert sum(shares) / len(shares) == pytest.approx((7 - hard) / 7)
    assert estimate.fair(order, [], outside) == 0
