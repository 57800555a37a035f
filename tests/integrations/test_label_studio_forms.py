"""Questions as Label Studio's tasks and annotations as answers: without a server."""

import json
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import ExtraError, InputError
from askance.integrations import label_studio_settings as connected
from askance.integrations.label_studio_forms import (
    Form,
    Task,
    annotation_of,
    answers_of,
    form_of,
    identity,
    is_empty,
    prediction_of,
    priority,
    setup,
    spelled,
    task_of,
    tasks_of,
    with_choices,
)
from askance.label.records import AskedQuestion, Guess, Project, checked_name
from tests.label.worlds import open_features

FORM = Form("label", "text", ("good", "bad"))
PEOPLE = {1: "ann@example.org", 2: "bob@example.org"}
MARK = "label-studio 20240501T000000.000000 3 "


def is_name(text):
    try:
        return checked_name(text, "a class") == text and not text.startswith("$")
    except InputError:
        return False


# Printable characters are what a class may have; XML has no word for most others.
NAMES = st.text(min_size=1, max_size=20).filter(is_name)


@given(st.lists(NAMES, min_size=2, max_size=40, unique=True), st.sampled_from(["image", "text"]))
def test_a_setup_offers_the_classes_as_they_are_called(names, kind):
    xml = setup(kind, names)
    assert not is_empty(xml)
    assert form_of(xml, kind) == Form("label", kind, tuple(names))
    assert form_of(xml, "image" if kind == "text" else "text") is None


@given(st.lists(NAMES, min_size=3, max_size=6, unique=True))
def test_classes_are_added_to_a_setup_that_somebody_has_changed(names):
    root = ElementTree.fromstring(setup("text", names[:-1]))
    root.insert(0, ElementTree.Element("Header", value="Read the house rules & mind the <gap>"))
    more = ElementTree.SubElement(root, "Choices", name="mood", toName="nothing")
    ElementTree.SubElement(more, "Choice", value="other")
    xml = ElementTree.tostring(root, encoding="unicode")
    form = form_of(xml, "text")
    assert form == Form("label", "text", tuple(names[:-1]))
    changed = with_choices(xml, form, names[-1:])
    assert form_of(changed, "text") == Form("label", "text", tuple(names))
    assert "house rules" in changed
    assert [tag.get("value") for tag in ElementTree.fromstring(changed).iter("Choice")][
        -1
    ] == "other"


@pytest.mark.parametrize("xml", ["", "<View>", "<View></View>", "<View/>"])
def test_a_new_project_asks_for_nothing(xml):
    assert is_empty(xml)
    assert form_of(xml, "text") is None


def test_a_class_that_would_be_a_column_there_is_refused():
    with pytest.raises(InputError, match=r"'\$5' cannot be a choice"):
        setup("text", ["free", "$5"])


def test_classes_are_written_as_the_setup_writes_them():
    form = Form("label", "text", ("Bad", "GOOD", "other"))
    assert spelled(["good", "bad"], form) == ["GOOD", "Bad"]


def question(number, version=None, **more):
    return AskedQuestion(
        number, f"item {number}", "Label Studio", "2024", "rule", version, "why", **more
    )


def test_the_newest_models_questions_come_first_then_the_order_of_asking():
    asked = [question(9, 2), question(1), question(10, 2), question(2), question(5, 1)]
    best = sorted(asked, key=priority, reverse=True)
    assert [each.id for each in best] == [9, 10, 5, 1, 2]


def test_a_task_says_what_it_is_and_whose():
    data = task_of(question(7, 3, numbers={"rank": 1, "score": 0.5}), "words", "text", "abc")
    assert data == {
        "text": "words",
        "item": "item 7",
        "score": 0.5,
        "priority": 3_999_993,
        "reason": "rule",
        "why": "why",
        "model": 3,
        "askance": "abc",
    }
    assert task_of(question(7), "/data/x.png", "image", "abc")["image"] == "/data/x.png"
    made = prediction_of(FORM, Guess(1, 0.75), ["good", "bad"], 3)
    assert (made["score"], made["model_version"]) == (0.75, "askance 3")
    assert made["result"][0]["value"] == {"choices": ["bad"]}


def test_two_projects_of_the_same_data_are_told_apart():
    created = "2024-05-01T00:00:00.001+00:00"
    one = Project(created=created, data="a.csv", kind="text", seed=0, held_out=0.1)
    assert identity(one) == "a9a27d23c0fa" == identity(replace(one, data="moved.csv"))
    assert identity(one) != identity(replace(one, created="2024-05-01T00:00:00.002+00:00"))


