"""What the API's own page says of its replies, and that the library does without it."""

import subprocess
import sys

import pytest

from askance.label import open_session
from tests.label.worlds import (
    CLASSES,
    Person,
    client_of,
    features_file,
    open_features,
    options,
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    session = open_features(tmp_path_factory.mktemp("replies"))
    yield client_of(session).get("/api/openapi.json").json()
    session.close()


def resolved(schema, node):
    while "$ref" in node:
        node = schema["components"]["schemas"][node["$ref"].rpartition("/")[2]]
    return node


ROUTES = {
    ("get", "/api/state"), ("get", "/api/questions"), ("get", "/api/items"),
    ("get", "/api/items/{item}"), ("get", "/api/mistakes"),
    ("post", "/api/changes"), ("post", "/api/again"),
    ("post", "/api/classes/{number}"),
    ("post", "/api/answers"), ("post", "/api/skip"), ("post", "/api/undo"),
    ("post", "/api/classes"), ("post", "/api/tickets"), ("post", "/api/train"), ("post", "/api/goal"),
}  # fmt: skip
FILES = {("get", "/media/{item}"), ("get", "/api/export/{what}")}


def test_every_route_says_what_it_replies(schema):
    operations = {
        (method, path): operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }
    assert set(operations) == ROUTES | FILES
    for route, operation in operations.items():
        content = operation["responses"]["200"]["content"]
        if route in FILES:
            kinds = [kind["schema"] for kind in content.values()]
            assert kinds, route
            assert all(kind == {"type": "string", "format": "binary"} for kind in kinds), route
            continue
        model = resolved(schema, content["application/json"]["schema"])
        assert model["properties"], route
        assert model["description"], route


def test_no_reply_is_an_object_of_anything(schema):
    """Every object but a rule's numbers names its fields."""
    for name, model in schema["components"]["schemas"].items():
        if name in ("WhyReply", "TicketRequest", "TrainRequest"):  # the rule's numbers; nothing
            continue
        for field, part in model.get("properties", {}).items():
            assert "additionalProperties" not in part, (name, field)
        assert model.get("properties") or model.get("enum"), name


def test_a_reply_has_just_the_fields_that_are_described(schema, start):
    session = start()
    ann = Person(client_of(session))
    question = ann.ask()["questions"][0]
    models = schema["components"]["schemas"]
    assert set(question) == set(models["QuestionReply"]["properties"])
    assert set(ann.state()) == set(models["StateReply"]["properties"])
    assert set(ann.answer(question).json()) == set(models["ActReply"]["properties"])
    undone = ann.undo().json()
    assert set(undone) == set(models["UndoReply"]["properties"])
    assert undone["question"] == question
    history = ann.client.get(f"/api/items/{question['item']}").json()
    assert set(history) == set(models["ItemReply"]["properties"])
    assert [set(row) for row in history["history"]] == [
        set(models["HistoryRow"]["properties"]) for _ in range(3)
    ]


def test_a_folder_whose_name_is_no_text_is_shown(tmp_path):
    folder = tmp_path / "caf\udce9"  # a byte that is no UTF-8, as Python has it
    session = open_session(folder, features_file(tmp_path), CLASSES, options())
    reply = client_of(session).get("/api/state")
    session.close()
    assert reply.status_code == 200
    assert reply.json()["project"] == "caf?"
    assert reply.json()["store"] == f"{tmp_path}/caf?/answers.sqlite"


def test_the_package_needs_neither_fastapi_nor_pydantic():
    code = (
        "import sys; sys.modules['fastapi'] = sys.modules['pydantic'] = None\n"
        "import askance.label, askance.label.exports, askance.label.server\n"
        "import askance.cli.label, askance.integrations.label_studio\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
