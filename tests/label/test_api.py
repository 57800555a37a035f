"""What a person can do through the API, and what the store then holds."""

import csv
import io
import json
import re
import sqlite3
from contextlib import closing

import pyarrow.parquet as pq
import pytest

from askance import strategies
from askance.label import load
from tests.label.outside import plain
from tests.label.worlds import (
    CLASSES,
    Person,
    client_of,
    images_folder,
    token,
)


@pytest.fixture
def ann(session):
    return Person(client_of(session))


def same_from_the_file(session):
    """The state kept act by act is the one that the file gives."""
    store = session.store
    assert plain(store.annotations()) == plain(session.annotations)
    current = {
        (item, who): stack[-1].choice
        for item, by in session.annotations.answers.items()
        for who, stack in by.items()
    }
    assert {(row["item"], row["annotator"]): row["class"] for row in store.answers()} == current


def test_a_new_project(ann):
    state = ann.state()
    assert [each["name"] for each in state["classes"]] == CLASSES
    assert [each["key"] for each in state["classes"]] == ["1", "2"]
    assert (state["answered"], state["total"], state["remaining"]) == (0, 60, 60)
    assert state["estimate"] is None
    assert state["model"]["version"] == 0
    assert state["model"]["next_at"] == 5
    assert state["model"]["strategy"] == strategies.default().name
    assert state["model"]["chosen"].endswith("default")
    assert state["exports"]["model"] == []
    assert state["advice"]["stop"] is False
    assert "too few to measure" in state["advice"]["text"]  # a fifth of 60 items, give or take
    question = ann.ask()["questions"][0]
    assert question["reason"] == "first"
    assert question["guess"] is None
    assert "drawn at random" in question["why"]["text"]
    assert "vector: 6 numbers" in question["text"]
    assert question["media"] is None


def test_a_batch_of_answers_trains_a_model_that_asks(ann, session):
    given = ann.work(6, session)
    assert {q["reason"] for q in given[:4]} == {"first"}
    assert session.versions[0].trained_on == 5
    later = ann.work(20, session)
    asked = [q for q in later if q["reason"] == "rule"]
    assert asked
    for question in asked:
        assert question["model"] >= 1
        assert question["guess"]["name"] in CLASSES
        assert 0.5 <= question["guess"]["confidence"] <= 1
        # In the words of a labeller: no rule's name, no number.
        assert question["why"]["text"].endswith(".")
        assert not re.search(r"\d|herding|grad", question["why"]["text"])
        assert question["why"]["numbers"]["grad_norm"] > 0
    held = [q for q in given + later if q["reason"] == "held-out"]
    assert len(held) == 5  # one question in five
    assert all(q["guess"] is None and q["guess_withheld"] for q in held)
    state = ann.state()
    assert state["estimate"]["n"] == 5
    assert state["estimate"]["low"] <= state["estimate"]["accuracy"] <= state["estimate"]["high"]
    assert [point["answers"] for point in state["curve"]] == [5, 10, 15, 20]
    assert sum(each["answers"] for each in state["counts"]) == 26
    same_from_the_file(session)


def test_no_held_out_answer_is_ever_trained_on(ann, session):
    ann.work(60, session)
    assert ann.ask()["finished"]
    held = set(session.split.held_out)
    assert len(held) > 5
    assert held <= set(session.annotations.labels)
    assert not held & set(session.training.trained_labels)
    n_changed = session.options.batch - session.scheduler.due_in
    assert len(session.training.trained_labels) == 60 - len(held) - n_changed
    with closing(sqlite3.connect(session.store.path)) as db:
        picked = {item for (item,) in db.execute("SELECT item FROM pick")}
    assert picked
    assert not picked & held


def test_the_same_token_is_kept_once(ann, session):
    question = ann.ask()["questions"][0]
    first = ann.answer(question, 1, key="the-same-token").json()
    again = ann.answer(question, 1, key="the-same-token").json()
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert first["event"] == again["event"]
    other = ann.answer(question, 0, key="the-same-token")
    assert other.status_code == 409
    assert len(list(session.store.events())) == 1


def test_a_second_tab_cannot_double_or_change_an_answer(ann, session):
    one, two = ann.ask()["questions"][0], ann.ask()["questions"][0]
    assert one == two
    assert ann.answer(one, 0).json()["duplicate"] is False
    assert ann.answer(two, 0).json()["duplicate"] is True
    refused = ann.answer(two, 1)
    assert refused.status_code == 409
    assert "undo" in refused.json()["error"]["message"]
    assert ann.skip(two).status_code == 409
    assert [event.choice for event in session.store.events()] == [0]


