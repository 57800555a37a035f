"""Answers from outside: what is kept, what is told, and that it is all or nothing."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from itertools import permutations
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.errors import InputError, StoreError
from askance.label import estimate, schema
from askance.label.book import replayed
from askance.label.exports import export
from askance.label.files import read_answers
from askance.label.ingest import Answer, ingest
from askance.label.records import Class, Event, Question, now
from askance.label.status import state
from askance.label.store import LOCK, Store
from tests.label.worlds import CLASSES, Person, client_of, open_features, token
from tests.naive.ingest import World

PEOPLE, ITEMS = ("ann", "bob"), ("x", "y", "z")
PROJECT = {"data": "d", "kind": "text", "seed": 0, "held_out": 0.1}


def said(item, label, who="bob", **more):
    return Answer(f"item {item}" if isinstance(item, int) else item, label, who, **more)


def why(done):
    assert not done.applied
    return [refusal.why for refusal in done.refused]


def book_of(store):
    return replayed(store.classes(), store.questions(), store.events())


def standing(folder):
    with Store.open(folder) as store:
        names = [each.name for each in store.classes()]
        return {(row["item"], row["annotator"]): names[row["class"]] for row in store.answers()}


def rows_of(folder):
    """Everything that was ever written."""
    with Store.open(folder) as store:
        return store.classes(), list(store.questions()), list(store.events())


# What is sound


def test_sound_answers_are_kept_and_the_rest_is_told(project):
    done = ingest(
        project,
        [
            said(1, "left", where="line 2"),
            said(1, "right", "ann", where="line 3"),
            said(2, None, where="line 4"),
            said(3, "up", where="line 5"),
            said(99, "left", where="line 6"),
            said(4, "left", where="line 7"),
            said(4, "right", where="line 8"),
            said(5, "LEFT ", where="line 9"),
            said(5, "left", where="line 10"),
        ],
    )
    assert [each.where for each in done.applied] == ["line 2", "line 3", "line 4", "line 9"]
    assert [each.where for each in done.unchanged] == ["line 10"]
    told = {refusal.where: (refusal.item, refusal.why) for refusal in done.refused}
    assert told["line 5"] == (
        "item 3",
        "the project has no class 'up'; it has left, right; --add-classes adds it",
    )
    assert told["line 6"] == ("item 99", "the project has no such item")
    assert "bob says 'left' here and 'right' too, at line 8; neither" in told["line 7"][1]
    assert "bob says 'right' here and 'left' too, at line 7; neither" in told["line 8"][1]
    assert standing(project) == {
        ("item 1", "bob"): "left",
        ("item 1", "ann"): "right",
        ("item 5", "bob"): "left",
    }


def test_twice_is_once(project):
    answers = [said(1, "left"), said(2, None), said(3, "right", "ann", token="one")]
    ingest(project, answers)
    before = rows_of(project)
    done = ingest(project, answers)
    assert (done.applied, done.unchanged, done.refused) == ([], answers, [])
    assert rows_of(project) == before


def test_what_was_said_stands_unless_it_is_replaced(project):
    ingest(project, [said(1, "left"), said(2, None), said(3, "left")])
    new = [said(1, "right"), said(2, "right"), said(3, None)]
    done = ingest(project, new)
    assert done.applied == [new[1]]  # a skip gives way
    assert [refusal.item for refusal in done.refused] == ["item 1", "item 3"]
    assert "bob said 'left' before and now 'right'" in done.refused[0].why
    assert ingest(project, new, replace=True).applied == [new[0], new[2]]
    assert standing(project) == {("item 1", "bob"): "right", ("item 2", "bob"): "right"}
    with Store.open(project) as store:
        assert book_of(store).skips == {"item 3": ["bob"]}
        kinds = Counter(event.kind for event in store.events())
    assert kinds == {"answer": 4, "skip": 2, "undo": 3}


def test_a_dry_run_writes_nothing(project):
    before = rows_of(project)
    done = ingest(project, [said(1, "left"), said(2, "up")], add_classes=True, dry_run=True)
    assert (len(done.applied), done.classes) == (2, ["up"])
    assert rows_of(project) == before


def test_classes_are_added_only_if_asked_for_and_used(project):
    lot = [said(1, "Up"), said(2, "UP"), said(3, "down"), said(3, "left")]
    done = ingest(project, lot, add_classes=True, dry_run=True)
    assert (done.classes, len(done.refused)) == (["Up"], 2)  # bob says down and left
    assert len(ingest(project, lot).refused) == 3  # "down" is nothing here: bob says left
    done = ingest(project, lot, add_classes=True)
    assert (done.classes, len(done.refused)) == (["Up"], 2)
    with Store.open(project) as store:
        assert [each.name for each in store.classes()] == [*CLASSES, "Up"]
    assert standing(project)["item 2", "bob"] == "Up"


def test_a_thousand_classes_are_the_most(project):
    lot = [said(number % 60, f"c{number}", f"p{number}") for number in range(1100)]
    done = ingest(project, lot, add_classes=True)
    assert len(done.classes) == len(done.applied) == 998
    assert {refusal.why for refusal in done.refused} == {
        "there are 1000 classes, which is the most"
    }


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (said("", "left"), "not empty"),
        (said(" item 1", "left"), "'item 1' is one: remove the spaces"),
        (said("item 1\x00", "left"), "no such item"),
        (said("\ud800", "left"), "no such item"),
        (Answer(7, "left", "bob"), "must be a text"),  # type: ignore[arg-type]
        (said(1, "l" * 61), "1 to 60 characters, got 61"),
        (said(1, " "), "1 to 60 characters, got 0"),
        (said(1, "le\u202eft"), "must be printable"),
        (said(1, 0), "name of a class, got 0"),
        (said(1, "left", ""), "annotator must have 1 to 60"),
        (said(1, "left", "b\x1bb"), "annotator must be printable"),
        (said(1, "left", None), "annotator must be a text"),
        (said(1, "left", time="yesterday"), "time must be like 2024"),
        (said(1, "left", time=3), "time must be like 2024"),
        (said(1, "left", time="0001-01-01T00:00:00+14:00"), "time must be like 2024"),
        (said(1, "left", token=""), "a token must have"),
        (said(1, "left", token="t" * 201), "a token must have"),
    ],
)
def test_what_cannot_be_is_refused_alone(project, answer, message):
    done = ingest(project, [answer, said(2, "right")])
    assert len(done.applied) == 1
    assert message in done.refused[0].why
    assert done.refused[0].item.isprintable()


def test_times_are_kept_in_utc(project):
    ingest(
        project,
        [said(1, "left", time="2024-05-01T12:00:00+02:00"), said(2, "left", time="2024-05-01")],
    )
    with Store.open(project) as store:
        assert [event.time for event in store.events()] == [
            "2024-05-01T10:00:00.000+00:00",
            "2024-05-01T00:00:00.000+00:00",
        ]


def test_a_token_names_one_act_for_ever(project):
    ingest(project, [said(1, "left", token="a")])
    assert (
        "used for another act"
        in why(ingest(project, [said(1, "right", token="a")], replace=True))[0]
    )
    assert "used for another act" in why(ingest(project, [said(1, "left", "ann", token="a")]))[0]
    lot = [said(2, "left", token="b"), said(3, "left", token="b")]
    assert len(why(ingest(project, lot))) == 2
    with Store.open(project) as store:
        event = next(store.events())
        store.add_event(Event(2, "undo", event.question, "bob", now(), "undo", None, event.id))
    assert (
        len(ingest(project, [said(1, "left", token="a")]).unchanged) == 1
    )  # it was taken back since
    assert standing(project) == {}
    assert len(ingest(project, [said(1, "left", token="c")]).applied) == 1


def test_a_project_must_be_there_and_free(project, tmp_path):
    with pytest.raises(InputError, match=r"no labelling project.*askance label .*--no-server"):
        ingest(tmp_path / "none", [])
    assert not (tmp_path / "none").exists()
    with Store.open(tmp_path / "begun"):
        pass
    with pytest.raises(InputError, match="never finished"):
        ingest(tmp_path / "begun", [])
    with Store.open(project), pytest.raises(StoreError, match="stop it with Ctrl-C"):
        ingest(project, [said(1, "left")])
    assert standing(project) == {}


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


# The project afterwards


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
    lot = [said(number, CLASSES[number % 2]) for number in range(60)]
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


# All or nothing

# For every line it reads, another process that takes answers in: killed by itself at its nth statement,
# or by who reads its pid. It is reaped when a second line is read, so that its pid stays its own.
CHILDREN = """
import os, signal, sys
from askance.label.ingest import Answer, ingest
from askance.label.store import Store

