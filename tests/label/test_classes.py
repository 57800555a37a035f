"""Classes that are renamed, described, reordered, deleted: the answers stay with them."""

import csv
import io

import pytest

from askance.label.ingest import ingest
from askance.label.keys import KEYS
from askance.label.project import open_project
from askance.label.store import ProjectStore
from tests.label.outside import said, standing
from tests.label.worlds import Person, client_of, images_folder, open_features, options, token


class Editor(Person):
    """A person who edits the classes."""

    def named(self):
        return {each["name"]: each for each in self.state()["classes"]}

    def edit(self, which, sent=None, /, **change):
        one = self.named()[which]
        body = {field: one[field] for field in ("name", "description", "example", "place")}
        body |= {"key": one["key"] if one["chosen"] else None, "annotator": self.name}
        body |= {"token": sent or token(), **change}
        return self.client.post(f"/api/classes/{one['id']}", json=body)


@pytest.fixture
def ann(session):
    return Editor(client_of(session))


def test_a_renamed_class_keeps_its_answers(tmp_path):
    session = open_features(tmp_path)
    ann = Editor(client_of(session))
    for question in ann.ask(4)["questions"]:
        ann.answer(question)
    labels = dict(session.annotations.labels)
    assert ann.edit("left", name="Port").status_code == 200
    assert session.annotations.labels == labels
    assert list(ann.named()) == ["Port", "right"]
    told = ann.client.get("/api/export/answers").text
    assert {row["class"] for row in csv.DictReader(io.StringIO(told))} == {"Port", "right"}
    session.close()
    session = open_features(tmp_path)  # the command of before, with the former name
    assert list(Editor(client_of(session)).named()) == ["Port", "right"]
    session.close()
    project = open_project(tmp_path / "project", session.items.source, ["port"], options())
    project.store.close()
    free = next(item for item in session.items.ids if item not in labels)
    assert len(ingest(tmp_path / "project", [said(free, "LEFT", "bob")]).applied) == 1
    with ProjectStore.open(tmp_path / "project") as store:
        assert store.annotations().current(free) == {"bob": 0}
        assert [each.name for each in store.classes()] == ["left", "right"]  # nothing is rewritten
    assert standing(tmp_path / "project")[free, "bob"] == "left"


def test_a_name_that_was_used_is_not_used_again(ann):
    ann.edit("left", name="port")
    for name in ("Port", "LEFT"):
        reply = ann.client.post("/api/classes", json={"name": name, "token": token()})
        assert reply.status_code == 409
    assert "was called 'LEFT' before" in reply.json()["error"]["message"]
    assert ann.edit("right", name="left").status_code == 409
    assert ann.edit("port", name="left").status_code == 200  # its own former name


def test_order_guidance_and_keys(tmp_path, start):
    session = start(images_folder(tmp_path, 6), ["cat", "dog", "bird"])
    ann = Editor(client_of(session))
    assert ann.edit("bird", place=-1).status_code == 200
    assert [(name, one["key"]) for name, one in ann.named().items()] == [
        ("bird", "3"), ("cat", "1"), ("dog", "2"),
    ]  # fmt: skip
    item = session.items.ids[0]
    ann.edit("bird", description="has feathers", example=item)
    bird = ann.named()["bird"]
    assert (bird["description"], bird["example"]) == ("has feathers", item)
    assert ann.client.get(bird["example_media"], params={"size": "small"}).status_code == 200
    body = {"name": "bird", "place": -1, "annotator": "ann", "token": token(), "key": "x"}
    assert ann.client.post("/api/classes/2", json=body).status_code == 200
    assert ann.named()["bird"]["key"] == "x"
    assert ann.named()["bird"]["description"] == ""  # an edit says all of it
    cat = {"name": "cat", "place": 0, "annotator": "ann", "token": token(), "key": "x"}
    assert ann.client.post("/api/classes/0", json=cat).status_code == 409
    assert ann.client.post("/api/classes/0", json=cat | {"key": "u"}).status_code == 422
    assert ann.client.post("/api/classes/0", json=cat | {"key": "é"}).status_code == 422
    assert ann.client.post("/api/classes/9", json=cat | {"key": None}).status_code == 404
    assert ann.edit("cat", example="nowhere").status_code == 404
    assert ann.edit("cat", description="two\nlines").status_code == 422
    assert ann.edit("cat", description="x" * 400).status_code == 422
    assert ann.edit("cat", name="  ").status_code == 422
    assert {one["key"] for one in ann.named().values()} <= set(KEYS)


def test_a_class_without_answers_is_deleted_and_restored(start):
    session = start(classes=["left", "right", "rong"])
    ann = Editor(client_of(session))
    rong = ann.named()["rong"]
    assert ann.edit("rong", deleted=True).status_code == 200
    assert list(ann.named()) == ["left", "right"]
    assert [each["name"] for each in ann.state()["deleted_classes"]] == ["rong"]
    question = ann.ask()["questions"][0]
    assert ann.answer(question, 2).status_code == 409
    assert ann.edit("left", deleted=True).status_code == 409  # two must be left
    body = {"name": "rong", "place": rong["place"], "annotator": "ann", "token": token()}
    assert ann.client.post("/api/classes/2", json=body).status_code == 200
    assert list(ann.named()) == ["left", "right", "rong"]
    assert ann.answer(question, 2).status_code == 200
    reply = ann.edit("rong", deleted=True)
    assert reply.status_code == 409
    assert "1 items are or were answered" in reply.json()["error"]["message"]


def test_an_edit_that_is_sent_twice_counts_once(ann, session):
    key = token()
    assert not ann.edit("left", key, name="port").json()["duplicate"]
    ann.edit("port", description="later")
    body = {"name": "port", "place": 0, "annotator": "ann", "token": key}
    assert ann.client.post("/api/classes/0", json=body).json()["duplicate"]
    assert ann.named()["port"]["description"] == "later"
    assert len(list(session.store.class_edits())) == 2