def test_undo_is_a_new_row_and_goes_back_step_by_step(ann, session):
    first, second = (ann.ask()["questions"][0] for _ in range(2))
    assert first == second
    ann.answer(first, 0)
    second = ann.ask()["questions"][0]
    ann.skip(second)
    assert ann.state()["skipped"] == 1
    undone = ann.undo().json()
    assert (undone["kind"], undone["question"]["id"]) == ("skip", second["id"])
    key = token()
    undone = ann.undo(key).json()
    assert (undone["kind"], undone["class"], undone["question"]["id"]) == ("answer", 0, first["id"])
    assert ann.undo(key).json()["duplicate"] is True
    assert ann.undo().status_code == 409
    assert ann.ask()["questions"][0]["id"] == first["id"]
    ann.answer(first, 1)
    assert [event.kind for event in session.store.events()] == [
        "answer", "skip", "undo", "undo", "answer",
    ]  # fmt: skip
    assert session.store.answers()[0]["class"] == 1
    same_from_the_file(session)


def test_undoing_changes_what_is_trained_on(ann, session):
    given = ann.work(6, session)
    assert (len(session.versions), session.scheduler.due_in) == (1, 5)
    ann.undo()
    assert session.scheduler.due_in == 4  # the model knows what is no longer said
    ann.answer(ann.ask()["questions"][0], ann.choice(given[-1]))
    assert session.scheduler.due_in == 5


def test_a_class_added_on_the_way_is_learnt(ann, session):
    ann.work(6, session)
    made = ann.client.post("/api/classes", json={"name": " up ", "token": "make-up-1"}).json()
    assert made["class"].items() >= {"id": 2, "name": "up", "key": "3"}.items()
    again = ann.client.post("/api/classes", json={"name": "up", "token": "make-up-1"}).json()
    assert again["duplicate"] is True
    assert ann.client.post("/api/classes", json={"name": "UP", "token": token()}).status_code == 409
    question = ann.ask()["questions"][0]
    assert ann.answer(question, 2).status_code == 200
    ann.work(6, session)
    assert session.versions[-1].classes == 3
    assert ann.answer(ann.ask()["questions"][0], 3).status_code == 422


def test_one_class_so_far_and_classes_without_answers(start):
    session = start(classes=["a", "b", "c", "d"], held_out=0)
    ann = Person(client_of(session))
    for _ in range(12):
        question = ann.ask()["questions"][0]
        assert ann.answer(question, 1).status_code == 200
        session.scheduler.wait(0)
    assert session.training.error is None
    assert session.versions[-1].trained_on == 10


def test_skipping_everything_still_goes_on(start):
    session = start(n=30, held_out=0, ahead=0)
    ann = Person(client_of(session))
    seen = set()
    for _ in range(200):
        batch = ann.ask()
        if batch["finished"]:
            break
        for question in batch["questions"]:
            seen.add(question["item"])
            ann.skip(question)
        session.scheduler.wait(0)
    assert len(seen) == 30
    assert ann.state()["skipped"] == 30


def test_a_restart_goes_on_where_it_was(start):
    session = start()
    ann = Person(client_of(session))
    ann.work(13, session)
    open_now = ann.ask(3)["questions"]
    before, annotations = ann.state(), plain(session.annotations)
    session.close()
    session = start(classes=())
    ann = Person(client_of(session))
    assert plain(session.annotations) == annotations
    after = ann.state()
    for key in ("answers", "skipped", "counts", "estimate", "curve", "advice", "annotators"):
        assert after[key] == before[key], key
    assert after["model"] == before["model"]
    assert ann.ask(3)["questions"] == open_now
    ann.work(20, session)
    assert [version.version for version in session.versions] == list(
        range(1, len(session.versions) + 1)
    )
    same_from_the_file(session)


def test_two_people_share_the_queue_and_disagree(start):
    session = start(held_out=0, repeat=1.0, batch=50)
    client = client_of(session)
    ann, bob = Person(client), Person(client, "bob")
    one = ann.ask()["questions"][0]
    two = bob.ask()["questions"][0]
    assert one["item"] != two["item"]  # nobody is given what another has open
    assert bob.answer(one, 0).status_code == 409
    ann.answer(one, 0)
    bob.answer(two, 0)
    repeated = bob.ask(2)["questions"]
    again = next(q for q in repeated if q["item"] == one["item"])
    assert (again["reason"], again["guess_withheld"]) == ("repeat", True)
    bob.answer(again, 1)
    state = ann.state()
    assert (state["conflicts"], state["agreement"]) == (1, {"items": 1, "agree": 0})
    assert one["item"] not in session.annotations.labels  # a tie is left out
    for person in (ann, bob):
        shown = next(q for q in person.ask(4)["questions"] if q["reason"] == "disagreement")
        assert shown["item"] == one["item"]
        assert {(e["annotator"], e["name"]) for e in shown["earlier"]} == {
            ("ann", "left"),
            ("bob", "right"),
        }
        if person is bob:
            person.answer(shown, 0)
    assert ann.state()["conflicts"] == 0
    assert session.annotations.labels[one["item"]] == 0
    history = ann.client.get(f"/api/items/{one['item']}").json()
    assert [row["kind"] for row in history["history"]].count("answer") == 3
    bob.undo()
    assert ann.state()["conflicts"] == 1
    same_from_the_file(session)