def lot(n):
    return [Answer(f"item {i % 60}", "new" if i % 2 else "left", f"p{i // 60}") for i in range(n)]

def play(rows, statement, folder):
    rows, statement = int(rows), int(statement)
    store = Store.open(folder)
    def count(sql):
        nonlocal statement
        statement -= 1
        if statement == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    store._db.set_trace_callback(count)
    os.write(1, f"{os.getpid()}\\n".encode())
    ingest(store, lot(rows), add_classes=True)
    store.close()

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        play(*line.strip().split(maxsplit=2))
        os._exit(0)
    sys.stdin.readline()
    os.write(1, f"{os.waitpid(pid, 0)[1]}\\n".encode())
"""


@pytest.fixture(scope="module")
def parent():
    with subprocess.Popen(
        [sys.executable, "-c", CHILDREN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def children(project, parent):
    """From rows, a statement to die at and seconds to live: how a child of those ended."""

    def child(rows, statement=-1, seconds=None):
        print(rows, statement, project, file=parent.stdin, flush=True)
        pid = int(parent.stdout.readline())
        assert pid > 1
        if seconds is not None:
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        print("reap", file=parent.stdin, flush=True)
        return os.waitstatus_to_exitcode(int(parent.stdout.readline()))

    return child


def test_killed_at_a_statement_it_leaves_nothing(project, children):
    before = rows_of(project)
    # 4 that read, BEGIN, a class, 60 questions, 60 events, COMMIT
    for statement in (1, 5, 6, 7, 30, 66, 67, 100, 126, 127):
        assert children(60, statement) == -signal.SIGKILL
        assert rows_of(project) == before
    assert children(60, 128) == 0
    classes, questions, events = rows_of(project)
    assert (len(classes), len(questions), len(events)) == (3, 60, 60)
    assert not (project / LOCK).exists()


@pytest.mark.parametrize("turns", [5, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_at_any_moment_it_keeps_all_or_nothing(project, children, turns):
    draws, rows, kept = random.Random(0), 0, 0
    assert children(60) == 0
    began = time.monotonic()
    assert children(600) == 0  # everything is imported by now
    took = time.monotonic() - began
    for turn in range(turns):
        rows = 600 * (turn + 2)
        children(rows, seconds=draws.uniform(0, 1.5 * took))
        now_there = len(standing(project))
        assert now_there in {600 * n for n in range(1, turn + 3)}
        with Store.open(project) as store:
            assert store._query("PRAGMA integrity_check")[0][0] == "ok"
            assert now_there == len(list(store.events())) == len(list(store.questions()))
        kept += now_there == rows
    assert children(rows) == 0
    assert len(standing(project)) == rows
    assert kept < turns, "none was killed before the end"


# Against the slow twin

labels = st.sampled_from(["left", "right", "LEFT", "up", "Up", None])
rows = st.lists(
    st.tuples(
        st.sampled_from([*ITEMS, "unknown"]),
        labels,
        st.sampled_from(PEOPLE),
        st.sampled_from([None, None, "t1", "t2", "t3"]),
    ),
    max_size=6,
)
ops = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(PEOPLE), st.sampled_from(ITEMS)),
        st.tuples(st.just("act"), st.sampled_from(PEOPLE), st.sampled_from([0, 1, None])),
        st.tuples(st.just("undo"), st.sampled_from(PEOPLE)),
        st.tuples(st.just("ingest"), rows, st.booleans(), st.booleans()),
    ),
    min_size=1,
    max_size=12,
)


def on_the_page(store, world, op):
    book = book_of(store)
    kind, who = op[:2]
    number = book.last_event + 1
    if kind == "ask":
        question = len(book.questions) + 1
        store.add_questions([Question(question, op[2], who, now(), "first", None, "why")])
        world.ask(who, op[2])
    elif kind == "undo" and book.acts[who]:
        last = list(book.acts[who].values())[-1]
        store.add_event(Event(number, "undo", last.question, who, now(), token(), None, last.id))
        world.undo(who)
    elif kind == "act" and book.open[who]:
        question = next(iter(book.open[who]))
        name = "skip" if op[2] is None else "answer"
        store.add_event(Event(number, name, question, who, now(), token(), op[2]))
        label = None if op[2] is None else world.classes[op[2]]
        world.act(who, book.questions[question].item, label)


def compare(store, world):
    book = book_of(store)
    names = [each.name for each in book.classes]
    assert names == world.classes
    left = [(who, book.questions[q].item) for who, ids in book.open.items() for q in ids]
    assert Counter(left) == Counter(world.open)
    view = {(row["item"], row["annotator"]): names[row["class"]] for row in store.answers()}
    for who in PEOPLE:
        acts = [
            (book.questions[e.question].item, None if e.choice is None else names[e.choice])
            for e in book.acts[who].values()
        ]
        assert acts == world.acts.get(who, [])
        for item in ITEMS:
            answers = world.answers_of(who, item)
            assert view.get((item, who)) == (answers[-1][1] if answers else None)
            mine = book.current(item).get(who)
            assert (None if mine is None else names[mine]) == view.get((item, who))
    assert sum(book.by_annotator.values()) == sum(book.counts.values()) == len(view)


@settings(deadline=None)
@given(ops)
def test_every_row_is_decided_as_the_slow_twin_decides(script):
    with TemporaryDirectory() as folder, Store.open(folder) as store:
        store._db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        store.start(PROJECT)
        store.add_classes([Class(0, "left"), Class(1, "right")])
        store.add_items((item, None) for item in ITEMS)
        world = World(ITEMS, ["left", "right"])
        for op in script:
            if op[0] != "ingest":
                on_the_page(store, world, op)
                continue
            _, lot, replace, add_classes = op
            answers = [
                Answer(item, label, who, None, str(place), key)
                for place, (item, label, who, key) in enumerate(lot)
            ]
            done = ingest(store, answers, replace=replace, add_classes=add_classes)
            verdicts = {each.where: "applied" for each in done.applied}
            verdicts |= {each.where: "unchanged" for each in done.unchanged}
            verdicts |= {each.where: "refused" for each in done.refused}
            found = [verdicts.pop(str(place)) for place in range(len(lot))]
            assert found == world.ingest(lot, replace, add_classes)
            assert not verdicts
            compare(store, world)
            again = ingest(store, answers, replace=replace, add_classes=add_classes)
            assert not again.applied
        compare(store, world)