def annotation(number, choices=("good",), by=1, at="2024-05-01T12:00:00Z", **more):
    result = [{"from_name": "label", "type": "choices", "value": {"choices": list(choices)}}]
    return {"id": number, "completed_by": by, "updated_at": at, "result": result, **more}


def read(*annotations):
    answers, refused = answers_of(
        {"a": [Task(5, {}, annotations, frozenset())]}, FORM, PEOPLE, MARK
    )
    return [(each.label, each.annotator) for each in answers], refused


def test_each_persons_latest_annotation_is_their_answer():
    early, late = "2024-05-01T12:00:00Z", "2024-05-01T12:00:00.000001Z"  # "." < "Z"
    said, refused = read(
        annotation(1, ["bad"], by=1, at=late),
        annotation(2, ["good"], by=1, at=early),
        annotation(3, ["good"], by={"id": 2, "email": "bob@example.org"}, at=early),
        annotation(4, [], by=7, at=late, was_cancelled=True),
    )
    assert said == [("good", "bob@example.org"), ("bad", "ann@example.org"), (None, "user 7")]
    assert refused == []


def test_an_annotation_without_one_choice_is_no_answer():
    other = annotation(3)
    other["result"][0]["from_name"] = "mood"
    said, refused = read(annotation(1, []), annotation(2, ["good", "bad"]), other)
    assert said == []
    assert [(each.where, each.item) for each in refused] == [
        ("task 5, annotation 1", "a"),
        ("task 5, annotation 2", "a"),
        ("task 5, annotation 3", "a"),
    ]
    assert refused[1].why == "one choice is expected, got good, bad"


def test_a_token_names_one_state_of_one_annotation():
    [answer], _ = answers_of({"a": [Task(5, {}, [annotation(8)], frozenset())]}, FORM, PEOPLE, MARK)
    assert answer.token == f"{MARK}8 2024-05-01T12:00:00+00:00"
    assert annotation_of(answer.token, MARK) == "8"
    assert annotation_of("a token of the page", MARK) is None
    assert annotation_of(answer.token, MARK.replace(" 3 ", " 4 ")) is None


def test_only_tasks_with_this_projects_mark_are_ours():
    mine = Task(1, {"item": "a", "askance": "x"}, (), frozenset())
    others = [
        Task(2, {"item": "a", "askance": "y"}, (), frozenset()),
        Task(3, {"text": "by hand"}, (), frozenset()),
        Task(4, {"item": 7, "askance": "x"}, (), frozenset()),
    ]
    assert tasks_of([*others, mine], "x") == {"a": [mine]}


def test_without_the_sdk_the_extra_is_named(monkeypatch, askance, tmp_path):
    monkeypatch.setitem(sys.modules, "label_studio_sdk", None)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "0123456789abcdef")
    open_features(tmp_path).close()
    for command in ("push", "pull", "sync"):
        code, out, err = askance(
            "label-studio", command, tmp_path / "project", "--url", "http://127.0.0.1:8080"
        )
        assert (code, out) == (2, "")
        assert 'pip install "askance[label-studio]"' in err
        assert "0123456789abcdef" not in err
    assert issubclass(ExtraError, ImportError)


@pytest.mark.parametrize(("missing", "named"), [("url", "--url"), ("token", "--token")])
def test_a_server_and_a_token_must_be_named(askance, monkeypatch, tmp_path, missing, named):
    for name in ("LABEL_STUDIO_URL", "LABEL_STUDIO_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    given = {"url": "http://127.0.0.1:8080", "token": "0123456789abcdef"}
    given.pop(missing)
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    code, _, err = askance("label-studio", "pull", tmp_path, *words)
    assert code == 2
    assert named in err


@pytest.mark.parametrize("text", ["{", "[]", '{"source": 3}', '{"source": {}, "options": []}'])
def test_a_note_that_was_tampered_with_is_refused(tmp_path, text):
    (tmp_path / connected.FILE).write_text(text)
    with pytest.raises(InputError, match="delete it"):
        connected.saved_settings(tmp_path)


def test_settings_are_remembered_and_the_projects_own_are_kept(tmp_path):
    open_features(tmp_path, seed=4, held_out=0.25).close()
    folder = tmp_path / "project"
    note = {"source": {"features": "vector"}, "options": {"batch": 7, "seed": 9}}
    (folder / connected.FILE).write_text(json.dumps(note))
    given = connected.Settings({"id": "name"}, {"epochs": 2})
    _, settings = connected.merged_settings(folder, given)
    assert settings.source == {
        "path": str(tmp_path / "items.parquet"), "features": "vector", "id": "name",
    }  # fmt: skip
    assert settings.options == {"batch": 7, "epochs": 2, "seed": 4, "held_out": 0.25}