def test_three_people_and_a_majority(start):
    session = start(held_out=0, repeat=1.0, batch=50)
    annotations = session.annotations
    session.answer(session.questions("a", 1)[0][0].id, 0, "a", token())
    item = next(iter(annotations.answers))
    session.answer(
        next(q for q in session.questions("b", 1)[0] if q.item == item).id, 1, "b", token()
    )
    assert item not in annotations.labels
    session.answer(
        next(q for q in session.questions("a", 2)[0] if q.item == item).id, 1, "a", token()
    )
    assert annotations.labels[item] == 1


def test_exports(ann, session):
    assert ann.client.get("/api/export/model").status_code == 409
    assert ann.client.get("/api/export/predictions").status_code == 409
    ann.work(24, session)
    rows = list(csv.DictReader(io.StringIO(ann.client.get("/api/export/answers").text)))
    assert len(rows) == 24
    assert {row["annotator"] for row in rows} == {"ann"}
    lines = ann.client.get("/api/export/answers?format=jsonl").text.splitlines()
    assert [json.loads(line)["item"] for line in lines] == [row["item"] for row in rows]
    table = pq.read_table(io.BytesIO(ann.client.get("/api/export/answers?format=parquet").content))
    assert table.num_rows == 24
    assert {row["reason"] for row in rows} == {"first", "rule", "held-out"}
    rest = ann.client.get("/api/export/predictions?format=jsonl").text.splitlines()
    assert len(rest) == 36
    assert not {json.loads(line)["item"] for line in rest} & {row["item"] for row in rows}
    assert ann.client.get("/api/export/answers?format=xml").status_code == 422
    reply = ann.client.get("/api/export/model")
    assert reply.headers["content-disposition"] == 'attachment; filename="model.safetensors"'
    card = ann.client.get("/api/export/model?format=json").json()
    assert (card["classes"], card["kind"]) == (CLASSES, "features")
    assert card["held_out"]["n"] == ann.state()["estimate"]["n"]


def test_the_exported_model_says_what_the_server_says(ann, session, tmp_path):
    ann.work(24, session)
    path = tmp_path / "model.safetensors"
    path.write_bytes(ann.client.get("/api/export/model").content)
    names, confidence = load(path).predict(session.items.features)
    said = [json.loads(line) for line in
            ann.client.get("/api/export/predictions?format=jsonl").text.splitlines()]  # fmt: skip
    assert said
    for row in said:
        place = session.items.position[row["item"]]
        assert names[place] == row["class"]
        assert confidence[place] == pytest.approx(row["confidence"], abs=1e-5)


def test_texts(tmp_path, start):
    table = tmp_path / "texts.csv"
    table.write_text(
        "key,said\n"
        + "".join(
            f"k{i},{['good wonderful', 'awful dreadful'][i % 2]} film number\n" for i in range(40)
        )
    )
    from askance.label import ItemSource

    session = start(ItemSource(table, text="said", id="key"))
    ann = Person(client_of(session))
    ann.choice = lambda question: int(question["item"][1:]) % 2
    given = ann.work(15, session)
    assert given[0]["kind"] == "text"
    assert "film number" in given[0]["text"]
    path = tmp_path / "m.safetensors"
    path.write_bytes(ann.client.get("/api/export/model").content)
    bundle = load(path)
    assert bundle.classes == tuple(CLASSES)
    assert len(bundle.predict(["a good film", "an awful film"])[0]) == 2


def test_images_and_their_model(tmp_path, start):
    root = images_folder(tmp_path)
    (root / "broken.png").write_bytes(b"not an image")
    session = start(root, held_out=0, epochs=2)
    ann = Person(client_of(session))
    ann.choice = lambda question: (
        int(question["item"][-7:-4].strip("n")) % 2 if question["item"] != "broken.png" else 0
    )
    while len(session.versions) < 1:
        question = ann.ask()["questions"][0]
        picture = ann.client.get(question["media"])
        if question["item"] == "broken.png":
            assert picture.status_code == 422
            ann.skip(question)
            continue
        assert picture.headers["content-type"] == "image/png"
        assert ann.answer(question).status_code == 200
        session.scheduler.wait(0)
    assert ann.state()["changes"]["unreadable"] == 1
    assert any("/" in item for item in session.items.ids)


def test_the_first_batch_by_kcenter(start):
    session = start(first="kcenter")
    ann = Person(client_of(session))
    for _ in range(200):
        batch = ann.ask()
        if batch["questions"]:
            break
    assert batch["questions"][0]["reason"] == "first"
    assert "unlike the others" in batch["questions"][0]["why"]["text"]
    ann.work(12, session)
    assert len(session.versions) == 2


@pytest.mark.parametrize("strategy", ["grad", "badge", "kcenter", "random", "entropy"])
def test_any_rule(strategy, start):
    session = start(strategy=strategy, epochs=1)
    ann = Person(client_of(session))
    assert bool(ann.state()["model"]["chosen"]) == (strategy == strategies.default().name)
    ann.work(12, session)
    assert session.training.error is None
    assert {q.version for q in session.annotations.questions.values() if q.reason == "rule"} == {1}
