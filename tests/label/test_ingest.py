"""Answers from outside: what is kept, and what is told."""

from collections import Counter
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askance.errors import InputError, StoreError
from askance.label.ingest import ExternalAnswer, ingest
from askance.label.records import AskedQuestion, Class, Event, Project, StoredItem, now
from askance.label.store import ProjectStore
from tests.label.outside import rows_of, said, standing, state_of, why
from tests.label.worlds import CLASSES, token
from tests.naive.ingest import World

PEOPLE, ITEMS = ("ann", "bob"), ("x", "y", "z")
PROJECT = Project(data="d", kind="text", seed=0, held_out=0.1)


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
    with ProjectStore.open(project) as store:
        assert state_of(store).skips == {"item 3": ["bob"]}
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
    with ProjectStore.open(project) as store:
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
        (ExternalAnswer(7, "left", "bob"), "must be a text"),  # type: ignore[arg-type]
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
    with ProjectStore.open(project) as store:
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
    with ProjectStore.open(project) as store:
        event = next(store.events())
        store.add([Event(2, "undo", event.question, "bob", now(), "undo", None, event.id)])
    assert (
        len(ingest(project, [said(1, "left", token="a")]).unchanged) == 1
    )  # it was taken back since
    assert standing(project) == {}
    assert "used for another act" in why(ingest(project, [said(1, None, token="undo")]))[0]
    assert len(ingest(project, [said(1, "left", token="c")]).applied) == 1


def test_a_project_must_be_there_and_free(project, tmp_path):
    with pytest.raises(InputError, match=r"no labelling project.*askance label .*--no-server"):
        ingest(tmp_path / "none", [])
    assert not (tmp_path / "none").exists()
    with ProjectStore.open(tmp_path / "begun"):
        pass
    with pytest.raises(InputError, match="never finished"):
        ingest(tmp_path / "begun", [])
    with ProjectStore.open(project), pytest.raises(StoreError, match="stop it with Ctrl-C"):
        ingest(project, [said(1, "left")])
    assert standing(project) == {}


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
    annotations = state_of(store)
    kind, who = op[:2]
    number = annotations.last_event + 1
    if kind == "ask":
        question = len(annotations.questions) + 1
        store.add([AskedQuestion(question, op[2], who, now(), "first", None, "why")])
        world.ask(who, op[2])
    elif kind == "undo" and annotations.acts[who]:
        last = list(annotations.acts[who].values())[-1]
        store.add([Event(number, "undo", last.question, who, now(), token(), None, last.id)])
        world.undo(who)
    elif kind == "act" and annotations.open[who]:
        question = next(iter(annotations.open[who]))
        name = "skip" if op[2] is None else "answer"
        store.add([Event(number, name, question, who, now(), token(), op[2])])
        label = None if op[2] is None else world.classes[op[2]]
        world.act(who, annotations.questions[question].item, label)


def compare(store, world):
    annotations = state_of(store)
    names = [each.name for each in annotations.classes]
    assert names == world.classes
    left = [
        (who, annotations.questions[q].item) for who, ids in annotations.open.items() for q in ids
    ]
    assert Counter(left) == Counter(world.open)
    view = {(row["item"], row["annotator"]): names[row["class"]] for row in store.answers()}
    for who in PEOPLE:
        acts = [
            (annotations.questions[e.question].item, None if e.choice is None else names[e.choice])
            for e in annotations.acts[who].values()
        ]
        assert acts == world.acts.get(who, [])
        for item in ITEMS:
            answers = world.answers_of(who, item)
            assert view.get((item, who)) == (answers[-1][1] if answers else None)
            mine = annotations.current(item).get(who)
            assert (None if mine is None else names[mine]) == view.get((item, who))
    assert sum(annotations.by_annotator.values()) == sum(annotations.counts.values()) == len(view)


ASKED_TWICE = [("ask", "ann", "x"), ("act", "ann", 0), ("ask", "ann", "x"), ("act", "ann", 1)]


@settings(deadline=None)
@given(ops)
@example([*ASKED_TWICE, ("ingest", [("x", None, "ann", None)], True, False)])
@example([*ASKED_TWICE, ("ingest", [("x", "left", "ann", None)], True, False), ("undo", "ann")])
def test_every_row_is_decided_as_the_slow_twin_decides(script):
    with TemporaryDirectory() as folder, ProjectStore.open(folder) as store:
        store._db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        items = [StoredItem(item, now(), None) for item in ITEMS]
        store.add([PROJECT, Class(0, "left"), Class(1, "right"), *items])
        world = World(ITEMS, ["left", "right"])
        for op in script:
            if op[0] != "ingest":
                on_the_page(store, world, op)
                continue
            _, lot, replace, add_classes = op
            answers = [
                ExternalAnswer(item, label, who, None, str(place), key)
                for place, (item, label, who, key) in enumerate(lot)
            ]
            done = ingest(store, answers, replace=replace, add_classes=add_classes)
            verdicts = {each.where: "applied" for each in done.applied}
            verdicts |= {each.where: "unchanged" for each in done.unchanged}
            verdicts |= {each.where: "refused" for each in done.refused}
            decisions = [verdicts.pop(str(place)) for place in range(len(lot))]
            assert decisions == world.ingest(lot, replace, add_classes)
            assert not verdicts
            compare(store, world)
            again = ingest(store, answers, replace=replace, add_classes=add_classes)
            assert not again.applied
        compare(store, world)
